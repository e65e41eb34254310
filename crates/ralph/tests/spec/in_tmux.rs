//! The first loop, from nothing to its proof, in the terminal that many people have: the real tmux, on a usual screen and on a small one. (With the real client:
//! `client/run.rs`.)

use std::{
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use ralph_testkit::Skip;

use crate::common::{Bed, RALPH, run};

const PATIENCE: Duration = Duration::from_mins(2);

/// A tmux of its own, with one window in which a shell runs.
struct Tmux<'a> {
    bed: &'a Bed,
    socket: PathBuf,
}

impl<'a> Tmux<'a> {
    fn start(bed: &'a Bed, cols: u16, rows: u16) -> Self {
        let bin = bed.home().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(RALPH, bin.join("ralph")).unwrap();
        let tmux = Tmux { bed, socket: bed.home().join("tmux") };
        let size = [cols.to_string(), rows.to_string()];
        let path = format!("PATH={}:/usr/bin:/bin", bin.display());
        tmux.ask(&["-f", "/dev/null", "new-session", "-d", "-x", &size[0], "-y", &size[1], "env", &path, "PS1=> ", "/bin/sh", "-i"]);
        tmux.sees(">");
        tmux
    }

    fn ask(&self, args: &[&str]) -> String {
        let mut command = self.bed.command("/usr/bin/tmux");
        command.env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color").arg("-S").arg(&self.socket).args(args);
        let out = run(&mut command, b"");
        assert_eq!(out.code, Some(0), "tmux {args:?}: {out:?}");
        out.stdout
    }

    /// The lines on the screen. None of them was wider than the screen: where tmux had to break one, it joins it again for `-J`.
    fn screen(&self) -> String {
        trimmed(&self.ask(&["capture-pane", "-p"]))
    }

    fn is_unbroken(&self) {
        // The screen may change between two looks at it.
        let mut before = self.screen();
        let joined = loop {
            let joined = trimmed(&self.ask(&["capture-pane", "-p", "-J"]));
            let after = self.screen();
            if after == before {
                break joined;
            }
            before = after;
        };
        assert_eq!(before, joined, "a line was wider than the screen");
    }

    fn waits(&self, what: &str, is_there: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return;
            }
            assert!(Instant::now() < deadline, "no {what:?}:\n{screen}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for these words, wherever lines are broken.
    fn sees(&self, wanted: &str) {
        self.waits(wanted, |screen| screen.split_whitespace().collect::<Vec<_>>().join(" ").contains(wanted));
    }

    /// Types a line on an empty screen, once the shell listens again.
    fn types(&self, line: &str) {
        self.waits("prompt", |screen| screen.trim_end().lines().last() == Some(">"));
        self.ask(&["send-keys", "-l", "clear"]);
        self.enter();
        self.waits("empty screen", |screen| screen.trim() == ">");
        self.ask(&["send-keys", "-l", line]);
        self.enter();
    }

    fn enter(&self) {
        self.ask(&["send-keys", "Enter"]);
    }
}

fn trimmed(screen: &str) -> String {
    screen.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = Command::new("/usr/bin/tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// A project with one failing test, and an agent that says at first that all is well.
fn toy() -> Bed {
    let bed = Bed::at_home("slug");
    bed.write("Makefile", "test:\n\t@./check.sh\n");
    bed.script("check.sh", "#!/bin/sh\ngrep -q trim slug.txt || { echo 'the blanks at the ends are left'; exit 1; }\n");
    bed.write("slug.txt", "lower\n");
    bed.commit_all("A slug that forgets to trim");
    let agent = "#!/bin/sh\nif grep -q 'blanks at the ends'; then echo trim >> slug.txt; echo 'I trim it now.'; else echo 'This looks fine to me.'; fi\n";
    std::fs::write(bed.home().join("agent"), agent).unwrap();
    assert_eq!(run(bed.command("/bin/chmod").arg("+x").arg(bed.home().join("agent")), b"").code, Some(0));
    bed
}

#[test]
fn u1_u2_u7_the_first_loop_in_tmux() {
    if let Err(skip) = Skip::unless_installed("tmux") {
        return skip.tell();
    }
    for (cols, rows) in [(80, 24), (60, 15)] {
        let bed = toy();
        let tmux = Tmux::start(&bed, cols, rows);
        tmux.types("ralph");
        tmux.sees("Next: ralph init");
        tmux.is_unbroken();
        tmux.types("ralph --help");
        tmux.sees("all other commands");
        tmux.is_unbroken();
        tmux.types("ralph init");
        for question in ["Write ralph.toml", "Let the agent run", "Register ralph", "Have git ignore"] {
            tmux.sees(question);
            tmux.is_unbroken();
            tmux.enter();
        }
        tmux.sees("Next: ralph run \"Fix the failing tests\"");
        tmux.is_unbroken();
        tmux.types("ralph run \"Fix the failing tests\" --agent-cmd ~/agent");
        tmux.sees("✓ complete ·");
        tmux.is_unbroken();
        assert!(bed.read("slug.txt").contains("trim"));
        for (line, wanted) in [
            ("ralph", "complete at iteration"),
            ("ralph status", "complete at iteration"),
            ("ralph explain", "What would have changed the decision"),
            ("ralph log", "the loop is complete"),
            ("ralph cancel", "No active Ralph loop"),
        ] {
            tmux.types(line);
            tmux.sees(wanted);
            tmux.is_unbroken();
        }
        tmux.types("ralph watch");
        tmux.sees("complete after");
        tmux.is_unbroken();
        tmux.ask(&["send-keys", "q"]);
        tmux.types("ralph start Tidy --promise DONE >/dev/null 2>&1; ralph pause");
        tmux.sees("paused");
        tmux.types("ralph");
        tmux.sees("`ralph resume` goes on");
        tmux.is_unbroken();
    }
}
