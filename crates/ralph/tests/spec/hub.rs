//! A project with a branch on a scripted GitHub, and a loop about its pull request, through the real `gh`.

use std::{ops::Deref, os::unix::fs::PermissionsExt, path::Path, process::Command};

use ralph_testkit::{Check, Gh, GitHub, Origin, Output};

use crate::common::{Bed, Event, LOOP, ME, PROMPT, RALPH, run, unique};

/// The branch that is worked on.
pub(crate) const BRANCH: &str = "feature/x";

pub(crate) struct Hubbed {
    bed: Bed,
    pub(crate) hub: GitHub,
    gh: Gh,
}

impl Deref for Hubbed {
    type Target = Bed;
    fn deref(&self) -> &Bed {
        &self.bed
    }
}

impl Hubbed {
    /// A branch with one commit that was pushed. `None` where there is no `gh` to be had.
    pub(crate) fn new() -> Option<Self> {
        let gh = Gh::installed().map_err(|skip| skip.tell()).ok()?;
        let hub = GitHub::start("acme/widget");
        let bed = Bed::in_git();
        bed.write(".gitignore", ".claude/\n.ralph/\nralph.toml\n");
        bed.commit_all("begin");
        let origin = Origin::at(&hub, &bed);
        origin.branch(BRANCH);
        origin.commit("src.txt", "one\n");
        origin.push();
        Some(Hubbed { bed, hub, gh })
    }

    /// The same with an open pull request; its number, and the commit.
    pub(crate) fn with_request() -> Option<(Self, u64, String)> {
        let bed = Self::new()?;
        let head = bed.origin().head();
        let number = bed.hub.open(BRANCH, &head);
        Some((bed, number, head))
    }

    pub(crate) fn origin(&self) -> Origin<'_> {
        Origin::known(&self.bed)
    }

    /// The commit that is checked out.
    pub(crate) fn head(&self) -> String {
        self.origin().head()
    }

    /// Opens a pull request of the branch, with these checks on its head; its number.
    pub(crate) fn open(&self, checks: &[Check]) -> u64 {
        let head = self.head();
        let number = self.hub.open(BRANCH, &head);
        for check in checks {
            self.hub.check(&head, check.clone());
        }
        number
    }

    /// The loop of [`ME`] with this preset, whose files are not asked for.
    pub(crate) fn arm(&self, preset: &str, promise: &str) {
        self.write("ralph.toml", "[pr]\naudit = false\nquality = false\nevidence = false\n");
        self.arm_with_files(preset, promise);
    }

    /// The same with all that it asks for.
    pub(crate) fn arm_with_files(&self, preset: &str, promise: &str) {
        let text = format!(
            "---\nactive: true\niteration: 1\nsession_id: {ME}\nmax_iterations: 0\ncompletion_promise: {promise}\n\
             started_at: \"2026-11-15T09:30:00Z\"\npreset: {preset}\n---\n\n{PROMPT}\n"
        );
        self.write(LOOP, text);
    }

    /// A check that has been there for long enough to be believed.
    pub(crate) fn green(&self, oid: &str) {
        self.hub.check(oid, Check::run("build"));
    }

    fn env(&self) -> Vec<(String, String)> {
        let path = ("PATH".to_owned(), self.path_with_gh());
        self.hub.env().into_iter().chain([path]).collect()
    }

    /// An event whose hook can ask the hub.
    pub(crate) fn asking<'b>(&'b self, event: Event<'b>) -> Event<'b> {
        self.env().into_iter().fold(event, |event, (name, value)| event.env(&name, &value))
    }

    /// A stop that claims nothing.
    pub(crate) fn works(&self) -> Event<'_> {
        self.asking(self.bed.work())
    }

    /// A stop that claims that it is merged.
    pub(crate) fn claims(&self) -> Event<'_> {
        self.asking(self.bed.stop(&format!("Merged ({}).\n\n<promise>CI_PASSED</promise>", unique())))
    }

    /// `ralph` as a person runs it who has `gh`.
    pub(crate) fn asking_command(&self, args: &[&str]) -> Command {
        if args.contains(&"start") {
            self.register();
        }
        let mut command = self.command(RALPH);
        command.args(args).envs(self.env());
        command
    }

    pub(crate) fn ralph_asking(&self, args: &[&str]) -> Output {
        run(&mut self.asking_command(args), b"")
    }

    /// The search path of somebody whose `gh` is this script.
    pub(crate) fn instead_of_gh(&self, text: &str) -> String {
        let folder = self.home().join("fake");
        std::fs::create_dir_all(&folder).unwrap();
        script(&folder.join("gh"), text);
        format!("{}:{}", folder.display(), self.path_with_gh())
    }

    pub(crate) fn path_with_gh(&self) -> String {
        self.gh.path().into_string().unwrap()
    }

    /// The search path of somebody who has git and no `gh`.
    pub(crate) fn path_without_gh(&self) -> String {
        let folder = self.home().join("only-git");
        std::fs::create_dir_all(&folder).unwrap();
        let git = std::env::split_paths(&self.gh.path()).map(|dir| dir.join("git")).find(|git| git.exists()).unwrap();
        let _ = std::os::unix::fs::symlink(git, folder.join("git"));
        folder.to_str().unwrap().to_owned()
    }
}

pub(crate) fn script(path: &Path, text: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What nobody scripted was not tested.
impl Drop for Hubbed {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.hub.unexpected(), Vec::<String>::new());
        }
    }
}

/// A bed with a hub, or the end of the test where there is no `gh`.
#[macro_export]
macro_rules! hub {
    () => {
        match $crate::hub::Hubbed::new() {
            Some(hub) => hub,
            None => return,
        }
    };
}
