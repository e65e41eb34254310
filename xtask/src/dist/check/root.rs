//! A root folder with nothing in it: what the programs need besides the kernel is nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{Outcome, Package, ensure, is_this_version};
use crate::{
    Result,
    cargo::{self, Program},
    dist::contents,
    scene::{self, Project, Stops},
};

/// An empty root with the program, a home and a place for temporary files.
struct Root {
    folder: tempfile::TempDir,
}

impl Root {
    fn new(package: &Package) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let unpacked = package.unpack(folder.path())?;
        fs::copy(unpacked.join("ralph"), folder.path().join("ralph"))?;
        // Without /proc a program does not know where it is: there the PATH leads to the other one.
        fs::create_dir(folder.path().join("bin"))?;
        fs::copy(unpacked.join("ralph-fleet"), folder.path().join("bin/ralph-fleet"))?;
        fs::remove_dir_all(unpacked)?;
        fs::create_dir_all(folder.path().join("home/project"))?;
        fs::create_dir(folder.path().join("tmp"))?;
        Ok(Root { folder })
    }

    /// The program in there, in a namespace of its own: an ordinary user may do this, too.
    fn ralph(&self, args: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--pid", "--fork"]);
        let proc = self.path("proc");
        if proc.exists() {
            command.arg(format!("--mount-proc={}", proc.display()));
        }
        command.args(["env", "--ignore-environment", "HOME=/home", "PATH=/bin", "CLAUDE_PROJECT_DIR=/home/project", "/usr/sbin/chroot"]);
        command.arg(self.folder.path()).arg("/ralph").args(args).stdin(Stdio::null());
        command
    }

    fn can(&self) -> bool {
        self.ralph(&["--version"]).stderr(Stdio::null()).stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    /// Adds what the demo's gate is made of: a shell and two tools, with their libraries, `/dev/null` and the kernel's list of processes.
    fn add_shell(&self) -> Result<()> {
        for folder in ["proc", "dev"] {
            fs::create_dir(self.path(folder))?;
        }
        fs::write(self.path("dev/null"), "")?;
        for tool in ["sh", "grep", "tr"] {
            let file = ["/bin", "/usr/bin"].iter().map(|dir| Path::new(dir).join(tool)).find(|path| path.exists());
            let file = file.ok_or_else(|| format!("{tool} is missing"))?;
            fs::copy(&file, self.path("bin").join(tool))?;
            let libraries = String::from_utf8(contents::output(Command::new("ldd").arg(&file))?)?;
            for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
                let copy = self.path(library.trim_start_matches('/'));
                fs::create_dir_all(copy.parent().unwrap_or(&copy))?;
                fs::copy(library, copy)?;
            }
        }
        Ok(())
    }
}

/// By what its header says.
pub(super) fn program(package: &Package) -> Result<Outcome> {
    if package.target.os != "linux" {
        return Ok(Outcome::Skipped("static programs are for Linux"));
    }
    let folder = tempfile::tempdir()?;
    let unpacked = package.unpack(folder.path())?;
    let home = cargo::home().ok_or("no home folder")?;
    for name in Program::ALL.map(Program::name) {
        let bytes = fs::read(unpacked.join(name))?;
        // ELF: the type in bytes 16 and 17 (2: at a fixed place), and no program header of the kind "interpreter" (3).
        ensure(bytes.get(16..18) == Some(&[2, 0]), || format!("{name} is not position-dependent"))?;
        ensure(!interpreter(&bytes), || format!("{name} asks for a dynamic linker"))?;
        ensure(!contains(&bytes, b".symtab\0"), || format!("{name} is not stripped"))?;
        ensure(!contains(&bytes, home.as_os_str().as_encoded_bytes()), || format!("{name} names {}", home.display()))?;
    }
    Ok(Outcome::Holds)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn interpreter(elf: &[u8]) -> bool {
    let number = |at: usize, len: usize| elf.get(at..at + len).map_or(0, |b| b.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)));
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    (0..count).any(|n| number(table + n * size, 4) == 3)
}

pub(super) fn hook_and_demo(package: &Package) -> Result<Outcome> {
    let root = Root::new(package)?;
    if !root.can() {
        return Ok(Outcome::Skipped("this user may not change its root folder"));
    }
    is_this_version(|| root.ralph(&[]))?;
    let in_project = |args: &[&str]| contents::output(&mut root.ralph(&[&["-C", "/home/project"], args].concat()));
    in_project(&["start", "Work", "--completion-promise", "DONE", "--session", scene::SESSION])?;
    let answer = stop(&root)?;
    ensure(answer.contains("\"decision\":\"block\"") && answer.contains("Work"), || format!("the hook answered {answer:?}"))?;
    let status = String::from_utf8(in_project(&["status"])?)?;
    ensure(status.contains("iteration   2"), || format!("after a stop: {status}"))?;
    in_project(&["cancel"])?;
    root.add_shell()?;
    let shown = String::from_utf8(contents::output(&mut root.ralph(&["demo"]))?)?;
    ensure(shown.contains("<promise>DONE</promise>"), || format!("the demo shows {shown}"))?;
    Ok(Outcome::Holds)
}

/// Reports a stop of the session to the hook.
fn stop(root: &Root) -> Result<String> {
    let project = Project { dir: PathBuf::from("/home/project") };
    let event = root.path("home/event.json");
    fs::write(&event, Stops::with_message(&project, Path::new("/home/none.jsonl")).event(1))?;
    let args = scene::hook_args();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let answer = contents::output(root.ralph(&args).stdin(fs::File::open(event)?))?;
    Ok(String::from_utf8(answer)?)
}
