//! What counts as trusted, and what never does.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ralph_core::gate::Run;

use super::{
    Error, Trust,
    ledger::{MOST_CONTENTS, MOST_ORIGINS},
    list, of_bytes, of_commands, of_each, read, revoke, trust_bytes, trust_commands,
};
use crate::{store::project::Project, sys::temp_dir::Scratch};

struct Bed {
    scratch: Scratch,
}

impl Bed {
    fn new() -> Self {
        Bed { scratch: Scratch::create("ralph-trust-test-", false).unwrap() }
    }

    fn at(&self, root: PathBuf) -> Project {
        Project::with_state(root, &self.scratch.path().join("state/ralph"))
    }

    fn folder(&self) -> PathBuf {
        self.scratch.path().join("state/ralph/trust")
    }

    fn project(&self, name: &str) -> Project {
        let root = self.scratch.path().join(name);
        fs::create_dir_all(&root).unwrap();
        self.at(root)
    }

    fn repository(&self, name: &str) -> Project {
        let project = self.project(name);
        fs::create_dir_all(project.root().join(".git")).unwrap();
        project
    }

    /// As `git worktree add` makes it.
    fn linked(&self, of: &Project, name: &str) -> Project {
        let tree = self.project(name);
        let inside = of.root().join(".git/worktrees").join(name);
        fs::create_dir_all(&inside).unwrap();
        put(&tree, ".git", &format!("gitdir: {}\n", inside.display()));
        put(of, &format!(".git/worktrees/{name}/gitdir"), &format!("{}\n", tree.root().join(".git").display()));
        put(of, &format!(".git/worktrees/{name}/commondir"), "../..\n");
        tree
    }

    fn file(&self) -> PathBuf {
        fs::read_dir(self.folder()).unwrap().next().unwrap().unwrap().path()
    }
}

fn trust(project: &Project, relative: &str, content: &str) {
    trust_bytes(project, relative, content.as_bytes()).unwrap();
}

fn says(project: &Project, relative: &str, content: &str) -> Trust {
    of_bytes(project, relative, content.as_bytes())
}

fn of_file(project: &Project, relative: &str) -> Trust {
    read(project, relative).map_or(Trust::Untrusted, |content| of_bytes(project, relative, &content))
}

fn put(project: &Project, relative: &str, content: &str) {
    let path = project.root().join(relative);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    crate::sys::files::write_whole(&path, content.as_bytes()).unwrap();
}

fn shell(lines: &[&str]) -> Vec<Run> {
    lines.iter().map(|line| Run::Shell((*line).to_owned())).collect()
}

#[test]
fn a_file_is_trusted_by_its_content() {
    let bed = Bed::new();
    let project = bed.repository("p");
    put(&project, "ralph.toml", "one");
    assert_eq!(of_file(&project, "ralph.toml"), Trust::Untrusted);
    trust(&project, "ralph.toml", "one");
    assert_eq!(of_file(&project, "ralph.toml"), Trust::Trusted);
    assert_eq!(of_file(&project, "./a/../ralph.toml"), Trust::Untrusted, "a folder that is not there");
    assert_eq!(says(&project, "./a/../ralph.toml", "one"), Trust::Trusted, "one file has one name");
    put(&project, "ralph.toml", "two");
    assert_eq!(of_file(&project, "ralph.toml"), Trust::Changed);
    assert_eq!(says(&project, "other.toml", "one"), Trust::Untrusted);
    assert_eq!(of_file(&project, "missing.toml"), Trust::Untrusted);
}

#[test]
fn two_branches_are_trusted_at_once_and_the_oldest_content_goes() {
    let bed = Bed::new();
    let project = bed.repository("p");
    for n in 0..MOST_CONTENTS {
        trust(&project, "ralph.toml", &n.to_string());
    }
    assert_eq!(says(&project, "ralph.toml", "0"), Trust::Trusted);
    trust(&project, "ralph.toml", "0");
    trust(&project, "ralph.toml", "new");
    assert_eq!(says(&project, "ralph.toml", "0"), Trust::Trusted, "what was trusted again is not old");
    assert_eq!(says(&project, "ralph.toml", "1"), Trust::Changed);
    assert_eq!(list(&project)[0].contents, MOST_CONTENTS);
}

#[test]
fn commands_are_trusted_one_by_one() {
    let bed = Bed::new();
    let project = bed.project("p");
    let commands = |lines: &[&str]| of_commands(&project, "prd.json", &shell(lines));
    assert_eq!(commands(&[]), Trust::Trusted, "nothing can run");
    assert_eq!(commands(&["a"]), Trust::Untrusted);
    trust_commands(&project, "prd.json", &shell(&["a", "b"])).unwrap();
    assert_eq!(commands(&["b", "a"]), Trust::Trusted);
    assert_eq!(commands(&["b"]), Trust::Trusted);
    assert_eq!(commands(&["a", "c"]), Trust::Changed);
    let argv = [Run::Argv(vec!["a".to_owned()])];
    assert_eq!(of_commands(&project, "prd.json", &argv), Trust::Changed, "a program is no shell line");
    assert_eq!(says(&project, "prd.json", "a"), Trust::Changed, "nor is it a file");
    let (one, two) = ([Run::Argv(vec!["ab".to_owned(), String::new()])], [Run::Argv(vec!["a".to_owned(), "b".to_owned()])]);
    assert_ne!(of_each(&one), of_each(&two));
}

#[test]
fn linked_worktrees_share_a_decision_and_another_clone_does_not() {
    let bed = Bed::new();
    let main = bed.repository("main");
    let tree = bed.linked(&main, "tree");
    trust(&main, "ralph.toml", "x");
    assert_eq!(says(&tree, "ralph.toml", "x"), Trust::Trusted);
    assert_eq!(says(&bed.repository("clone"), "ralph.toml", "x"), Trust::Untrusted);
    // A project in a folder of the working tree has a name of its own.
    let within = |top: &Project| bed.at(top.root().join("crates/a"));
    fs::create_dir_all(within(&main).root()).unwrap();
    fs::create_dir_all(within(&tree).root()).unwrap();
    assert_eq!(says(&within(&main), "ralph.toml", "x"), Trust::Untrusted);
    trust(&within(&tree), "ralph.toml", "x");
    assert_eq!(says(&within(&main), "ralph.toml", "x"), Trust::Trusted);
    assert_eq!(says(&main, "crates/a/ralph.toml", "x"), Trust::Trusted);
}

#[test]
fn a_stranger_cannot_point_into_somebodys_repository() {
    let bed = Bed::new();
    let main = bed.repository("main");
    let tree = bed.linked(&main, "tree");
    trust(&main, "ralph.toml", "x");
    let pointer = fs::read_to_string(tree.root().join(".git")).unwrap();
    let planted = bed.project("planted");
    for content in [pointer, format!("gitdir: {}\n", main.root().join(".git").display()), "gitdir: \n".to_owned(), "x".to_owned()] {
        put(&planted, ".git", &content);
        assert_eq!(says(&planted, "ralph.toml", "x"), Trust::Untrusted, "{content}");
    }
    // A folder of the stranger's own that says it belongs there.
    put(&planted, "own/worktrees/t/gitdir", &planted.root().join(".git").display().to_string());
    put(&planted, "own/worktrees/t/commondir", &main.root().join(".git").display().to_string());
    put(&planted, ".git", "gitdir: own/worktrees/t\n");
    assert_eq!(says(&planted, "ralph.toml", "x"), Trust::Untrusted);
}

#[test]
fn what_was_decided_can_be_listed_and_taken_back() {
    let bed = Bed::new();
    let project = bed.repository("p");
    assert_eq!(list(&project), []);
    assert_eq!(revoke(&project).unwrap(), []);
    trust(&project, "ralph.toml", "x");
    let listed = list(&project);
    assert_eq!((listed[0].origin.as_str(), listed[0].contents, listed[0].commands), ("ralph.toml", 1, 0));
    assert_eq!(revoke(&project).unwrap(), listed);
    assert_eq!(says(&project, "ralph.toml", "x"), Trust::Untrusted);
    assert!(!bed.folder().exists(), "nothing is left");
}

#[test]
fn there_is_a_bound_to_the_files_too() {
    let bed = Bed::new();
    let project = bed.repository("p");
    for n in 0..=MOST_ORIGINS {
        trust(&project, &format!("{n}.json"), "x");
    }
    assert_eq!(list(&project).len(), MOST_ORIGINS);
    assert_eq!(says(&project, &format!("{MOST_ORIGINS}.json"), "x"), Trust::Trusted);
}

#[test]
fn without_a_home_nothing_is_trusted_and_trusting_is_an_error() {
    let bed = Bed::new();
    let project = Project::passing(bed.repository("p").root());
    assert_eq!(says(&project, "ralph.toml", "x"), Trust::Untrusted);
    assert_eq!(list(&project), []);
    assert!(matches!(trust_bytes(&project, "ralph.toml", b"x"), Err(Error::NoHome)));
    assert!(Error::NoHome.to_string().contains("HOME"));
}

#[test]
fn a_broken_file_of_decisions_trusts_nothing_and_can_be_written_anew() {
    let bed = Bed::new();
    let project = bed.repository("p");
    trust(&project, "ralph.toml", "x");
    let sound = fs::read_to_string(bed.file()).unwrap();
    for broken in ["", "{", "[]", "null", &sound.replace("repository\": \"", "repository\": \"/other")] {
        crate::sys::files::replace_private(&bed.file(), broken.as_bytes()).unwrap();
        assert_eq!(says(&project, "ralph.toml", "x"), Trust::Untrusted, "{broken}");
    }
    trust(&project, "ralph.toml", "x");
    assert_eq!(says(&project, "ralph.toml", "x"), Trust::Trusted);
}

#[test]
fn decisions_within_the_project_are_the_projects_own_word() {
    let bed = Bed::new();
    let root = bed.repository("p").root().to_owned();
    let project = Project::with_state(&root, &root.join("state"));
    assert!(matches!(trust_bytes(&project, "ralph.toml", b"x"), Err(Error::NotOurs { .. })));
    assert_eq!(says(&project, "ralph.toml", "x"), Trust::Untrusted);
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_or_have_written_a_decision() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let bed = Bed::new();
    let project = bed.repository("p");
    trust(&project, "ralph.toml", "x");
    let folder = bed.folder();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&bed.file())), (0o700, 0o600));
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for (path, usual) in [(folder.clone(), 0o700), (bed.file(), 0o600)] {
        set(&path, 0o777);
        assert_eq!(says(&project, "ralph.toml", "x"), Trust::Untrusted, "others could have written {}", path.display());
        set(&path, usual);
        assert_eq!(says(&project, "ralph.toml", "x"), Trust::Trusted);
    }
    let (file, elsewhere) = (bed.file(), bed.scratch.path().join("elsewhere"));
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert_eq!(says(&project, "ralph.toml", "x"), Trust::Untrusted, "a link");
    fs::remove_file(&file).unwrap();
    fs::rename(&elsewhere, &file).unwrap();
    let moved = folder.with_extension("moved");
    fs::rename(&folder, &moved).unwrap();
    symlink(&moved, &folder).unwrap();
    assert_eq!(says(&project, "ralph.toml", "x"), Trust::Untrusted, "a link to a folder");
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_working_tree_is_no_file_of_it() {
    use std::os::unix::fs::symlink;
    let bed = Bed::new();
    let (project, other) = (bed.repository("p"), bed.project("other"));
    put(&other, "ralph.toml", "x");
    put(&project, "real.toml", "x");
    trust(&project, "ralph.toml", "x");
    symlink(other.root().join("ralph.toml"), project.root().join("ralph.toml")).unwrap();
    assert_eq!(of_file(&project, "ralph.toml"), Trust::Untrusted);
    fs::remove_file(project.root().join("ralph.toml")).unwrap();
    symlink("real.toml", project.root().join("ralph.toml")).unwrap();
    assert_eq!(of_file(&project, "ralph.toml"), Trust::Trusted);
    // A linked `.git` would make somebody else's repository of it.
    let planted = bed.project("planted");
    symlink(project.root().join(".git"), planted.root().join(".git")).unwrap();
    assert_eq!(says(&planted, "ralph.toml", "x"), Trust::Untrusted);
}
