//! Scopes, command files, plugins, and the command that is registered.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    CAP, COMMANDS, SCOPES, USUAL, answering, bed_with, command_file, everything, is_not_registered, is_registered, on_path, ours, put,
    ralph_with, safety::is_refused, says, settings, text_of, waits,
};
use crate::common::{Answer, Bed, LOOP, RALPH, loop_text, run};

#[test]
fn s1_1_without_a_home_there_is_no_user_but_a_project() {
    let bed = Bed::new();
    let homeless = |args: &[&str]| run(bed.command(RALPH).args(args).env_remove("HOME"), b"");
    let out = homeless(&["init", "--user"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert_eq!(out.stderr, "error: the home folder is not known: set HOME, or use --project or --local\n");
    let before = everything(&bed);
    for scope in ["--project", "--local"] {
        assert_eq!(homeless(&["init", scope]).code, Some(0));
        is_registered(&text_of(&settings(&bed, scope)), if scope == "--project" { "ralph" } else { RALPH });
        let out = homeless(&["uninstall"]);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
        assert!(!command_file(&bed, scope, "ralph").exists());
        is_not_registered(&text_of(&settings(&bed, scope)));
        fs::remove_dir_all(bed.path(".claude")).unwrap();
    }
    assert_eq!(everything(&bed), before);
}

/// Command files: those of other people stay, those that were edited stay, the rest goes.
#[test]
fn s1_1_command_files_of_others_stay() {
    for scope in SCOPES {
        let bed = Bed::new();
        let (theirs, edited) = (command_file(&bed, scope, "ralph"), command_file(&bed, scope, "ralph-loop"));
        put(&theirs, "Wiggum.\n");
        let said = bed.ralph_ok(&["init", scope]);
        assert!(said.contains(&format!("\nnote: {} was not written by ralph: it is left as it is", theirs.display())), "{said}");
        for name in COMMANDS.iter().filter(|name| **name != "ralph") {
            let text = text_of(&command_file(&bed, scope, name));
            assert!(text.starts_with("---\ndescription: ") && text.contains("\ndisable-model-invocation: true\n---\n"), "{text}");
        }
        put(&edited, "Mine now.\n");
        let said = bed.ralph_ok(&["init", scope]);
        assert!(said.contains(&format!("note: {} was not written by ralph", edited.display())), "{said}");
        let said = bed.ralph_ok(&["uninstall", scope]);
        assert!(said.contains(&format!("note: {} was changed since ralph wrote it: it stays.", edited.display())), "{said}");
        assert_eq!((text_of(&theirs).as_str(), text_of(&edited).as_str()), ("Wiggum.\n", "Mine now.\n"));
        assert_eq!(fs::read_dir(theirs.parent().unwrap()).unwrap().count(), 2);
        assert!(!settings(&bed, scope).exists());
    }
}

/// One folder of commands for the project and for the user in it.
#[test]
fn s1_1_project_and_local_share_the_commands() {
    let bed = Bed::new();
    let path = on_path(&bed);
    let before = everything(&bed);
    let ralph = |args: &[&str]| {
        let out = ralph_with(&bed, &[("PATH", &path)], args);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{args:?}");
    };
    ralph(&["init", "--project"]);
    ralph(&["init", "--local"]);
    is_registered(&text_of(&settings(&bed, "--local")), "ralph");
    ralph(&["uninstall"]);
    assert_eq!(everything(&bed), before);
    ralph(&["init", "--user"]);
    ralph(&["init", "--project"]);
    ralph(&["uninstall", "--user"]);
    is_registered(&text_of(&settings(&bed, "--project")), "ralph");
    assert!(command_file(&bed, "--project", "ralph").exists() && !command_file(&bed, "--user", "ralph").exists());
    ralph(&["uninstall"]);
    assert_eq!(everything(&bed), before);
}

/// An installed plugin that registers ralph.
pub(super) fn install_plugin(bed: &Bed, version: u64, scope: &str, on: bool) {
    let root = bed.home().join("plugins/ralph");
    put(
        &root.join("hooks/hooks.json"),
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/bin/ralph", "args": ["hook", "claude"]}]}]}}"#,
    );
    let record = if version == 1 { json!({"installPath": root}) } else { json!([{"scope": "user", "installPath": root}]) };
    let installed = json!({"version": version, "plugins": {"ralph@ralph-loop": record}});
    put(&bed.home().join(".claude/plugins/installed_plugins.json"), installed.to_string());
    put(&settings(bed, scope), json!({"enabledPlugins": {"ralph@ralph-loop": on}}).to_string());
}

#[test]
fn s1_1_a_plugin_that_registers_the_hooks_is_enough() {
    for (version, enabled_in) in [(1, "--user"), (2, "--user"), (2, "--project"), (2, "--local")] {
        for scope in SCOPES {
            let bed = Bed::new();
            install_plugin(&bed, version, enabled_in, true);
            put(&settings(&bed, scope).with_file_name("other"), "");
            let before = everything(&bed);
            let said = bed.ralph_ok(&["init", scope]);
            if scope == "--user" && enabled_in != "--user" {
                is_registered(&text_of(&settings(&bed, scope)), RALPH);
                continue;
            }
            assert!(said.contains("The plugin ralph@ralph-loop registers the hooks, so only the short commands are written."), "{said}");
            let mut with: Vec<_> = everything(&bed).into_keys().filter(|path| !before.contains_key(path)).collect();
            with.retain(|path| !path.to_str().unwrap().contains("/.local/"));
            assert_eq!(with.len(), 7, "a folder and six files: {with:?}");
            bed.ralph_ok(&["init", scope, "--block-cap", "0"]);
            let text = text_of(&settings(&bed, scope));
            is_not_registered(&text);
            assert_eq!(says(&text)["env"][CAP], "0");
            let said = bed.ralph_ok(&["uninstall"]);
            assert!(said.contains("`claude plugin uninstall ralph@ralph-loop`"), "{said}");
            assert_eq!(everything(&bed), before);
        }
    }
}

/// Switched off, not installed, or without ralph's hook: then it does not count.
#[test]
fn s1_1_a_plugin_that_does_not_register_the_hooks_does_not_count() {
    for case in ["off", "off here", "not installed", "other hooks", "damaged list", "no hooks"] {
        let bed = Bed::new();
        install_plugin(&bed, 2, "--user", case != "off");
        match case {
            "off here" => put(&settings(&bed, "--local"), r#"{"enabledPlugins": {"ralph@ralph-loop": false}}"#),
            "not installed" => put(&bed.home().join(".claude/plugins/installed_plugins.json"), r#"{"version": 2, "plugins": {}}"#),
            "other hooks" => put(
                &bed.home().join("plugins/ralph/hooks/hooks.json"),
                r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#,
            ),
            "damaged list" => put(&bed.home().join(".claude/plugins/installed_plugins.json"), "{"),
            "no hooks" => fs::remove_dir_all(bed.home().join("plugins/ralph/hooks")).unwrap(),
            _ => {}
        }
        bed.ralph_ok(&["init", "--local"]);
        is_registered(&text_of(&settings(&bed, "--local")), RALPH);
    }
}

/// Two different command lines would both run; two equal ones run once.
#[test]
fn s1_1_a_second_registration_in_another_scope() {
    let bed = Bed::new();
    bed.ralph_ok(&["init", "--project"]);
    for (scope, said) in [("--user", "`ralph uninstall --project`"), ("--local", "`ralph uninstall --project`")] {
        is_refused(&bed, &["init", scope], &settings(&bed, "--project"), said);
    }
    bed.ralph_ok(&["uninstall", "--project"]);
    bed.ralph_ok(&["init", "--user"]);
    bed.ralph_ok(&["init", "--local"]);
    is_registered(&text_of(&settings(&bed, "--local")), RALPH);
    is_refused(&bed, &["init", "--project"], &settings(&bed, "--user"), "`ralph uninstall --user`");
    bed.ralph_ok(&["uninstall"]);
    put(&settings(&bed, "--project"), r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "ralph hook claude"}]}]}}"#);
    is_refused(&bed, &["init"], &settings(&bed, "--project"), "as `ralph hook claude`");
}

#[test]
fn s1_1_one_scope_at_a_time() {
    let bed = Bed::new();
    for command in ["init", "uninstall"] {
        for args in [
            [command, "--user", "--project"],
            [command, "--project", "--local"],
            [command, "--user", "--block-cap=-1"],
            [command, "--global", ""],
        ] {
            let out = bed.ralph(&args);
            assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{args:?}");
            assert!(out.stderr.starts_with("error: "), "{}", out.stderr);
        }
    }
    assert!(everything(&bed).is_empty());
}

/// Plain text in a pipe, with the difference in it.
#[test]
fn s1_1_the_change_is_shown() {
    let bed = bed_with("--user", USUAL);
    let said = bed.ralph_ok(&["init"]);
    let path = settings(&bed, "--user");
    assert!(
        said.starts_with(&format!(
            "changed {}\n     {{\n    -  \"model\": \"opus\"\n    +  \"model\": \"opus\",\n    +  \"hooks\": {{\n",
            path.display()
        )),
        "{said}"
    );
    assert!(said.contains(&format!("\nnew     {}\n", command_file(&bed, "--user", "ralph-loop").display())), "{said}");
    assert!(said.contains("`ralph init --block-cap 0` lifts that cap"), "{said}");
    let undone = bed.ralph_ok(&["uninstall", "--dry-run"]);
    assert!(
        undone.contains("    -  \"hooks\": {\n")
            && undone.contains(&format!("\nremoved {}", command_file(&bed, "--user", "ralph").display())),
        "{undone}"
    );
    assert!(!said.contains('\u{1b}') && !undone.contains('\u{1b}'));
    let undone = bed.ralph_ok(&["uninstall"]);
    assert!(undone.starts_with("will change ~/.claude/settings.json (takes out what ralph put in)\nwill remove 6 commands in"), "{undone}");
    assert!(bed.ralph_ok(&["uninstall"]).starts_with("There is nothing to undo: the hook is registered in none of these files.\n"));
}

#[test]
fn s1_1_the_clients_folder_and_the_state_folder_can_be_elsewhere() {
    let bed = Bed::new();
    let (config, state) = (bed.home().join("my config"), bed.home().join("my state"));
    let vars = [("CLAUDE_CONFIG_DIR", config.as_path()), ("XDG_STATE_HOME", state.as_path())];
    put(&config.join("settings.json"), "{\"model\":\"opus\"}");
    let before = everything(&bed);
    assert_eq!(ralph_with(&bed, &vars, &["init"]).code, Some(0));
    is_registered(&text_of(&config.join("settings.json")), RALPH);
    assert!(config.join("commands/ralph-loop.md").exists() && !bed.home().join(".claude").exists() && !bed.home().join(".local").exists());
    let records: Vec<PathBuf> = fs::read_dir(state.join("ralph/setup")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(records.len(), 7);
    assert!(records.iter().all(|record| fs::metadata(record).unwrap().mode() & 0o777 == 0o600));
    assert_eq!(ralph_with(&bed, &vars, &["uninstall"]).code, Some(0));
    fs::remove_dir(&state).unwrap();
    assert_eq!(everything(&bed), before);
}

/// By its name where that is this program; else by its path, but never in a file that is checked in.
#[test]
fn s1_1_the_registered_command_is_this_program() {
    let bed = Bed::new();
    let here = on_path(&bed);
    let other = bed.script("other bin/ralph", "#!/bin/sh\n").parent().unwrap().to_owned();
    for (path, note) in [
        (&here, None),
        (&other, Some("the `ralph` on your PATH is another one (")),
        (&PathBuf::from("/usr/bin"), Some("`ralph` is not on your PATH")),
    ] {
        for scope in SCOPES {
            let out = ralph_with(&bed, &[("PATH", path)], &["init", scope]);
            assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
            is_registered(&text_of(&settings(&bed, scope)), if note.is_none() || scope == "--project" { "ralph" } else { RALPH });
            assert_eq!(out.stdout.lines().find(|l| l.starts_with("note:")).is_some(), note.is_some(), "{}", out.stdout);
            assert!(out.stdout.contains(note.unwrap_or_default()), "{}", out.stdout);
            // A moved program is registered anew where it stands.
            put(&settings(&bed, scope), text_of(&settings(&bed, scope)).replace(RALPH, "/old/ralph"));
            assert_eq!(ralph_with(&bed, &[("PATH", path)], &["init", scope]).code, Some(0));
            is_registered(&text_of(&settings(&bed, scope)), if note.is_none() || scope == "--project" { "ralph" } else { RALPH });
            assert_eq!(ralph_with(&bed, &[("PATH", path)], &["uninstall"]).code, Some(0));
        }
    }
}

/// Runs a registered entry as the client does, with a stop of a session that has a loop.
fn answer_of(bed: &Bed, entry: &Value, path: &Path) -> Answer {
    bed.write(LOOP, loop_text(crate::common::ME, 1, 0, "DONE"));
    let program = entry["command"].as_str().unwrap().replace("${CLAUDE_PLUGIN_ROOT}", path.to_str().unwrap());
    let args: Vec<&str> = entry["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
    let mut command = bed.command("/usr/bin/env");
    command.arg(program).args(args).env("PATH", format!("{}:/usr/bin:/bin", path.display())).env("CLAUDE_PROJECT_DIR", bed.dir());
    Answer::of(&run(&mut command, bed.work().json().as_bytes()))
}

#[test]
fn s1_1_what_is_registered_answers_a_stop() {
    for scope in SCOPES {
        let bed = Bed::new();
        bed.ralph_ok(&["init", scope]);
        let entry = answering(&says(&text_of(&settings(&bed, scope))), "Stop")[0].clone();
        assert!(answer_of(&bed, &entry, &on_path(&bed)).blocks(), "{entry}");
        let said = bed.ralph_ok(&["uninstall"]);
        assert!(said.contains("A loop is live in this project"), "{said}");
    }
}

#[test]
fn s1_1_the_plugin_brings_its_own_program() {
    let bed = Bed::new();
    let folder = bed.path("a folder/plugins");
    let mut tree = BTreeMap::new();
    for round in 0..2 {
        let said = bed.ralph_ok(&["plugin", "a folder/plugins"]);
        assert!(said.contains(folder.to_str().unwrap()) && said.contains("claude plugin install ralph@ralph-loop"), "{said}");
        if round == 0 {
            tree = everything(&bed);
            put(&folder.join("plugin/hooks/hooks.json"), "old");
            put(&folder.join("plugin/bin/ralph"), "old");
        }
    }
    assert_eq!(everything(&bed), tree, "a second run brings everything up to date, and leaves nothing else");
    let root = folder.join("plugin");
    let market = says(&text_of(&folder.join(".claude-plugin/marketplace.json")));
    assert_eq!((&market["name"], &market["plugins"][0]["source"]), (&json!("ralph-loop"), &json!("./plugin")));
    assert_eq!(says(&text_of(&root.join(".claude-plugin/plugin.json")))["name"], "ralph");
    assert_eq!(fs::read_dir(root.join("commands")).unwrap().count(), 6);
    assert!(root.join("README.md").exists());
    let hooks = text_of(&root.join("hooks/hooks.json"));
    is_registered(&hooks, "${CLAUDE_PLUGIN_ROOT}/bin/ralph");
    assert!(answer_of(&bed, &answering(&says(&hooks), "Stop")[0], &root).blocks());
    // It can be updated by itself, and its folder can be elsewhere.
    let out = run(bed.command(root.join("bin/ralph")).args(["plugin", folder.to_str().unwrap()]), b"");
    assert_eq!(out.code, Some(0), "{out:?}");
    put(&bed.path("file"), "");
    let out = bed.ralph(&["plugin", "file"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.starts_with("error: cannot write "), "{}", out.stderr);
}

/// What somebody else made is not replaced, and a refusal writes nothing at all.
#[test]
fn s1_1_the_plugin_replaces_only_what_an_earlier_one_wrote() {
    let is_refused = |bed: &Bed, name: &str, why: &str| {
        let before = everything(bed);
        let out = bed.ralph(&["plugin", "there"]);
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{name}");
        assert!(
            out.stderr.contains(why) && out.stderr.ends_with("Nothing was written: choose an empty folder\n"),
            "{name}: {}",
            out.stderr
        );
        assert_eq!(everything(bed), before, "{name}");
    };
    let names =
        [".claude-plugin/marketplace.json", "plugin/README.md", "plugin/hooks/hooks.json", "plugin/commands/loop.md", "plugin/bin/ralph"];
    for name in names {
        let bed = Bed::new();
        put(&bed.path("there").join(name), "mine");
        is_refused(&bed, name, "already exists, and no earlier `ralph init --plugin` wrote it");
    }
    // Somebody else's marketplace with a program of that name, and ralph's own sources, which have none.
    let bed = Bed::new();
    put(&bed.path("there/.claude-plugin/marketplace.json"), r#"{"name": "other"}"#);
    put(&bed.path("there/plugin/bin/ralph"), "theirs");
    is_refused(&bed, "another marketplace", "already exists");
    put(&bed.path("there/.claude-plugin/marketplace.json"), r#"{"name": "ralph-loop"}"#);
    fs::remove_file(bed.path("there/plugin/bin/ralph")).unwrap();
    is_refused(&bed, "the sources", "already exists");
    // What is not in the way stays.
    let bed = Bed::new();
    put(&bed.path("there/notes"), "mine");
    bed.ralph_ok(&["plugin", "there"]);
    assert_eq!(text_of(&bed.path("there/notes")), "mine");
}

/// Neither a folder nor a file that is a link leads the plugin elsewhere.
#[test]
fn s1_1_the_plugin_is_written_through_no_link() {
    let bed = Bed::new();
    let victim = bed.home().join("victim");
    put(&victim, "mine");
    for link in ["plugin", "plugin/bin", ".claude-plugin", "plugin/commands"] {
        let elsewhere = bed.home().join("elsewhere");
        fs::create_dir_all(&elsewhere).unwrap();
        let path = bed.path(format!("{}-there", link.replace('/', "-")));
        fs::create_dir_all(path.join(link).parent().unwrap()).unwrap();
        symlink(&elsewhere, path.join(link)).unwrap();
        let out = bed.ralph(&["plugin", path.to_str().unwrap()]);
        assert_eq!(out.code, Some(1), "{link}: {out:?}");
        assert!(out.stderr.contains("is not a folder"), "{}", out.stderr);
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{link}");
    }
    let folder = bed.path("there");
    bed.ralph_ok(&["plugin", "there"]);
    for name in ["plugin/bin/ralph.new", "plugin/bin/ralph.tmp", "plugin/bin/.ralph.new"] {
        symlink(&victim, folder.join(name)).unwrap();
    }
    bed.ralph_ok(&["plugin", "there"]);
    assert_eq!(text_of(&victim), "mine");
    let program = folder.join("plugin/bin/ralph").symlink_metadata().unwrap();
    assert!(program.is_file() && program.mode() & 0o777 == 0o755);
}

#[test]
fn s1_1_beside_a_plugin_nothing_wrong_is_said_and_nothing_runs_twice() {
    let bed = Bed::new();
    install_plugin(&bed, 2, "--user", false);
    bed.ralph_ok(&["init"]);
    let path = settings(&bed, "--user");
    put(&path, text_of(&path).replace("\"ralph@ralph-loop\":false", "\"ralph@ralph-loop\":true"));
    let said = bed.ralph_ok(&["init"]);
    assert!(!said.contains("so the hook is registered by its path"), "{said}");
    let still = !ours(&says(&text_of(&path)), "Stop").is_empty();
    assert!(!still || said.contains("ralph uninstall"), "registered twice, without a word: {said}");
}

#[test]
fn s1_1_init_in_the_home_folder_knows_its_own_file() {
    let bed = bed_with("--user", r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/old/ralph hook"}]}]}}"#);
    let out = run(bed.command(RALPH).arg("init").current_dir(bed.home()), b"");
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    is_registered(&text_of(&settings(&bed, "--user")), RALPH);
}

#[test]
fn s1_1_the_lines_to_copy_work_with_spaces_in_the_path() {
    let bed = Bed::new();
    let said = bed.ralph_ok(&["plugin", "a folder"]);
    let line = said.lines().find(|l| l.contains("marketplace add")).unwrap().replace("claude plugin", "printf '%s\\n'");
    let out = run(bed.command("/bin/sh").args(["-c", &line]), b"");
    assert_eq!(out.stdout.lines().last(), bed.path("a folder").to_str(), "{line}");
}

/// A plugin that one project switches on takes nothing out of the settings for all.
#[test]
fn s1_1_a_plugin_of_one_project_does_not_unregister_the_user() {
    let bed = Bed::new();
    bed.ralph_ok(&["init"]);
    install_plugin(&bed, 2, "--local", true);
    bed.ralph_ok(&["init"]);
    is_registered(&text_of(&settings(&bed, "--user")), RALPH);
}

/// What a project shares is everybody's: it goes when somebody says so, or when it was them who wrote it.
#[test]
fn s1_1_uninstall_leaves_what_others_set_up_for_the_project() {
    let bed = Bed::new();
    bed.ralph_ok(&["init", "--project"]);
    fs::remove_dir_all(bed.home().join(".local")).unwrap();
    let said = bed.ralph_ok(&["uninstall"]);
    assert!(said.contains("`ralph uninstall --project` removes it there"), "{said}");
    is_registered(&text_of(&settings(&bed, "--project")), "ralph");
    bed.ralph_ok(&["uninstall", "--project"]);
    is_not_registered(&text_of(&settings(&bed, "--project")));
    bed.ralph_ok(&["init", "--project"]);
    bed.ralph_ok(&["uninstall"]);
    is_not_registered(&text_of(&settings(&bed, "--project")));
}

/// A program of another name knows its own registration again.
#[test]
fn s1_1_a_renamed_program_registers_once() {
    let bed = Bed::new();
    let renamed = bed.home().join("ralph-1.0");
    bed.copy_of_ralph(&renamed);
    for _ in 0..2 {
        assert_eq!(run(bed.command(&renamed).arg("init"), b"").code, Some(0));
    }
    let registered = says(&text_of(&settings(&bed, "--user")));
    let stops = registered["hooks"]["Stop"].as_array().unwrap();
    assert_eq!(stops.iter().map(|group| waits(&group["hooks"][0])).collect::<Vec<_>>(), [true, false], "{registered}");
    assert_eq!(run(bed.command(&renamed).arg("uninstall"), b"").code, Some(0));
    assert!(!settings(&bed, "--user").exists());
}
