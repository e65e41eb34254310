//! The process of `ralph run` that has a loop: it holds a lock for as long as it lives, and the loop's state names it.

use std::time::Duration;

use ralph_core::journal::{Runner, State};

use crate::{
    store::{Error, project::Project},
    sys::{clock, env, lock::Lock, process, process_tree, random},
};

/// The lock of a run that was killed is waited for so long: a program that it was just starting has the lock's file, too, until it becomes that program.
const BECOMES: Duration = Duration::from_secs(10);

/// Takes the lock of a loop's run. `Err(Some(pid))`: that process has it.
pub(crate) fn carry(project: &Project, loop_id: &str) -> Result<Result<Lock, Option<u32>>, Error> {
    let path = project.folder("locks")?.join(format!("{loop_id}.runner"));
    let take = |patience| Lock::take(&path, patience).map_err(Error::io("lock", &path));
    let mut lock = take(Duration::ZERO)?;
    if lock.is_none() && Lock::holder(&path).is_some_and(|pid| !process::is_alive(pid)) {
        lock = take(BECOMES)?;
    }
    let Some(mut lock) = lock else { return Ok(Err(Lock::holder(&path))) };
    lock.sign().map_err(Error::io("write", &path))?;
    Ok(Ok(lock))
}

/// This process, as the loop's state names it.
pub fn this(mark: &str, inner_limit: u64) -> Runner {
    let pid = std::process::id();
    Runner { pid, born_ms: clock::birth_of(pid), mark: mark.to_owned(), inner_limit, ..Runner::default() }
}

pub(crate) fn is_alive(runner: &Runner) -> bool {
    process::is_same(runner.pid, runner.born_ms)
}

/// A mark for the sessions of one run, unlike that of any other.
pub fn new_mark(of_loop: &str) -> String {
    format!("{of_loop}.{:016x}", random::number())
}

/// Ends the sessions and gates that a dead run left running; returns how many processes there were.
pub fn end_leftovers(mark: &str) -> usize {
    [env::RUN, env::RUNNER].iter().map(|name| process_tree::end_marked(&format!("{name}={mark}"))).sum()
}

/// The same, if the run that had the loop is dead.
pub(crate) fn end_what_a_dead_run_left(state: &State) -> usize {
    state.runner.as_ref().filter(|runner| !is_alive(runner)).map_or(0, |runner| end_leftovers(&runner.mark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::temp_dir::Scratch;

    #[test]
    fn s4_6_one_process_carries_a_loop() {
        let scratch = Scratch::create("ralph-runner-test-", false).unwrap();
        let project = Project::at(scratch.path());
        let first = carry(&project, "main-1").unwrap().unwrap();
        assert_eq!(carry(&project, "main-1").unwrap().unwrap_err(), Some(std::process::id()));
        assert!(carry(&project, "main-2").unwrap().is_ok());
        drop(first);
        // A child that another test is just starting has the lock's file, too, until it becomes its program.
        let limit = std::time::Instant::now() + std::time::Duration::from_mins(1);
        while carry(&project, "main-1").unwrap().is_err() {
            assert!(std::time::Instant::now() < limit, "the lock is free again");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// The file of a lock is open in a program that a run starts, until that has become its program; the run may be killed meanwhile.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the lock's own file, as a dead run leaves it")]
    fn s4_6_the_lock_of_a_dead_run_is_waited_for() {
        let scratch = Scratch::create("ralph-runner-test-", false).unwrap();
        let project = Project::at(scratch.path());
        let first = carry(&project, "main-1").unwrap().unwrap();
        // No process has this number.
        std::fs::write(project.own().join("locks/main-1.runner"), "4194999\n").unwrap();
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(first);
        });
        assert!(carry(&project, "main-1").unwrap().is_ok());
        ends.join().unwrap();
    }

    #[test]
    fn a_number_that_is_given_again_is_another_process() {
        let runner = this("m", 0);
        assert!(is_alive(&runner));
        if runner.born_ms.is_some() {
            assert!(!is_alive(&Runner { born_ms: Some(1), ..runner }));
        }
    }
}
