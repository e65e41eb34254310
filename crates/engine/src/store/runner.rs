//! Which process carries a loop in fresh sessions: a lock that it holds for as long as it lives, and its mark in the loop's state.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
};

use ralph_core::journal::Runner;

use crate::{
    store::{Error, project::Project},
    sys::{clock, files, process},
};

/// The right to carry a loop; dropped, it is free again, and so it is when the process dies.
#[derive(Debug)]
pub struct Carrying(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

/// Takes the right. `Err(Some(pid))`: that process has it.
pub fn carry(project: &Project, loop_id: &str) -> Result<Result<Carrying, Option<u32>>, Error> {
    let path = project.folder("locks")?.join(format!("{loop_id}.runner"));
    let mut file = files::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(Error::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.take(20).read_to_string(&mut text);
            return Ok(Err(text.trim().parse().ok()));
        }
        Err(std::fs::TryLockError::Error(e)) => return Err(Error::io("lock", &path)(e)),
    }
    let noted = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).and_then(|_| writeln!(file, "{}", std::process::id()));
    noted.map_err(Error::io("write", &path))?;
    Ok(Ok(Carrying(file)))
}

/// This process, as the loop's state names it.
pub fn this(mark: &str, inner_limit: u64) -> Runner {
    let pid = std::process::id();
    Runner { pid, born_ms: clock::birth_of(pid), mark: mark.to_owned(), inner_limit, ..Runner::default() }
}

/// Whether a runner lives, and is no other process with the same number.
pub fn is_alive(runner: &Runner) -> bool {
    process::is_alive(runner.pid) && clock::birth_of(runner.pid) == runner.born_ms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::scratch::Scratch;

    #[test]
    fn s4_6_one_process_carries_a_loop() {
        let scratch = Scratch::create("ralph-runner-test-", false).unwrap();
        let project = Project::at(scratch.path());
        let first = carry(&project, "main-1").unwrap().unwrap();
        assert_eq!(carry(&project, "main-1").unwrap().unwrap_err(), Some(std::process::id()));
        assert!(carry(&project, "main-2").unwrap().is_ok());
        drop(first);
        assert!(carry(&project, "main-1").unwrap().is_ok());
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
