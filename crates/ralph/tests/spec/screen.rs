//! What a terminal shows: no line wider than it is, long prompts cut, colour where it is wanted and nowhere else.

use std::time::Duration;

use ralph_testkit::pty::Pty;
use unicode_width::UnicodeWidthStr;

use crate::{
    common::{Bed, LOOP, ME, PROMPT, RALPH, loop_text},
    help::commands,
};

/// Two columns for each character but the spaces.
const WIDE: &str = "世界 平和 テスト 🚀 修正 ";

/// A loop with a very long prompt, some stops, and ended loops beside it.
fn busy() -> Bed {
    let bed = Bed::new();
    bed.ralph_ok(&["start", "short", "--name", "first", "--endless"]);
    bed.ralph_ok(&["cancel"]);
    bed.write(LOOP, loop_text(ME, 1, 9, "DONE").replace(PROMPT, &WIDE.repeat(30)));
    bed.work().send();
    bed.stop(&format!("I cannot say <promise>DONE</promise> yet, because {}", WIDE.repeat(20))).send();
    bed
}

/// What ralph prints on a terminal of this width, with these variables.
pub(crate) fn shown(bed: &Bed, cols: u16, args: &[&str], env: &[(&str, &str)]) -> String {
    let mut command = bed.command(RALPH);
    command.args(args).env("TERM", "xterm-256color").envs(env.iter().copied());
    let pty = Pty::spawn(command, 60, cols);
    let _ = pty.wait_for(|_| false, Duration::from_secs(20));
    String::from_utf8_lossy(&pty.raw()).replace("\r\n", "\n")
}

pub(crate) fn without_styles(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Whether a line fits; one with a word that no line could hold is excused.
fn fits(line: &str, cols: usize) -> bool {
    line.width() <= cols || line.split_whitespace().any(|word| word.width() + 10 > cols)
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let bed = busy();
    for cols in [40, 80, 200] {
        for args in [vec!["status"], vec!["list"], vec!["log"], vec!["log", "first"], vec!["explain"], vec!["explain", "1"], vec!["pause"]]
        {
            let text = without_styles(&shown(&bed, cols, &args, &[]));
            assert!(!text.is_empty(), "{args:?}");
            for line in text.lines() {
                assert!(fits(line, cols.into()), "{args:?} at {cols}: {line:?}\n{text}");
            }
        }
    }
}

#[test]
fn help_fits_the_terminal() {
    let bed = Bed::new();
    let mut pages: Vec<Vec<String>> = vec![vec!["-h".to_owned()], vec!["--help".to_owned()]];
    pages.extend(commands(&bed).into_iter().flat_map(|c| [vec![c.clone(), "-h".to_owned()], vec!["help".to_owned(), c]]));
    for cols in [40, 80, 200] {
        for page in &pages {
            let args: Vec<&str> = page.iter().map(String::as_str).collect();
            let text = without_styles(&shown(&bed, cols, &args, &[]));
            // Clap breaks everything but the usage.
            for line in text.lines().filter(|l| !l.starts_with("Usage: ")) {
                assert!(fits(line, cols.into()) && line.width() <= 100, "{args:?} at {cols}: {line:?}");
            }
        }
    }
    let narrow = without_styles(&shown(&bed, 40, &["--help"], &[]));
    assert!(narrow.contains("\n  watch   Watch a loop as it goes:\n          limits, gates, what the agent\n          does\n"), "{narrow}");
}

/// Some terminals do not know their width; a variable may.
#[test]
fn a_terminal_without_a_width_takes_it_from_the_environment() {
    let bed = busy();
    let prompt = |env: &[(&str, &str)]| {
        let text = without_styles(&shown(&bed, 1, &["status"], env));
        text.lines().find(|l| l.starts_with("  prompt ")).unwrap().width()
    };
    assert!((57..=60).contains(&prompt(&[("COLUMNS", "60")])));
    for odd in ["", "0", "wide", "-3"] {
        assert!(prompt(&[("COLUMNS", odd)]) > 200, "{odd}");
    }
}

/// The prompt takes the columns that are there, two for each wide character; a pipe gets all that `status` has of it.
#[test]
fn a_long_prompt_is_cut_on_a_terminal_and_never_in_a_pipe() {
    let bed = busy();
    for cols in [40_usize, 80, 200] {
        let text = without_styles(&shown(&bed, u16::try_from(cols).unwrap(), &["status"], &[]));
        let line = text.lines().find(|l| l.starts_with("  prompt ")).unwrap();
        assert!(line.ends_with('…') && (cols - 3..=cols).contains(&line.width()), "{cols}: {line:?}");
    }
    let all = bed.status()["prompt"].as_str().unwrap().to_owned();
    assert!(all.chars().count() >= 200);
    assert!(bed.ralph_ok(&["status"]).ends_with(&format!("  prompt      {all}\n")));
    assert!(bed.ralph_ok(&["list"]).contains(&all));
}

/// A narrow terminal gets fewer columns of the list, a wide one the prompts too.
#[test]
fn the_list_has_the_columns_that_fit() {
    let bed = busy();
    let heads = |cols: u16| {
        without_styles(&shown(&bed, cols, &["list"], &[]))
            .lines()
            .next()
            .unwrap()
            .split("  ")
            .map(str::trim)
            .filter(|h| !h.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(heads(40), ["LOOP", "STATUS"]);
    assert_eq!(heads(80), ["LOOP", "STATUS", "ITERATION", "TIME", "LAST EVENT"]);
    assert_eq!(heads(200), ["LOOP", "STATUS", "ITERATION", "TIME", "LAST EVENT", "PROMPT"]);
}

/// The usual variables count, and `--color` goes before them, for help and errors too.
#[test]
fn colour_is_where_it_is_wanted() {
    let bed = busy();
    let coloured = |text: &str| text.contains('\u{1b}');
    let piped = |args: &[&str], env: &[(&str, &str)]| {
        let mut run = bed.run(RALPH).args(args);
        for (name, value) in env {
            run = run.env(name, value);
        }
        let out = run.output();
        out.stdout + &out.stderr
    };
    for command in [
        vec!["status"],
        vec!["list"],
        vec!["explain"],
        vec!["--help"],
        vec!["help", "start"],
        vec!["status", "--frob"],
        vec!["log", "nobody"],
    ] {
        let with = |more: &'static str| [command.clone(), vec![more]].concat();
        let whenever: &[(&str, &str)] = &[];
        assert!(coloured(&shown(&bed, 80, &command, whenever)), "{command:?}");
        assert!(!coloured(&shown(&bed, 80, &command, &[("NO_COLOR", "1")])), "{command:?}");
        assert!(!coloured(&shown(&bed, 80, &command, &[("TERM", "dumb")])), "{command:?}");
        assert!(!coloured(&piped(&command, whenever)), "{command:?}");
        assert!(coloured(&piped(&command, &[("CLICOLOR_FORCE", "1")])), "{command:?}");
        if command[0] != "help" {
            assert!(!coloured(&shown(&bed, 80, &with("--color=never"), whenever)), "{command:?}");
            assert!(coloured(&piped(&with("--color=always"), &[("NO_COLOR", "1")])), "{command:?}");
        }
    }
    assert!(coloured(&piped(&["--color", "always", "help", "start"], &[])));
}

/// A path, a session, a journal's name or a plugin's can hold anything; on a terminal only ralph's own colour gets through.
#[test]
fn s4_7_no_path_and_no_foreign_name_steers_the_terminal() {
    const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\r\u{8}";
    let bed = Bed::new();
    let root = bed.path(format!("a{EVIL}b"));
    std::fs::create_dir_all(root.join(".claude")).unwrap();
    let id = format!("ralph{EVIL}@m; touch ran");
    let market = bed.home().join("market");
    std::fs::create_dir_all(market.join("p/hooks")).unwrap();
    let hooks = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "ralph hook claude"}]}]}}"#;
    std::fs::write(market.join("p/hooks/hooks.json"), hooks).unwrap();
    std::fs::create_dir_all(bed.home().join(".claude/plugins")).unwrap();
    let installed = serde_json::json!({"version": 1, "plugins": {&id: {"installPath": market.join("p")}}});
    std::fs::write(bed.home().join(".claude/plugins/installed_plugins.json"), installed.to_string()).unwrap();
    let says = |args: &[&str], codes: &[i32]| {
        let mut command = bed.command(RALPH);
        let out = crate::common::run(command.args(["--color", "always"]).args(args).current_dir(&root), b"");
        assert!(out.code.is_some_and(|code| codes.contains(&code)), "{args:?}: {out:?}");
        let text = format!("{}{}", out.stdout, out.stderr);
        let steers = ["\u{1b}]", "\u{7}", "\u{1b}[2J", "\u{9b}", "\r", "\u{8}"].iter().any(|trick| text.contains(trick));
        assert!(!steers, "{args:?}: {text:?}");
        text
    };
    says(&["init", "--project"], &[0]);
    says(&["uninstall"], &[0]);
    says(&["init", "--local"], &[0]);
    says(&["plugin", "there"], &[0]);
    says(&["man", "--dir", "pages"], &[0]);
    says(&["start", "Go", "--endless"], &[0]);
    says(&["status"], &[0]);
    says(&["resume", "--session", EVIL], &[0]);
    says(&["list"], &[0]);
    says(&["log"], &[0]);
    says(&["cancel"], &[0]);
    let journal = std::fs::read_dir(root.join(".ralph/journal")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&journal).unwrap();
    let at = text.find("\"at\":\"").unwrap() + 6;
    let text = format!("{}\\u001b[2J{}", &text[..at], &text[at + 4..]);
    std::fs::write(root.join(format!(".ralph/journal/{EVIL}x.jsonl")), text).unwrap();
    std::fs::remove_file(journal).unwrap();
    says(&["status"], &[3]);
    says(&["list"], &[0]);
    says(&["log"], &[0]);
    says(&["start", "--prompt-file", EVIL], &[1]);
    says(&["explain", "--loop", EVIL], &[1]);
    says(&["plugin", ".claude/settings.local.json"], &[1]);
    std::fs::write(bed.home().join(".claude/settings.json"), serde_json::json!({"enabledPlugins": {&id: true}}).to_string()).unwrap();
    let text = says(&["uninstall"], &[0]);
    assert!(text.contains("`claude plugin uninstall 'ralph"), "one word for a shell: {text:?}");
}
