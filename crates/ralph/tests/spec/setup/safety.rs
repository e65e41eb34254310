//! Links, modes, refusals, races and crashes: nothing is lost, half done, or written where it does not belong.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use ralph_testkit::{
    killer::{Filter, count_syscalls, kill_at_syscall},
    nightly,
};

use super::{
    COMMANDS, SCOPES, USUAL, bed_with, command_file, everything, is_registered, others, put, ralph_with, says, settings, text_of,
    there_and_back,
};
use crate::common::{Bed, LOOP, ME, RALPH, loop_text, run};

/// Settings that live elsewhere stay there, and the link stays a link.
#[test]
fn s4_7_links_are_followed_and_stay() {
    for kind in ["absolute", "relative", "chain", "dangling", "folder"] {
        let bed = Bed::new();
        let (path, real) = (settings(&bed, "--user"), bed.home().join("dotfiles/claude.json"));
        put(&real.with_file_name("other"), "");
        if kind == "folder" {
            symlink("dotfiles", bed.home().join(".claude")).unwrap();
            put(&path, USUAL);
            there_and_back(&bed, "--user", USUAL, &[]);
            continue;
        }
        put(&path.with_file_name("other"), "");
        match kind {
            "absolute" => symlink(&real, &path).unwrap(),
            "chain" => {
                symlink("../dotfiles/second", &path).unwrap();
                symlink(bed.home().join("dotfiles/third"), bed.home().join("dotfiles/second")).unwrap();
                symlink("claude.json", bed.home().join("dotfiles/third")).unwrap();
            }
            _ => symlink("../dotfiles/claude.json", &path).unwrap(),
        }
        let text = if kind == "dangling" { "" } else { USUAL };
        if kind != "dangling" {
            put(&real, USUAL);
            fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        }
        there_and_back(&bed, "--user", text, &[]);
        bed.ralph_ok(&["init"]);
        is_registered(&text_of(&real), RALPH);
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink(), "{kind}");
    }
}

/// A link within a project is nobody else's business either.
#[test]
fn s4_7_links_within_the_project_are_followed() {
    for scope in ["--project", "--local"] {
        let bed = Bed::new();
        put(&bed.path("config/claude.json"), USUAL);
        put(&settings(&bed, scope).with_file_name("other"), "");
        symlink("../config/claude.json", settings(&bed, scope)).unwrap();
        there_and_back(&bed, scope, USUAL, &[]);
    }
}

/// Settings can hold secrets.
#[test]
fn s4_7_the_mode_stays() {
    for mode in [0o600, 0o640, 0o644] {
        let bed = bed_with("--user", USUAL);
        let path = settings(&bed, "--user");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        there_and_back(&bed, "--user", USUAL, &[]);
        bed.ralph_ok(&["init"]);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
    }
}

/// Another program rewrites the settings while `init` runs again and again. Its last version is there in the end, with ralph's hooks or without.
fn storm(write: impl Fn(&Path, &str) + Sync) {
    let bed = bed_with("--user", USUAL);
    let path = settings(&bed, "--user");
    let version = |n: u64| format!("{{\n  \"version\": {n},\n  \"more\": \"{}\"\n}}\n", "x".repeat(500));
    let is_there = |n: u64| fs::read_to_string(&path).is_ok_and(|text| text.contains(&format!("\"version\": {n},")));
    let over = AtomicBool::new(false);
    let last = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut n = 0;
            while !over.load(Ordering::Relaxed) {
                n += 1;
                write(&path, &version(n));
                // For a moment `init` may show what it made of an older one.
                let is_back = (0..5_000).any(|_| {
                    is_there(n) || {
                        thread::sleep(Duration::from_millis(1));
                        false
                    }
                });
                assert!(is_back, "version {n} is lost: {}", text_of(&path));
            }
            n
        });
        for _ in 0..nightly::amount(50, 150) {
            let out = bed.ralph(&["init"]);
            assert!(matches!(out.code, Some(0 | 1)) && !out.stderr.contains("panicked"), "{out:?}");
            if writer.is_finished() {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert_eq!(others(&text_of(&path)), says(&version(last)));
    let names = fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| !matches!(name.as_str(), "settings.json" | "commands")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn s4_7_a_program_that_renames_its_settings_into_place_loses_nothing() {
    storm(|path, text| {
        let beside = path.parent().unwrap().parent().unwrap().join("theirs");
        fs::write(&beside, text).unwrap();
        fs::rename(&beside, path).unwrap();
    });
}

#[test]
fn s4_7_a_program_that_writes_its_settings_in_place_loses_nothing() {
    storm(|path, text| {
        fs::write(path, text).unwrap();
        thread::sleep(Duration::from_micros(300));
    });
}

/// Two at once: one of them may fail, but nothing is there twice.
#[test]
fn s4_7_many_inits_at_once_register_once() {
    let bed = bed_with("--user", "{\"model\":\"opus\"}");
    thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(|| bed.ralph(&["init"])))));
    bed.ralph_ok(&["init"]);
    is_registered(&text_of(&settings(&bed, "--user")), RALPH);
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(text_of(&settings(&bed, "--user")), "{\"model\":\"opus\"}");
}

/// `kill -9` at any call that writes: the file is as it was or as it shall be, and the way back is known.
#[test]
fn s4_7_a_crash_anywhere_leaves_one_version_or_the_other() {
    let text = "{\"model\":\"opus\"}";
    let victim = |bed: &Bed, args: &[&str]| {
        let mut command = bed.command(RALPH);
        command.args(args);
        command
    };
    for undo in [false, true] {
        let fresh = || {
            let bed = bed_with("--user", text);
            if undo {
                bed.ralph_ok(&["init"]);
            }
            bed
        };
        let args = if undo { ["uninstall", "--user"] } else { ["init", "--user"] };
        let count = count_syscalls(&mut victim(&fresh(), &args), Filter::Writes, b"");
        assert!(count > 20, "{count}");
        for n in 1..=count {
            let bed = fresh();
            kill_at_syscall(&mut victim(&bed, &args), Filter::Writes, n, b"");
            let left = text_of(&settings(&bed, "--user"));
            if left != text {
                is_registered(&left, RALPH);
            }
            bed.ralph_ok(&["init"]);
            is_registered(&text_of(&settings(&bed, "--user")), RALPH);
            bed.ralph_ok(&["uninstall"]);
            assert_eq!(text_of(&settings(&bed, "--user")), text, "killed at {n} of {count}");
            assert!(COMMANDS.iter().all(|name| !command_file(&bed, "--user", name).exists()), "killed at {n} of {count}");
        }
    }
}

/// Refused with exit code 1 and these words, and nothing at all was written.
#[track_caller]
pub(super) fn is_refused(bed: &Bed, args: &[&str], path: &Path, said: &str) {
    let before = everything(bed);
    let out = bed.ralph(args);
    assert!(!out.timed_out, "{args:?} hangs");
    assert_eq!(out.code, Some(1), "{args:?}: {out:?}");
    assert!(out.stderr.starts_with(&format!("error: {} ", path.display())) && out.stderr.contains(said), "{}", out.stderr);
    assert_eq!(everything(bed), before, "{args:?}");
}

#[test]
fn s1_1_what_cannot_be_changed_is_refused_and_nothing_is_written() {
    let cases: [(&[u8], &str); 14] = [
        (b"{\n  \"a\": 1\n  \"b\": 2\n}\n", "not valid JSON: line 2, column 9"),
        (b"{\n  \"a\": [1, 2\n}\n", "not valid JSON: line 3, column 1"),
        (b"{\"a\": 1", "not valid JSON: line 1, column "),
        (b"{\"a\": 1}\n{\"b\": 2}\n", "not valid JSON: line 2, column 1"),
        (b"{\"a\": 'x'}", "not valid JSON: line 1, column 7"),
        (b"{a: 1}", "not valid JSON: line 1, column "),
        (b"\xef\xbb\xbf\n{,}", "not valid JSON: line 2, column 2"),
        (b"[]", "not a JSON object"),
        (b"\"text\"", "not a JSON object"),
        (b"{\"hooks\": []}", "has something else than an object as \"hooks\""),
        (b"{\"hooks\": {\"Stop\": {}}}", "has something else than a list as \"hooks.Stop\""),
        (b"{\"hooks\": {}, \"hooks\": {}}", "has the key \"hooks\" twice"),
        (b"{\"hooks\": {\"Stop\": [], \"Stop\": []}}", "has the key \"hooks.Stop\" twice"),
        (b"{\"a\": \"\xff\"}", "not UTF-8 text"),
    ];
    for (text, said) in cases {
        for scope in SCOPES {
            let bed = bed_with(scope, text);
            is_refused(&bed, &["init", scope], &settings(&bed, scope), said);
            is_refused(&bed, &["init", scope, "--dry-run"], &settings(&bed, scope), said);
        }
    }
    let bed = bed_with("--user", "{\"env\": []}");
    is_refused(&bed, &["init", "--block-cap", "0"], &settings(&bed, "--user"), "has something else than an object as \"env\"");
}

#[test]
fn s4_7_what_is_no_plain_writable_file_is_refused() {
    for scope in SCOPES {
        let bed = bed_with(scope, USUAL);
        let path = settings(&bed, scope);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        is_refused(&bed, &["init", scope], &path, "is read-only");
        let bed = Bed::new();
        let path = settings(&bed, scope);
        fs::create_dir_all(&path).unwrap();
        is_refused(&bed, &["init", scope], &path, "cannot be read");
        let bed = Bed::new();
        let path = settings(&bed, scope);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        is_refused(&bed, &["init", scope], &path, "not a plain file");
        let bed = Bed::new();
        put(&settings(&bed, scope).with_file_name("commands"), "a file");
        is_refused(&bed, &["init", scope], &command_file(&bed, scope, "ralph-loop"), "cannot be read");
        let bed = Bed::new();
        put(settings(&bed, scope).parent().unwrap(), "a file");
        is_refused(&bed, &["init", scope], &settings(&bed, scope), "cannot be read");
        let bed = Bed::new();
        let path = settings(&bed, scope);
        put(&path.with_file_name("other"), "");
        symlink("settings.json", path.with_file_name("settings.local.json")).unwrap();
        symlink("settings.local.json", path.with_file_name("settings.json")).unwrap();
        is_refused(&bed, &["init", scope], &path, "cannot be read");
    }
}

/// One odd file in the place of a command is its owner's, and keeps nobody from the rest, there and back.
#[test]
fn s1_1_an_odd_command_file_is_left_alone() {
    for kind in ["pipe", "folder", "not text"] {
        let bed = Bed::new();
        let path = command_file(&bed, "--user", "ralph");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match kind {
            "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
            "folder" => fs::create_dir(&path).unwrap(),
            _ => put(&path, b"\xff"),
        }
        assert!(bed.ralph_ok(&["init"]).contains("was not written by ralph"), "{kind}");
        is_registered(&text_of(&settings(&bed, "--user")), RALPH);
        bed.ralph_ok(&["uninstall"]);
        assert!(!settings(&bed, "--user").exists() && fs::symlink_metadata(&path).is_ok(), "{kind}");
    }
}

/// Where a folder is yet to be made, `..` means something else before and after.
#[test]
fn s4_7_a_link_through_a_folder_that_is_not_there_is_refused() {
    let bed = Bed::new();
    let path = settings(&bed, "--local");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink("nowhere/../../../planted.json", &path).unwrap();
    is_refused(&bed, &["init", "--local"], &path, "leads out of the project");
    assert!(!bed.path("../planted.json").exists());
}

/// Two at once: the way back is known afterwards, whoever was first.
#[test]
fn s4_7_two_inits_at_once_keep_the_way_back() {
    for _ in 0..10 {
        let bed = Bed::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| bed.ralph(&["init"]));
            }
        });
        is_registered(&text_of(&settings(&bed, "--user")), RALPH);
        bed.ralph_ok(&["uninstall"]);
        assert!(!settings(&bed, "--user").exists());
    }
}

/// A folder that takes no file: nothing is half done. (Root may write everywhere, so somebody else tries.)
#[test]
fn s4_7_an_unwritable_folder_leaves_nothing_half_done() {
    let bed = bed_with("--user", USUAL);
    let commands = command_file(&bed, "--user", "ralph").parent().unwrap().to_owned();
    fs::create_dir_all(&commands).unwrap();
    fs::set_permissions(&commands, fs::Permissions::from_mode(0o555)).unwrap();
    let mut somebody = bed.command("/usr/bin/setpriv");
    somebody.args(["--reuid=65534", "--regid=65534", "--clear-groups", RALPH, "init"]);
    assert!(Command::new("chown").args(["-R", "65534:65534"]).arg(bed.home()).status().unwrap().success());
    let out = run(&mut somebody, b"");
    if out.stderr.contains("setpriv") || out.code == Some(126) || out.code == Some(127) {
        return;
    }
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stderr.contains("a folder that you may not write to"), "{}", out.stderr);
    assert_eq!(text_of(&settings(&bed, "--user")), USUAL);
}

/// A checkout can carry links that lead anywhere.
#[test]
fn s4_7_a_link_out_of_the_project_is_refused() {
    for scope in ["--project", "--local"] {
        for dangling in [false, true] {
            let bed = Bed::new();
            let outside = bed.home().join("victim/file");
            put(&outside.with_file_name("other"), "");
            if !dangling {
                put(&outside, USUAL);
            }
            let path = settings(&bed, scope);
            put(&path.with_file_name("other"), "");
            symlink("../../home/victim/file", &path).unwrap();
            is_refused(&bed, &["init", scope], &path, "leads out of the project");
            // Over a stop inside.
            fs::remove_file(&path).unwrap();
            symlink(&outside, bed.path("inside")).unwrap();
            symlink("../inside", &path).unwrap();
            is_refused(&bed, &["init", scope], &path, "leads out of the project");
            // By a command file.
            fs::remove_file(&path).unwrap();
            let command = command_file(&bed, scope, "ralph-loop");
            fs::create_dir(command.parent().unwrap()).unwrap();
            symlink(&outside, &command).unwrap();
            if dangling {
                is_refused(&bed, &["init", scope], &command, "leads out of the project");
            } else {
                bed.ralph_ok(&["init", scope]);
                assert_eq!(text_of(&outside), USUAL);
            }
        }
        // By a folder on the way.
        for folder in [".claude", ".claude/commands"] {
            let bed = Bed::new();
            fs::create_dir_all(bed.home().join("victim")).unwrap();
            fs::create_dir_all(bed.path(folder).parent().unwrap()).unwrap();
            symlink(bed.home().join("victim"), bed.path(folder)).unwrap();
            let first = if folder == ".claude" { settings(&bed, scope) } else { command_file(&bed, scope, "ralph-loop") };
            is_refused(&bed, &["init", scope], &first, "leads out of the project");
        }
    }
}

/// Uninstall follows no link out of the project either.
#[test]
fn s4_7_uninstall_changes_nothing_outside_the_project() {
    let bed = Bed::new();
    bed.ralph_ok(&["init", "--local"]);
    let (path, outside) = (settings(&bed, "--local"), bed.home().join("victim.json"));
    fs::rename(&path, &outside).unwrap();
    symlink(&outside, &path).unwrap();
    is_refused(&bed, &["uninstall"], &path, "leads out of the project");
}

/// Where nothing can be written, nothing is left half done. (`/proc` takes no files from root either.)
#[test]
fn s4_7_what_cannot_be_written_fails_before_anything_is() {
    let bed = bed_with("--user", USUAL);
    let before = everything(&bed);
    for (name, value) in [("XDG_STATE_HOME", "/proc/self/nowhere"), ("CLAUDE_CONFIG_DIR", "/proc/self/nowhere")] {
        let out = ralph_with(&bed, &[(name, Path::new(value))], &["init"]);
        assert_eq!(out.code, Some(1), "{out:?}");
        assert!(out.stderr.starts_with("error: /proc/self"), "{}", out.stderr);
        if name == "XDG_STATE_HOME" {
            assert_eq!(everything(&bed), before);
        }
    }
    assert_eq!(text_of(&settings(&bed, "--user")), USUAL);
}

#[test]
fn s4_7_all_of_it_or_nothing() {
    for scope in SCOPES {
        let bed = bed_with(scope, USUAL);
        let commands = settings(&bed, scope).with_file_name("commands");
        symlink("not/there", &commands).unwrap();
        let before = everything(&bed);
        let out = bed.ralph(&["init", scope]);
        if out.code != Some(0) {
            assert_eq!(everything(&bed), before, "{}", out.stderr);
        }
    }
}

#[test]
fn s4_7_secrets_are_never_readable_by_others() {
    let fresh = || {
        let bed = bed_with("--user", "{\n  \"apiKeyHelper\": \"secret\"\n}\n");
        fs::set_permissions(settings(&bed, "--user"), fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = bed.command(RALPH);
        command.arg("init");
        (bed, command)
    };
    let (bed, mut command) = fresh();
    let count = count_syscalls(&mut command, Filter::Writes, b"");
    drop(bed);
    for n in 1..=count {
        let (bed, mut command) = fresh();
        kill_at_syscall(&mut command, Filter::Writes, n, b"");
        for (path, is) in everything(&bed) {
            assert!(!is.contains("secret") || is.starts_with("100600 "), "killed at {n} of {count}: {} {}", path.display(), &is[..6]);
        }
    }
}

#[test]
fn s1_1_what_a_file_says_does_not_command_the_terminal() {
    let bed = bed_with("--project", "{\n  \"a\": 1 // \u{1b}]0;owned\u{7}\n}\n");
    let out = run(bed.command(RALPH).args(["init", "--project", "--dry-run"]).env("CLICOLOR_FORCE", "1"), b"");
    assert_eq!(out.code, Some(0));
    assert!(!out.stdout.contains("\u{1b}]") && !out.stdout.contains('\u{7}'), "{:?}", out.stdout);
}

#[test]
fn s1_1_refusals_are_sentences() {
    for (text, said) in [("{\"hooks\": []}", "is \"hooks\" is"), ("{\"hooks\": {}, \"hooks\": {}}", "is \"hooks\" stands")] {
        let bed = bed_with("--user", text);
        let stderr = bed.ralph(&["init"]).stderr;
        assert!(!stderr.contains(said), "{stderr}");
    }
}

/// Root, with somebody's home: the files stay theirs, or the client could not read its own settings any more.
#[test]
fn s1_1_a_file_of_somebody_else_stays_theirs() {
    use std::os::unix::fs::{MetadataExt, chown};
    let bed = bed_with("--user", USUAL);
    let path = settings(&bed, "--user");
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE"));
    if chown(&path, Some(65_533), Some(65_532)).is_err() {
        return ralph_testkit::Skip("this needs root".to_owned()).tell();
    }
    chown(bed.path(LOOP), Some(65_533), Some(65_532)).unwrap();
    let is_theirs = |path: &Path| {
        let meta = fs::metadata(path).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (65_533, 65_532), "{}", path.display());
    };
    bed.ralph_ok(&["init", "--user"]);
    is_theirs(&path);
    bed.ralph_ok(&["uninstall", "--user"]);
    is_theirs(&path);
    assert!(bed.work().send().blocks());
    is_theirs(&bed.path(LOOP));
    // A group alone, too.
    chown(&path, Some(0), Some(65_532)).unwrap();
    bed.ralph_ok(&["init", "--user"]);
    assert_eq!(fs::metadata(&path).unwrap().gid(), 65_532);
}
