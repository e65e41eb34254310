//! `ralph gate`: gates by hand, as the hook would measure them, with their output on the terminal.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use ralph_core::gate::test_results::TestResults;
use ralph_testkit::{Skip, pty::Pty};
use serde_json::json;

use crate::common::{Bed, RALPH, run};

const SOON: Duration = Duration::from_secs(20);

/// A repository with these settings, which a person has trusted.
fn trusted(settings: &str) -> Bed {
    let bed = Bed::in_git();
    bed.write("ralph.toml", settings);
    bed.ralph_ok(&["trust", "--yes"]);
    bed
}

fn gates(commands: &[(&str, &str)]) -> String {
    let gate = |(name, command): &(&str, &str)| format!("[[gate]]\nname = \"{name}\"\ncommand = '''{command}'''\n");
    commands.iter().map(gate).collect()
}

fn on_a_terminal(bed: &Bed, args: &[&str]) -> Pty {
    let mut command = bed.command(RALPH);
    command.args(args).env("TERM", "xterm-256color");
    Pty::spawn(command, 40, 100)
}

/// How often a gate ran that adds a line to a file outside of the tree.
fn runs(bed: &Bed) -> usize {
    fs::read_to_string(bed.home().join("runs")).unwrap_or_default().lines().count()
}

fn counted(bed: &Bed) -> String {
    format!("echo x >> '{}'", bed.home().join("runs").display())
}

#[test]
fn s3_3_all_gates_in_their_order_with_a_line_for_each_in_a_pipe() {
    let bed = trusted(&gates(&[("one", "echo first"), ("two", "echo second")]));
    let text = bed.ralph_ok(&["gate"]);
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    let order = [at("gate one: running…\n"), at("gate one: pass ("), at("gate two: running…\n"), at("gate two: pass (")];
    assert!(order.is_sorted(), "{text}");
    let rows: Vec<&str> = text.lines().filter(|l| l.starts_with("one") || l.starts_with("two")).collect();
    assert!(rows.len() == 2 && rows.iter().all(|row| row.contains("  pass ")), "{text}");
    let logs = bed.files_in(".ralph/logs");
    assert_eq!(logs.len(), 2, "{logs:?}");
    assert!(fs::read_to_string(&logs[0]).unwrap().contains("first") && text.contains(".ralph/logs/"), "{text}");
}

#[test]
fn s3_3_a_failure_is_told_with_what_the_agent_would_be_told() {
    let bed = trusted(&gates(&[("bad", "echo it broke here >&2; exit 3"), ("after", "true")]));
    let out = bed.ralph(&["gate"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(1), ""), "{out:?}");
    assert!(out.stdout.contains("    it broke here\n") && out.stdout.contains("not run"), "{}", out.stdout);
    let out = bed.ralph(&["gate", "--keep-going"]);
    assert!(out.code == Some(1) && out.stdout.contains("gate after: pass ("), "{}", out.stdout);
    let text = bed.ralph_ok(&["gate", "after"]);
    assert!(!text.contains("bad"), "{text}");
}

#[test]
fn a_name_that_is_no_gates_is_answered_with_those_there_are() {
    let bed = trusted(&gates(&[("one", "true"), ("two", "true")]));
    let out = bed.ralph(&["gate", "one", "tow"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""));
    assert!(out.stderr.contains("there is no gate \"tow\"; there are: one, two"), "{out:?}");
    assert_eq!(bed.files_in(".ralph/logs").len(), 0, "nothing was run");
}

#[test]
fn without_a_gate_nothing_is_proven() {
    let bed = Bed::in_git();
    let out = bed.ralph(&["gate"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert!(out.stderr.contains("ralph run") && out.stderr.contains("[[gate]]\n"), "{out:?}");
    bed.write("ralph.toml", "[[gate]]\n");
    let out = bed.ralph(&["gate"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "settings are no gate");
    assert!(out.stderr.starts_with("error: ralph.toml cannot be read: line 1") && out.stderr.lines().count() == 1, "{out:?}");
    assert_eq!(out.stderr.matches("ralph.toml").count(), 1, "{out:?}");
}

#[test]
fn what_nobody_trusted_is_not_run() {
    let bed = Bed::in_git();
    bed.write("ralph.toml", gates(&[("evil", "touch ran")]));
    let out = bed.ralph(&["gate"]);
    assert!(out.code == Some(1) && out.stdout.contains("unknown") && out.stdout.contains("ralph trust"), "{out:?}");
    assert!(!bed.path("ran").exists());
    bed.ralph_ok(&["trust", "--yes"]);
    bed.ralph_ok(&["gate"]);
    assert!(bed.path("ran").exists());
    bed.write("ralph.toml", gates(&[("evil", "touch ran-again")]));
    assert_eq!(bed.ralph(&["gate"]).code, Some(1));
    assert!(!bed.path("ran-again").exists(), "a changed file asks again");
}

#[test]
fn s3_2_a_verdict_is_kept_and_believed_only_when_asked() {
    let bed = Bed::in_git();
    bed.write("ralph.toml", gates(&[("count", &counted(&bed))]));
    bed.ralph_ok(&["trust", "--yes"]);
    bed.ralph_ok(&["gate"]);
    bed.ralph_ok(&["gate"]);
    assert_eq!(runs(&bed), 2);
    let text = bed.ralph_ok(&["gate", "--cached"]);
    assert!(runs(&bed) == 2 && text.matches("not run again: the files are the same as at ").count() == 1, "{text}");
    bed.write("new.txt", "x");
    bed.ralph_ok(&["gate", "--cached"]);
    assert_eq!(runs(&bed), 3, "the tree has changed");
}

#[test]
fn programs_get_the_findings() {
    let bed = trusted(&gates(&[("one", "printf '\\033[31mred'; exit 1")]));
    let out = bed.ralph(&["gate", "--json"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(1), ""), "{out:?}");
    let report: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!((&report["passed"], &report["loop"]), (&json!(false), &json!(null)));
    let finding = &report["findings"][0];
    assert_eq!(json!([finding["gate"], finding["kind"], finding["verdict"]]), json!(["one", "command", "fail"]));
    assert!(bed.path(finding["log"].as_str().unwrap()).exists());
    let out = bed.ralph(&["gate", "nobody", "--json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&out.stdout).unwrap()["error"]["kind"], "usage");
}

/// Words in a message can be measured only where there is one.
#[test]
fn markers_do_not_count_by_hand() {
    let bed = trusted("[[gate]]\nmarkers = [\"LINT_FINISH\"]\n[[gate]]\nname = \"one\"\ncommand = \"true\"\n");
    let text = bed.ralph_ok(&["gate"]);
    assert!(text.contains("only an agent's message can tell"), "{text}");
    let bed = trusted("[[gate]]\nmarkers = [\"LINT_FINISH\"]\n");
    let out = bed.ralph(&["gate"]);
    assert!(out.code == Some(1) && out.stderr.contains("nothing was measured, so nothing is proven"), "{out:?}");
    assert_eq!(bed.ralph(&["gate", "--json"]).code, Some(1));
}

/// A path is copied; one that is broken in two leads nowhere. How long it took is said once.
#[test]
fn the_table_fits_a_terminal_of_eighty_columns() {
    let bed = trusted(&gates(&[("./run all of the tests.sh", "exit 3"), ("a second one with a name", "true")]));
    let mut command = bed.command(RALPH);
    command.args(["gate", "--keep-going"]).env("TERM", "xterm-256color");
    let pty = Pty::spawn(command, 40, 80);
    assert_eq!(pty.wait_exit(SOON), Some(1));
    assert!(pty.wait_closed(SOON));
    let screen = pty.screen();
    let logs: Vec<&str> = screen.lines().filter(|line| line.starts_with("    .ralph/logs/")).collect();
    assert!(logs.len() == 2 && logs[0].ends_with("-run-all-of-the-tests-sh.log"), "{screen}");
    for log in logs {
        assert!(bed.path(log.trim()).exists(), "{log}");
    }
    let row = screen.lines().find(|line| line.starts_with("a second one with a name   pass ")).unwrap();
    assert_eq!(row.matches(" ms").count() + row.matches(" s").count() - row.matches(" second").count(), 1, "{row}");
}

/// What is open in a list no command prints, so the table has it, on a terminal as in a pipe.
#[test]
fn a_list_says_on_a_terminal_what_is_next() {
    let bed = Bed::in_git();
    bed.write("ralph.toml", "[[gate]]\nname = \"list\"\nfeatures = \"prd.json\"\n");
    bed.write(
        "prd.json",
        r#"{"userStories": [{"id": "US-2", "title": "two", "passes": true, "verify": "exit 3"}, {"id": "US-3", "passes": false}]}"#,
    );
    bed.ralph_ok(&["trust", "--yes"]);
    let piped = bed.ralph(&["gate"]).stdout;
    assert!(
        piped.contains("item US-2: running…\n") && piped.contains("    Next: US-2: two\n") && piped.contains("-item-US-2.log"),
        "{piped}"
    );
    let pty = on_a_terminal(&bed, &["gate"]);
    assert_eq!(pty.wait_exit(SOON), Some(1));
    assert!(pty.wait_closed(SOON) && pty.screen().contains("    Next: US-2: two\n"), "{}", pty.screen());
}

/// What a check agent is told to try by hand can be tried by hand.
#[test]
fn s3_2_the_commands_of_check_agents_can_be_run_by_hand() {
    let bed = Bed::in_git();
    bed.write(".ideal/worktree.yaml", "verify:\n  - echo of-agents\n");
    bed.ralph_ok(&["trust", "--yes"]);
    let out = bed.ralph(&["gate"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stderr.contains("check agents") && out.stdout.contains("echo of-agents  pass"), "{out:?}");
    bed.write("ralph.toml", gates(&[("own", "true")]));
    bed.ralph_ok(&["trust", "--yes"]);
    let names = |args: &[&str]| bed.ralph_json(args)["findings"].as_array().unwrap().iter().map(|f| f["gate"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&["gate", "--json"]), ["own"]);
    assert_eq!(names(&["gate", "--json", "--preset", "verify"]), ["echo of-agents"]);
    fs::remove_file(bed.path(".ideal/worktree.yaml")).unwrap();
    let out = bed.ralph(&["gate", "--preset", "verify"]);
    assert!(out.code == Some(1) && out.stderr.contains("check agents have to pass no command"), "{out:?}");
}

/// The output comes while the command runs, with its own colours; below it stands one line that counts.
#[test]
fn live_output_and_a_progress_line_on_a_terminal() {
    let go_on = "while [ ! -e go ]; do sleep 0.05; done";
    let bed = trusted(&gates(&[("slow", &format!("printf 'begun \\033[31mred\\n'; {go_on}; printf 'half '; echo line"))]));
    let pty = on_a_terminal(&bed, &["gate"]);
    let seconds = |s: &str| s.split("gate slow: ").nth(1)?.split_once(" s (2 min at most)")?.0.parse::<u32>().ok();
    let first = pty.wait_for(|s| s.contains("begun red") && seconds(s).is_some(), SOON).unwrap();
    let screen = pty.wait_for(|s| seconds(s) > seconds(&first), SOON).unwrap();
    assert_eq!(screen.matches(" (2 min at most)").count(), 1, "drawn in place: {screen}");
    assert!(String::from_utf8_lossy(&pty.raw()).contains("\u{1b}[31mred"));
    bed.write("go", "");
    assert_eq!(pty.wait_exit(SOON), Some(0));
    assert!(pty.wait_closed(SOON));
    let screen = pty.screen();
    assert!(screen.contains("half line\ngate slow: pass (") && !screen.contains(" (2 min at most)"), "{screen}");
    assert!(screen.lines().any(|l| l.starts_with("slow  pass ")), "{screen}");
}

/// However long the names, the line that is drawn in place stays one line.
#[test]
fn the_progress_line_fits_the_terminal() {
    let name = "n".repeat(60);
    let bed = trusted(&gates(&[(&name, "while [ ! -e go ]; do sleep 0.05; done")]));
    let mut command = bed.command(RALPH);
    command.args(["gate"]).env("TERM", "dumb");
    let pty = Pty::spawn(command, 20, 40);
    let screen = pty.wait_for(|s| s.lines().any(|l| l.ends_with("nn…")), SOON).unwrap();
    std::thread::sleep(Duration::from_millis(800));
    assert_eq!(pty.screen(), screen, "nothing moves");
    bed.write("go", "");
    assert_eq!(pty.wait_exit(SOON), Some(0));
}

fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).join("stat").exists()
}

#[test]
fn ctrl_c_ends_the_commands_and_all_they_started() {
    let bed = trusted(&gates(&[("slow", "(trap '' TERM INT; sleep 300) & echo $! > pid; echo up; wait")]));
    let pty = on_a_terminal(&bed, &["gate"]);
    pty.wait_for(|s| s.lines().any(|l| l == "up"), SOON).unwrap();
    let pid = bed.read("pid");
    assert!(is_alive(&pid));
    pty.send("\u{3}");
    assert_eq!(pty.wait_exit(SOON), Some(130));
    assert!(pty.wait_closed(SOON));
    let screen = pty.screen();
    assert!(screen.lines().any(|l| l.starts_with("gate slow: interrupted (")), "{screen}");
    assert!(!screen.contains("unknown") && !screen.contains("error:"), "said once: {screen}");
    let until = Instant::now() + Duration::from_secs(5);
    while is_alive(&pid) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!is_alive(&pid), "{pid} still runs");
    assert_eq!(bed.kept("verdicts").len(), 0, "an interrupted run is no verdict");
}

#[test]
fn a_loop_is_measured_by_its_own_commands_too() {
    let bed = trusted(&gates(&[("one", "true")]));
    bed.ralph_ok(&["start", "Go", "--verify", "echo own > own.txt"]);
    bed.ralph_ok(&["trust", "--yes"]);
    let report = bed.ralph_json(&["gate", "--json"]);
    let names: Vec<&str> = report["findings"].as_array().unwrap().iter().map(|f| f["gate"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "echo own > own.txt"]);
    assert_eq!(report["loop"], bed.status()["id"]);
    assert!(bed.path("own.txt").exists());
    assert_eq!(bed.ralph(&["gate", "--loop", "nobody"]).code, Some(3));
}

/// A command is trusted as it will be read, not as it was typed.
#[test]
fn white_space_around_a_loops_command_is_nothing() {
    let bed = Bed::new();
    bed.ralph_ok(&["start", "Go", "--verify", "  true\n"]);
    let report = bed.ralph_json(&["gate", "--json"]);
    assert_eq!((report["findings"][0]["gate"].as_str(), report["findings"][0]["verdict"].as_str()), (Some("true"), Some("pass")));
    bed.work().send();
    assert_eq!(bed.codes(), ["gates.passed"]);
}

/// Commands that run side by side are told apart.
#[test]
fn output_of_two_commands_at_once() {
    let wait = "while [ ! -e go ]; do sleep 0.05; done";
    let one = |name: &str| format!("[[gate]]\nname = \"{name}\"\nparallel = true\ncommand = \"echo from-{name}; {wait}; printf half\"\n");
    let bed = trusted(&[one("a"), one("b")].concat());
    let pty = on_a_terminal(&bed, &["gate"]);
    let both = |s: &str| ["a | from-a", "b | from-b"].iter().all(|line| s.lines().any(|l| l == *line));
    let screen = pty.wait_for(both, SOON).unwrap();
    assert!(!screen.lines().any(|l| l == "gate a" || l == "gate b"), "a heading for each would double the lines: {screen}");
    pty.wait_for(|s| s.contains("gate a, b: ") || s.contains("gate b, a: "), SOON).unwrap();
    bed.write("go", "");
    assert_eq!(pty.wait_exit(SOON), Some(0));
    assert!(pty.wait_closed(SOON) && pty.screen().contains("a | half\n"), "{}", pty.screen());
}

#[test]
fn only_a_person_accepts_what_the_guard_suspects() {
    let bed = trusted(&gates(&[("one", "true")]));
    let tests = |text: &str| bed.write("tests/a.rs", text);
    tests("#[test]\nfn a() {}\n#[test]\nfn b() {}\n#[test]\nfn c() {}\n");
    assert_eq!(bed.ralph(&["gate", "--accept"]).code, Some(3), "there is no loop");
    bed.ralph_ok(&["start", "Go", "--endless"]);
    for sign in ["CLAUDECODE", "AI_AGENT"] {
        let out = run(bed.command(RALPH).args(["gate", "--accept"]).env(sign, "1"), b"");
        assert!(out.code == Some(1) && out.stderr.contains("in their own terminal"), "{out:?}");
    }
    tests("#[test]\nfn a() {}\n#[test]\nfn b() {}\n");
    let guard = |text: &str| text.lines().any(|l| l.starts_with("guard: "));
    let out = bed.ralph(&["gate"]);
    assert!(guard(&out.stdout) && out.code == Some(1), "a test that was there is gone: {out:?}");
    let text = bed.ralph_ok(&["gate", "--accept"]);
    assert!(text.contains("accepted: ") && text.contains("compares with the present state"), "{text}");
    assert!(!guard(&bed.ralph_ok(&["gate"])));
    tests("#[test]\nfn a() {}\n");
    bed.write("ralph.toml", format!("guard = \"block\"\n{}", gates(&[("one", "true")])));
    bed.ralph_ok(&["trust", "--yes"]);
    let out = bed.ralph(&["gate"]);
    assert!(out.code == Some(1) && out.stdout.contains("the proof itself has changed"), "as the hook would: {out:?}");
}

/// The report is there whether or not the gates hold, and whatever their commands print; CI reads it, and so does another parser than ours.
#[test]
fn eyes_4_the_findings_are_a_junit_file_too() {
    let odd = "printf 'error: <b> & ]]> \\033[31mred\\001\\377 ü\\n'; exit 3";
    let settings = gates(&[("fine", "true"), ("odd <&\u{e9}>", odd), ("not run", "true"), ("missing", "no-such-program-at-all")]);
    let bed = trusted(&settings);
    let file = bed.path("reports/ci/gates.xml");
    let out = bed.ralph(&["gate", "--junit", "reports/ci/gates.xml"]);
    assert_eq!(out.code, Some(1), "{out:?}");
    let read = || TestResults::of_junit(&fs::read(&file).unwrap()).unwrap();
    let results = read();
    assert_eq!((results.passed, results.ignored, results.failed.len()), (1, 2, 1), "{results:?}");
    assert!(results.failed.contains("ralph gates::odd <&\u{e9}>"), "{results:?}");
    bed.ralph(&["gate", "--keep-going", "--junit", "reports/ci/gates.xml"]);
    assert_eq!((read().passed, read().ignored, read().failed.len()), (2, 0, 2), "{:?}", read());
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing else is left there");
    let nowhere = bed.ralph(&["gate", "fine", "--junit", "README.md/x.xml"]);
    assert!(nowhere.code == Some(1) && nowhere.stderr.contains("cannot write README.md/x.xml: "), "{nowhere:?}");
    let printed = bed.ralph_ok(&["gate", "fine", "--junit", "/dev/stdout"]);
    assert!(printed.contains("</testsuites>") && fs::symlink_metadata("/dev/stdout").unwrap().is_symlink(), "{printed}");
    match Skip::unless_installed("python3") {
        Ok(python) => assert_eq!(as_python_reads_it(&python, &file), "4 1 1 ['fine', 'odd <&\u{e9}>', 'not run', 'missing'] True\n"),
        Err(skip) => skip.tell(),
    }
}

fn as_python_reads_it(python: &Path, file: &Path) -> String {
    let script = "import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot().find('testsuite')
failure = next(suite.iter('failure'))
said = 'error: <b> & ]]> red' in failure.text and 'exit code 3' in failure.get('message')
print(suite.get('tests'), suite.get('failures'), suite.get('errors'), [case.get('name') for case in suite], said)";
    let out = run(std::process::Command::new(python).env("PYTHONIOENCODING", "utf-8").args(["-c", script]).arg(file), b"");
    out.stdout + &out.stderr
}

/// t24: what a gate prints may be anybody's words. Colours arrive, whatever else steers a terminal does not; alone and beside another gate.
#[test]
fn t24_a_gates_output_does_not_steer_the_terminal() {
    let evil = r"printf 'a\033]0;evil\007b\033]52;c;ZXZpbA==\033\\c\033[2Jd\033[6n\033P+q\033\\\033[31mred\033[0m\n'";
    let alone = gates(&[("evil", evil)]);
    let beside = format!("{alone}parallel = true\n{}parallel = true\n", gates(&[("other", "true")]));
    for settings in [alone, beside] {
        let bed = trusted(&settings);
        let pty = on_a_terminal(&bed, &["gate"]);
        assert_eq!(pty.wait_exit(SOON), Some(0), "{}", pty.screen());
        assert!(pty.wait_closed(SOON));
        let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
        assert!(raw.contains("abcd\u{1b}[31mred\u{1b}[0m"), "{raw:?}");
        for steers in ["\u{1b}]", "\u{1b}P", "\u{1b}[2J", "\u{1b}[6n", "evil\u{7}", "\u{7}"] {
            assert!(!raw.contains(steers), "{steers:?}: {raw:?}");
        }
    }
}
