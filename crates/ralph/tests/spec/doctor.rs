//! `ralph doctor`: a sound set-up is called sound, every broken one is named with its cure, and looking changes nothing.

mod agents;
mod broken;
mod client;
mod fix;
mod gates;
mod hostile;
mod loops;
mod page;
mod repository;
mod sound;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use ralph_testkit::Output;
use serde_json::{Value, json};

use crate::common::{Bed, RALPH};

/// Somebody whose ralph is set up, and then is not quite so any more.
struct Patient {
    bed: Bed,
    /// A folder on the path: ralph is in it, and a client.
    bin: PathBuf,
    /// Further variables of the environment.
    env: Vec<(&'static str, String)>,
}

impl Patient {
    /// A git repository without ralph, and a client.
    fn new() -> Self {
        Self::of(Bed::in_git())
    }

    fn of(bed: Bed) -> Self {
        let base = bed.home().parent().unwrap().to_owned();
        let bin = base.join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(base.join("tmp")).unwrap();
        symlink(RALPH, bin.join("ralph")).unwrap();
        let patient = Patient { bed, bin, env: vec![("TMPDIR", base.join("tmp").display().to_string())] };
        patient.client("2.1.325 (Claude Code)");
        patient
    }

    /// The same after `ralph init`, in a trusted folder, with loop files that git ignores and an agent that may work: there is nothing to say.
    fn sound() -> Self {
        let patient = Self::new();
        patient.write_user(&json!({"permissions": {"allow": ["Edit(./**)", "Bash"]}}));
        patient.sh_ok("ralph init --block-cap 0");
        patient.trust(true);
        fs::write(patient.bed.path(".git/info/exclude"), ".claude/*.local.*\n").unwrap();
        patient
    }

    /// A client that answers `--version` like this, and does as much of `plugin disable` and `update` as a test needs.
    fn client(&self, says: &str) {
        let script = format!(
            "#!/bin/sh\ncase \"$1\" in\n--version) echo '{says}' ;;\n\
             plugin) sed -i \"s#\\\"$3\\\": true#\\\"$3\\\": false#\" ~/.claude/settings.json ;;\n\
             update) sed -i 's/^--version.*/--version) echo \"2.1.325 (Claude Code)\" ;;/' \"$0\" ;;\nesac\n"
        );
        self.program("claude", &script);
    }

    /// A program on the path.
    fn program(&self, name: &str, script: &str) -> PathBuf {
        executable(&self.bin.join(name), script)
    }

    fn trust(&self, yes: bool) {
        let projects =
            json!({self.bed.dir().to_str().unwrap(): {"hasTrustDialogAccepted": yes}, "/else": {"hasTrustDialogAccepted": true}});
        fs::write(self.bed.home().join(".claude.json"), json!({ "projects": projects }).to_string()).unwrap();
    }

    fn user_file(&self) -> PathBuf {
        self.bed.home().join(".claude/settings.json")
    }

    fn write_user(&self, settings: &Value) {
        write(&self.user_file(), &format!("{settings:#}\n"));
    }

    fn write_project(&self, settings: &Value) {
        self.bed.write(".claude/settings.json", format!("{settings:#}\n"));
    }

    /// Changes the user's settings.
    fn edit_user(&self, change: impl FnOnce(&mut Value)) {
        let mut settings: Value = serde_json::from_str(&fs::read_to_string(self.user_file()).unwrap()).unwrap();
        change(&mut settings);
        self.write_user(&settings);
    }

    /// Another program in all of the user's hooks.
    fn register(&self, command: &str) {
        self.edit_user(|s| {
            let groups = s["hooks"].as_object_mut().unwrap().values_mut().flat_map(|groups| groups.as_array_mut().unwrap());
            groups.for_each(|group| group["hooks"][0]["command"] = json!(command));
        });
    }

    fn run(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Output {
        let mut run = self.bed.run(program).args(args).timeout(Duration::from_mins(1));
        run = run.env("PATH", format!("{}:/usr/bin:/bin", self.bin.display()));
        for (name, value) in &self.env {
            run = run.env(name, value);
        }
        run.output()
    }

    /// What a person would type.
    fn sh(&self, line: &str) -> Output {
        self.run("/bin/sh", &["-c", line])
    }

    #[track_caller]
    fn sh_ok(&self, line: &str) -> String {
        let out = self.sh(line);
        assert_eq!(out.code, Some(0), "{line}: {out:?}");
        out.stdout
    }

    /// The report for people.
    fn doctor(&self, args: &[&str]) -> Output {
        let out = self.run(self.bin.join("ralph"), &[&["doctor"], args].concat());
        assert!(!out.timed_out && out.stderr.is_empty(), "{out:?}");
        out
    }

    /// The report for programs. The exit code follows from it.
    #[track_caller]
    fn report(&self, args: &[&str]) -> Value {
        let out = self.doctor(&[&["--json"], args].concat());
        let report: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
        let is_well = report["ok"] == true && report["failed"] == json!([]);
        assert_eq!(out.code, Some(i32::from(!is_well)), "{report:#}");
        assert_eq!(report["ok"], findings(&report).iter().all(|f| f["severity"] != "error"));
        report
    }

    /// The findings with this id that are not good.
    #[track_caller]
    fn complaints(&self, id: &str) -> Vec<Value> {
        findings(&self.report(&[])).into_iter().filter(|f| f["id"] == id && f["severity"] != "good").collect()
    }

    /// The only complaint with this id: its severity is this, and its text has these words.
    #[track_caller]
    fn complains(&self, id: &str, severity: &str, words: &[&str]) -> Value {
        let found = self.complaints(id);
        assert_eq!(found.len(), 1, "{id}: {:#}", self.report(&[]));
        let what = found[0]["what"].as_str().unwrap();
        assert_eq!(found[0]["severity"], severity, "{what}");
        assert!(words.iter().all(|word| what.contains(word)), "{words:?} in {what}");
        let says_how = found[0]["fix"].is_string() || found[0]["advice"].is_string() || severity == "note";
        assert!(says_how, "{id} does not say what to do");
        found[0].clone()
    }

    #[track_caller]
    fn is_quiet_about(&self, id: &str) {
        assert_eq!(self.complaints(id), Vec::<Value>::new());
    }

    /// The same, and the printed command is this one and mends it.
    #[track_caller]
    fn mends(&self, id: &str, severity: &str, words: &[&str], fix: &str) {
        assert_eq!(self.complains(id, severity, words)["fix"], fix);
        self.sh_ok(fix);
        self.is_quiet_about(id);
    }

    /// `ralph doctor --fix`; what it says that it did.
    #[track_caller]
    fn fix(&self) -> Vec<String> {
        let report = self.report(&["--fix"]);
        assert_eq!(report["failed"], json!([]), "{report:#}");
        serde_json::from_value(report["fixed"].clone()).unwrap()
    }

    /// Everything in the project and the home, with times and modes, git's own files included.
    fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let mut out = BTreeMap::new();
        let mut folders = vec![self.bed.home().parent().unwrap().to_owned()];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                let meta = path.symlink_metadata().unwrap();
                // The folder for temporary files is there to be used; it must be empty again.
                let time = if path.ends_with("tmp") { String::new() } else { format!("{}.{}", meta.mtime(), meta.mtime_nsec()) };
                let mut is = format!("{:o} {time} ", meta.mode());
                if meta.is_dir() {
                    folders.push(path.clone());
                } else if meta.is_file() {
                    is += &String::from_utf8_lossy(&fs::read(&path).unwrap());
                }
                out.insert(path, is);
            }
        }
        out
    }
}

/// Writes a file, with the folders it needs.
fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A file that nobody has touched for a while.
fn age(path: &Path) {
    let then = SystemTime::now() - Duration::from_hours(1);
    fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

fn executable(path: &Path, script: &str) -> PathBuf {
    write(path, script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_owned()
}

fn findings(report: &Value) -> Vec<Value> {
    report["findings"].as_array().unwrap().clone()
}

/// A hook entry that runs this at a stop.
fn entry(command: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": command, "args": ["hook", "claude", "--timeout", "3600"], "timeout": 3600}]}])
}

/// A hook entry that has this wait after a stop.
fn waiter(command: &str) -> Value {
    let args = json!(["hook", "claude", "--wait", "--timeout", "28800"]);
    json!([{"hooks": [{"type": "command", "command": command, "args": args, "timeout": 28_800, "asyncRewake": true}]}])
}

/// The entry of an event that answers, in settings as `ralph init` writes them.
fn answering<'a>(settings: &'a mut Value, event: &str) -> &'a mut Value {
    &mut settings["hooks"][event].as_array_mut().unwrap().last_mut().unwrap()["hooks"][0]
}

/// The entry that waits, in settings as `ralph init` writes them.
fn waiting(settings: &mut Value) -> &mut Value {
    &mut settings["hooks"]["Stop"][0]["hooks"][0]
}

/// A hook entry that runs this at another event.
fn short_entry(command: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": command, "args": ["hook", "claude"], "timeout": 60}]}])
}

/// All of ralph's hooks, as this program.
fn all_entries(command: &str) -> Value {
    let stop = json!([waiter(command)[0], entry(command)[0]]);
    let failure = json!([waiter(command)[0], short_entry(command)[0]]);
    let stops = [("Stop".to_owned(), stop), ("SubagentStop".to_owned(), entry(command)), ("StopFailure".to_owned(), failure)];
    let others = ["UserPromptSubmit", "UserPromptExpansion", "SessionStart", "SessionEnd"];
    let others = others.map(|event| (event.to_owned(), short_entry(command)));
    let mut notification = short_entry(command);
    notification[0]["hooks"][0]["async"] = json!(true);
    let all = stops.into_iter().chain(others).chain([("Notification".to_owned(), notification)]);
    json!({"hooks": all.collect::<serde_json::Map<_, _>>()})
}

/// The paths that differ between two snapshots, folders aside: they change with what is in them.
fn changed(before: &BTreeMap<PathBuf, String>, after: &BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
    let all = before.keys().chain(after.keys());
    let mut paths: Vec<PathBuf> = all.filter(|p| before.get(*p) != after.get(*p) && !p.is_dir()).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
}
