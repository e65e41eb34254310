//! One row for each parser of foreign bytes: samples, words of its own, and what it has to keep.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
};

use crate::{
    hosts::{
        self, Decode, Exit, Host, Invocation, Launch,
        acp::AcpClient,
        claude::{
            denials,
            settings_file::{self, Settings},
            stream::Stream,
            transcript::{self, Before},
            usage::Meter,
        },
        prices::Prices,
        slash,
    },
    setup::ralph_toml::Draft,
};
use ralph_core::{
    config::{Config, worktree_commands},
    gate::{
        File, Finding, Kind, Stream as Pipe, Useful, Verdict, completion_markers,
        list::{Item, List},
        pull_request::{CheckRun, JobLog, PullRequest, Repository},
        test_results::{Reader, TestResults},
    },
    history::History,
    journal,
    judge::Claim,
    loops::{
        FrontMatter, LoopFile, Value,
        progress_txt::{self as progress, Progress},
        salvage,
    },
    report::junit,
    text::{self, Masking, PlainLines, Secrets},
};

/// A parser and its promises.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Takes bytes, and says what kind of thing happened, or which promise was broken.
    pub(crate) run: fn(&[u8]) -> Result<u64, String>,
    samples: &'static [&'static str],
    /// Files with samples: a folder or a file, from this crate on.
    files: &'static str,
    pub(crate) words: &'static [&'static str],
}

const LOOP: &str = "---\nactive: true\niteration: 3\nsession_id: 5e551017-0000-4000-8000-000000000001\nmax_iterations: 20\ncompletion_promise: \"ALL DONE\"\nmax_hours: 1.5\nverify:\n  - cargo test\nstarted_at: \"2026-11-15T14:45:30Z\"\n---\n\nMake the tests pass.\n";

const LIST: &str = "{\"project\":\"x\",\"features\":[{\"id\":\"F1\",\"title\":\"one\",\"passes\":false,\"steps\":[\"a\",\"b\"],\"verify\":[\"true\"]},{\"id\":\"F2\",\"description\":\"two\",\"passes\":true}]}";

const PRD: &str =
    "{\"userStories\":[{\"id\":\"US-1\",\"title\":\"t\",\"acceptanceCriteria\":[\"x\"],\"priority\":1,\"passes\":false,\"notes\":\"\"}]}";

const BOXES: &str = "# Plan\n\n- [ ] first\n  - [x] step\n- [x] second\n1. [ ] third `code`\n\n```\n- [ ] not one\n```\n";

const JOURNAL: &str = "{\"v\":1,\"seq\":1,\"at\":\"2026-11-15T14:45:30Z\",\"loop\":\"main-1\",\"event\":{\"kind\":\"started\",\"file\":\"ralph-loop.local.md\",\"by\":\"cli\",\"prompt\":\"Go\"},\"state\":{\"stops\":0}}\n{\"v\":1,\"seq\":2,\"at\":\"2026-11-15T14:46:30Z\",\"loop\":\"main-1\",\"session\":\"s\",\"event\":{\"kind\":\"adopted\"},\"state\":{\"stops\":0,\"owner\":\"s\"}}\n";

const JUNIT: &str = "<?xml version=\"1.0\"?>\n<testsuites tests=\"3\" failures=\"1\"><testsuite name=\"s\" tests=\"3\" failures=\"1\"><testcase classname=\"a\" name=\"b\"/><testcase classname=\"a\" name=\"c\"><failure message=\"m\">x</failure></testcase><testcase name=\"d\"><skipped/></testcase></testsuite></testsuites>";

const LIBTEST: &str = "\nrunning 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest d ... ignored\n\nfailures:\n\n---- a::c stdout ----\nthread 'a::c' panicked at src/lib.rs:3:5:\nassertion failed\n\nfailures:\n    a::c\n\ntest result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";

const TAP: &str = "TAP version 13\n# Subtest: x\n    ok 1 - inner\n    1..1\nok 1 - x\nnot ok 2 - y\n  ---\n  message: m\n  ...\nok 3 - z # SKIP\n1..3\n# tests 3\n# pass 1\n# fail 1\n";

const EVENT: &str = "{\"session_id\":\"s\",\"transcript_path\":\"/t.jsonl\",\"cwd\":\"/p\",\"prompt_id\":\"p\",\"permission_mode\":\"default\",\"hook_event_name\":\"Stop\",\"stop_hook_active\":false,\"last_assistant_message\":\"Done.\\n<promise>X</promise>\",\"background_tasks\":[{\"type\":\"bash\",\"status\":\"running\",\"command\":\"sleep 1\"}]}";

const TOML: &str = "[loop]\nmax_iterations = 20\nmax_hours = 8.0\n\n[[gate]]\nname = \"test\"\nrun = \"cargo test\"\ndeadline = \"10m\"\nenv = { A = \"b\" }\n\n[[gate]]\nfile = \"REPORT.md\"\ncontains = \"PASS\"\nfresh = [\"src/**\"]\n\n[guard]\npolicy = \"warn\"\n";

const SETTINGS: &str = "{\n  // comment\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"ralph hook claude\", \"timeout\": 600}]}],\n  },\n  \"env\": {\"A\": \"1\"},\n  \"permissions\": {\"allow\": [\"Bash(ls:*)\"]}\n}\n";

const SECRETS: &str = "API_TOKEN=abcdef12\n{\"password\": \"hunter2\", \"n\": 12345678901234567}\nhttps://user:pass1@host/x?token=0a1b2c3d&y\nAuthorization: Bearer 0a1b2c3d4e5f6a7b8c\n\\\"api_key\\\": \\\"0a1b2c\\\"\n-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\nQw==\n-----END PRIVATE KEY-----\nghp_0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f\n";

pub(crate) const TARGETS: [Target; 28] = [
    Target {
        name: "event",
        run: event,
        samples: &[EVENT, "{}"],
        files: "",
        words: &["\"last_assistant_message\":", "\"background_tasks\":[", "\"status\":\"running\"", "\"hook_event_name\":\"Stop\""],
    },
    Target {
        name: "loop-file",
        run: loop_file,
        samples: &[LOOP, "---\niteration: 1\n---\n"],
        files: "../../docs/ralph-loop.template.md",
        words: &[
            "active: true\n",
            "iteration: ",
            "max_iterations: ",
            "completion_promise: ",
            "verify:\n",
            "- ",
            "|\n",
            ">-\n",
            "&a ",
            "*a",
            "!!str ",
            "? ",
        ],
    },
    Target {
        name: "front-matter",
        run: front_matter,
        samples: &[LOOP],
        files: "../../docs/ralph-loop.template.md",
        words: &["iteration: ", "---\n", "...\n", "{a: ", "[a, ", "# x\n"],
    },
    Target {
        name: "transcript",
        run: transcript,
        samples: &["{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"content\":\"/cancel-ralph\"}\n"],
        files: "tests/transcripts",
        words: &[
            "\"type\":\"assistant\"",
            "\"type\":\"user\"",
            "\"isSidechain\":true",
            "\"isMeta\":true",
            "\"tool_use\"",
            "\"text\":",
            "\"timestamp\":\"",
            "[Request interrupted by user]",
            "\"queue-operation\"",
        ],
    },
    Target {
        name: "usage",
        run: usage,
        samples: &[],
        files: "tests/transcripts",
        words: &["\"usage\":{", "\"input_tokens\":", "\"id\":\"", "\"model\":\""],
    },
    Target {
        name: "stream",
        run: stream,
        samples: &[],
        files: "tests/streams",
        words: &[
            "\"type\":\"result\"",
            "\"type\":\"stream_event\"",
            "\"content_block_delta\"",
            "\"message_start\"",
            "\"total_cost_usd\":",
            "\"permission_denials\":[",
            "\"modelUsage\":{",
            "\"subtype\":\"init\"",
        ],
    },
    Target {
        name: "agent-streams",
        run: agent_streams,
        samples: &[],
        files: "tests/agents",
        words: &[
            "\"type\":\"result\"",
            "\"type\":\"turn.failed\"",
            "\"type\":\"error\"",
            "\"usage\":{",
            "\"tool_use\"",
            "\"session_id\":\"",
            "\"message\":\"429 too many requests, try again at Jan 15th, 2027 8:00 AM\"",
        ],
    },
    Target {
        name: "acp",
        run: acp,
        samples: &[],
        files: "tests/agents/acp.jsonl",
        words: &[
            "\"method\":\"session/update\"",
            "\"method\":\"session/request_permission\"",
            "\"sessionUpdate\":\"agent_message_chunk\"",
            "\"sessionUpdate\":\"tool_call_update\"",
            "\"sessionUpdate\":\"usage_update\"",
            "\"stopReason\":\"cancelled\"",
            "\"toolCallId\":\"",
            "\"kind\":\"allow_once\"",
            "\"id\":5",
            "\n> ",
        ],
    },
    Target {
        name: "toml",
        run: toml,
        samples: &[TOML],
        files: "",
        words: &[
            "[[gate]]\n",
            "[loop]\n",
            "[run]\n",
            "[guard]\n",
            "run = ",
            "deadline = \"",
            "'''",
            "\"\"\"",
            "[a.b]\n",
            "contains = \"",
            "2026-11-15",
        ],
    },
    Target {
        name: "yaml",
        run: yaml,
        samples: &["verify:\n  - cargo test\n  - run: npm test\n    timeout: 60\n", "worktree: x\nverify: [a, b]\n"],
        files: "",
        words: &["verify:", "- ", "|\n", ">\n", "&a ", "*a ", "<<: ", "{", "? "],
    },
    Target {
        name: "lists",
        run: lists,
        samples: &[LIST, PRD, BOXES, "[{\"id\":1,\"passes\":false}]"],
        files: "",
        words: &["\"passes\": false", "\"passes\":true,", "\"id\":\"F1\"", "- [ ] ", "- [x] ", "[X]", "\"verify\":[", "```\n", "    "],
    },
    Target {
        name: "progress",
        run: progress,
        samples: &["Iteration: 3\nMax Iterations: 20\nStatus: IN_PROGRESS\n"],
        files: "",
        words: &["Iteration:", "Status:", "IN_PROGRESS", "COMPLETE"],
    },
    Target {
        name: "journal",
        run: journal,
        samples: &[JOURNAL],
        files: "",
        words: &["\"event\":{\"kind\":\"stop\"", "\"state\":{", "\"kind\":\"paused\"", "\"kind\":\"broke\"", "\"spent_ms\":"],
    },
    Target {
        name: "junit",
        run: junit,
        samples: &[JUNIT],
        files: "",
        words: &[
            "<testcase name=\"",
            "<failure/>",
            "<error/>",
            "</testsuite>",
            "<!DOCTYPE x [<!ENTITY a \"b\">]>",
            "&a;",
            "tests=\"",
            "<skipped/>",
        ],
    },
    Target {
        name: "detect",
        run: detect,
        samples: &[
            "{\"packageManager\":\"pnpm@9\",\"scripts\":{\"test\":\"jest\",\"lint\":\"eslint .\"},\"tasks\":{\"test\":\"x\"}}",
            "[workspace]\n[workspace.lints.clippy]\n[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\nfiles = 'a'\n[testenv]\n",
            ".PHONY: test\nX := 1\ntest lint: a\n\tb\n@check x='':\n",
        ],
        files: "",
        words: &["\"scripts\":{", "\"test\":\"", "[tool.", "[lints]\n", "test:\n", ":=", "enable_testing", "task :test", "\"typescript\""],
    },
    Target {
        name: "tests",
        run: tests,
        samples: &[LIBTEST, TAP],
        files: "../core/tests/test_output",
        words: &[
            "running ",
            "test x ... ok\n",
            "test x ... FAILED\n",
            "not ok ",
            "ok 1 - ",
            "1..",
            "# tests ",
            "test result: ok. ",
            "failures:\n",
            "Bail out!",
            "3 failed, 4 passed in 0.1s\n",
            "== short test summary info ==\nFAILED a.py::b - x\n",
            "== test session starts ==\n",
            "Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 total\n",
            "  ● a › b\n",
            " Test Files  1 failed (1)\n      Tests  1 failed (1)\n",
            " FAIL  a.test.js > b\n",
            "  1 passing (3ms)\n",
            "  1 failing\n",
            "  1) a\n       b:\n",
            "--- FAIL: TestA (0.00s)\n",
            "FAIL\tx/y\t0.1s\n",
            "ok  \tx/y\t0.1s\n",
            "{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"T\"}\n",
            "────\n     Summary [   0.1s] 2 tests run: 1 passed, 1 failed, 0 skipped\n",
            "        FAIL [   0.1s] (1/2) a b\n",
            "Finished in 1 second\n2 examples, 1 failure\n",
            "18446744073709551615 passed in 1s\n",
            "Ran 3 tests in 0.1s\n",
            "FAILED (failures=1)\n",
        ],
    },
    Target {
        name: "settings",
        run: settings,
        samples: &[SETTINGS, "{}", ""],
        files: "../../plugin/hooks",
        words: &["\"hooks\":", "\"Stop\":", "// x\n", "/* x */", "\"command\":\"ralph hook claude\"", "\"matcher\":\"\"", ",,"],
    },
    Target {
        name: "slash",
        run: slash,
        samples: &[
            "/ralph-loop Make it pass --max-iterations 20 --completion-promise \"ALL DONE\"",
            "/ralph-loop 'a b' --verify 'cargo test' \\\n --hours 2 # x",
            "/cancel-ralph",
        ],
        files: "",
        words: &["--max-iterations ", "--completion-promise ", "--verify ", "--", "\\\n", "\\'", "\"", "$(", "/ralph:ralph-loop "],
    },
    Target {
        name: "promise",
        run: promise,
        samples: &[
            "All tests pass.\n\n<promise>ALL DONE</promise>",
            "> <promise>ALL DONE</promise>",
            "```\n<promise>ALL DONE</promise>\n```",
            "Tests: 12 passed, 0 failed\n\n- [x] <promise>ALL DONE</promise>.",
        ],
        files: "",
        words: &["<promise>", "</promise>", "ALL DONE", "<promise>ALL DONE</promise>", "> ", "```", "not ", "I will not say ", "<!--"],
    },
    Target {
        name: "secrets",
        run: secrets,
        samples: &[SECRETS],
        files: "",
        words: &[
            "ghp_",
            "sk-ant-",
            "AKIA",
            "eyJ",
            "token=",
            "\"password\":\"",
            "\\\"secret\\\":\\\"",
            "://",
            "@",
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            "Bearer ",
            "--token ",
            "0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f",
            "my own secret value",
        ],
    },
    Target {
        name: "output",
        run: output,
        samples: &[LIBTEST, "error[E0308]: mismatched types\n --> src/lib.rs:3:5\n  |\n3 |     x\n  |     ^ expected\n"],
        files: "",
        words: &[
            "error: ",
            "warning: ",
            "FAILED",
            "panicked at ",
            "\u{8}",
            "\u{1b}[2K\r",
            "\u{1b}]0;x\u{7}",
            "Traceback (most recent call last):\n",
        ],
    },
    Target {
        name: "markers",
        run: markers,
        samples: &["{\"reason\":\"lint\"}\n{\"reason\":\"tests\"}\n"],
        files: "",
        words: &["{\"reason\":\"", "\"file\":"],
    },
    Target {
        name: "entries",
        run: entries,
        samples: &[BOXES, "| a | b |\n|---|---|\n| 1 | 2 |\n\nA paragraph.\n"],
        files: "",
        words: &["| ", "|---|", "- ", "1. ", "```\n", "~~~\n", "# ", "\n\n"],
    },
    Target {
        name: "expression",
        run: expression,
        samples: &["^PASS$\nPASS", "(a|b)+c{2,3}\nabcc"],
        files: "",
        words: &["(", "(?i)", "[^", "{1000}", "\\b", "\\p{L}", ".*", "+?", "|"],
    },
    Target {
        name: "requests",
        run: requests,
        samples: &[
            "[{\"number\":1,\"state\":\"OPEN\",\"url\":\"https://github.com/o/r/pull/1\",\"headRefName\":\"b\",\"headRefOid\":\"abc\",\"baseRefName\":\"main\",\"isDraft\":false,\"statusCheckRollup\":[{\"__typename\":\"CheckRun\",\"name\":\"t\",\"status\":\"COMPLETED\",\"conclusion\":\"FAILURE\",\"detailsUrl\":\"https://github.com/o/r/actions/runs/1/job/2\"}]}]",
        ],
        files: "",
        words: &["\"conclusion\":\"", "\"status\":\"", "\"__typename\":\"StatusContext\"", "\"state\":\"", "\"mergeStateStatus\":\""],
    },
    Target {
        name: "job-log",
        run: of_job,
        samples: &[
            "2026-11-15T10:00:00.0000000Z ##[group]Run x\n2026-11-15T10:00:01.0000000Z ##[error]Process completed with exit code 1.\n",
        ],
        files: "",
        words: &["##[error]", "##[group]", "##[endgroup]"],
    },
    Target {
        name: "denials",
        run: denials,
        samples: &["{\"command\":\"cd x && npm run build | tee y\"}", "{\"url\":\"https://example.org/x\"}"],
        files: "",
        words: &["\"command\":\"", " && ", " | ", "$(", "2>&1", "<<EOF\\n", "sudo "],
    },
    Target {
        name: "remote",
        run: remote,
        samples: &["git@github.com:owner/name.git", "https://user:pass@github.com:443/owner/name"],
        files: "",
        words: &["://", "@", ":", "/", ".git", "ssh", "https"],
    },
];

/// What a target begins with.
pub(crate) fn samples(target: &Target) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = target.samples.iter().map(|sample| sample.as_bytes().to_vec()).collect();
    if !target.files.is_empty() {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(target.files);
        let mut paths: Vec<_> =
            fs::read_dir(&place).map_or_else(|_| vec![place], |entries| entries.flatten().map(|entry| entry.path()).collect());
        paths.sort();
        let files = paths.iter().filter_map(|path| fs::read(path).ok());
        // Of a long recording its beginning and its end.
        all.extend(files.flat_map(|bytes| {
            let n = bytes.len().min(8 << 10);
            [bytes[..n].to_vec(), bytes[bytes.len() - n..].to_vec()]
        }));
    }
    all.push(Vec::new());
    all
}

/// What kind of thing happened: inputs that do something new are worth going on from.
#[expect(clippy::unnecessary_wraps, reason = "every target ends with it")]
fn what(of: impl Hash) -> Result<u64, String> {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    Ok(hasher.finish())
}

fn size(n: usize) -> u32 {
    n.checked_ilog2().map_or(0, |log| log + 1)
}

/// The kind of an error: its words without what is quoted or counted.
fn kind(text: &str) -> String {
    text.split(['`', '"', ':']).next().unwrap_or_default().chars().filter(|c| !c.is_ascii_digit()).take(60).collect()
}

fn must(holds: bool, promise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(promise.to_owned()) }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn event(bytes: &[u8]) -> Result<u64, String> {
    let Ok((event, _)) = hosts::read(bytes, &Invocation::default()) else { return what("no event") };
    let background = &event.background;
    must(background.iter().all(|task| task.chars().count() <= 101), "what runs in the background is told in short")?;
    must(event.stop_fingerprint().len() == 16, "a fingerprint has 16 digits")?;
    what((kind(&event.name), event.session().is_some(), event.message.is_some(), size(background.len()), event.after_a_block))
}

fn loop_file(bytes: &[u8]) -> Result<u64, String> {
    let salvaged = salvage(bytes, "main");
    let file = match LoopFile::parse(bytes) {
        Ok(file) => file,
        Err(problem) => return what((kind(&problem.to_string()), format!("{salvaged:?}").len().ilog2())),
    };
    let Ok((new, changed)) = file.with(bytes, "iteration", Value::Plain("77")) else { return what("cannot be changed") };
    must(changed.iteration == 77, "the value is what was written")?;
    let again = LoopFile::parse(&new).map_err(|e| format!("what was written cannot be read: {e}"))?;
    must(again == changed, "what was written is read again")?;
    let rest = |file: &LoopFile| {
        (
            file.active,
            file.prompt.clone(),
            file.completion_promise.clone(),
            file.max_iterations(),
            file.verify.clone(),
            file.session_id.clone(),
        )
    };
    must(rest(&again) == rest(&file), "nothing else changes")?;
    let back = changed.with(&new, "iteration", Value::Plain(&file.iteration.to_string())).map_err(|e| e.to_string())?.1;
    must(back.iteration == file.iteration && rest(&back) == rest(&file), "there and back again")?;
    what((file.active, size(file.prompt.len()), file.completion_promise.is_some(), file.warnings.len(), size(file.verify.len())))
}

fn front_matter(bytes: &[u8]) -> Result<u64, String> {
    let matter = match FrontMatter::parse(bytes) {
        Ok(matter) => matter,
        Err(problem) => return what(kind(&problem.to_string())),
    };
    let body = matter.body(bytes).to_vec();
    match matter
        .with_value(bytes, "ünknown_key", Value::Text("a \"b\"\n\u{7}c"))
        .or_else(|_| matter.with_value(bytes, "k", Value::Text("a \"b\"\n\u{7}c")))
    {
        Ok((new, matter)) => {
            must(matter.body(&new) == body, "the prompt stays")?;
            must(FrontMatter::parse(&new).is_ok(), "what was written can be read")?;
            what(("written", size(new.len()), size(body.len())))
        }
        Err(problem) => what(("not written", kind(&problem.to_string()))),
    }
}

fn transcript(bytes: &[u8]) -> Result<u64, String> {
    let round = transcript::last_iteration(bytes, &Before::default(), Some("BBB"));
    let queue = ["/cancel-ralph".to_owned()];
    let before = Before { at: Some(1_700_000_000_000), upto: Some(bytes.len() as u64 / 2), queue: &queue, ..Before::default() };
    let later = transcript::last_iteration(bytes, &before, None);
    let interrupted = transcript::was_interrupted(bytes, "go");
    let used = transcript::used_tools_since(bytes, 0);
    let error = transcript::last_error(bytes).is_some();
    let fill = transcript::context_percent(bytes).is_some();
    must(round.text.as_ref().is_none_or(|text| text.len() <= 3 * bytes.len() + 3), "a text is no longer than what it was read from")?;
    what((
        round.text.is_some(),
        round.caught_up,
        round.torn,
        size(round.queue.len()),
        later.text.is_some(),
        size(later.queue.len()),
        interrupted,
        used,
        error,
        fill,
        round.interrupted,
    ))
}

fn usage(bytes: &[u8]) -> Result<u64, String> {
    let mut meter = Meter::since(0);
    let mut seen = 0;
    for line in bytes.split(|b| *b == b'\n') {
        seen += usize::from(meter.line(line, |id| id.len() == 3).is_some());
    }
    what(size(seen))
}

fn stream(bytes: &[u8]) -> Result<u64, String> {
    let mut stream = Stream::default();
    let mut told = Vec::new();
    let mut kinds = [0_usize; 4];
    for line in bytes.split(|b| *b == b'\n') {
        kinds[stream.line(line, &mut told) as usize] += 1;
    }
    let outcome = stream.outcome(Exit { code: Some(1), signal: None }, "complaint");
    let work = stream.work();
    let told_size = serde_json::to_string(&told).map_or(0, |json| json.len());
    must(told_size <= 40 * bytes.len() + 1_000, "what is told is bounded by what was said")?;
    let short = format!("{outcome:?}");
    what((
        kinds.map(size),
        size(told.len()),
        kind(&short),
        stream.is_over(),
        work.estimated,
        stream.text().is_some(),
        stream.context().is_some(),
    ))
}

/// The output of every agent but Claude Code, to each of their decoders.
fn agent_streams(bytes: &[u8]) -> Result<u64, String> {
    let mut all = Vec::new();
    for host in Host::ALL.iter().skip(1) {
        all.push(listened(host.log_reader().as_mut(), bytes)?);
    }
    what(all)
}

/// The lines of an agent over ACP, in a run and from a log.
fn acp(bytes: &[u8]) -> Result<u64, String> {
    let prices = Prices::default();
    let launch = Launch { permission_mode: Some("acceptEdits"), folder: Path::new("/project"), prompt: "Go", ..Launch::of_log(&prices) };
    let mut live = AcpClient::new(&launch, true);
    let mut sent = live.first_words().unwrap_or_default();
    let mut told = Vec::new();
    for line in bytes.split(|b| *b == b'\n') {
        live.line(line, &mut told);
        sent.extend(live.words_to_send().concat());
    }
    sent.extend(live.cancel().concat());
    must(sent.len() <= 20 * bytes.len() + 2_000, "what is sent is bounded by what was said")?;
    must(!String::from_utf8_lossy(&sent).contains("\"optionId\":\"proceed_always\""), "nothing is allowed for good")?;
    let heard = listened(&mut AcpClient::of_log(), bytes)?;
    let outcome = format!("{:?}", live.outcome(Exit { code: Some(1), signal: None }, "complaint"));
    what((heard, size(sent.len()), kind(&outcome), size(live.work().denied.len()), live.context().is_some()))
}

/// What a decoder makes of lines.
fn listened(stream: &mut dyn Decode, bytes: &[u8]) -> Result<u64, String> {
    let (mut told, mut kinds) = (Vec::new(), [0_usize; 4]);
    for line in bytes.split(|b| *b == b'\n') {
        kinds[stream.line(line, &mut told) as usize] += 1;
    }
    let outcome = format!("{:?}", stream.outcome(Exit { code: Some(1), signal: None }, "complaint"));
    let work = stream.work();
    let told_size = serde_json::to_string(&told).map_or(0, |json| json.len());
    must(told_size <= 40 * bytes.len() + 1_000, "what is told is bounded by what was said")?;
    what((kinds.map(size), size(told.len()), kind(&outcome), stream.is_over(), work.cost_unknown, stream.text().is_some()))
}

fn toml(bytes: &[u8]) -> Result<u64, String> {
    match Config::parse(bytes) {
        Ok(config) => what(("fine", size(format!("{config:?}").len()))),
        Err(problem) => {
            let problem = problem.to_string();
            must(problem.len() < 4_000, "a problem is told in short")?;
            what(kind(&problem))
        }
    }
}

fn yaml(bytes: &[u8]) -> Result<u64, String> {
    match worktree_commands(bytes) {
        Ok(commands) => what(("fine", size(commands.len()))),
        Err(problem) => what(kind(&problem.to_string())),
    }
}

fn lists(bytes: &[u8]) -> Result<u64, String> {
    let list = match List::parse(bytes) {
        Ok(list) => list,
        Err(problem) => return what(kind(&problem.to_string())),
    };
    let open = list.items.iter().position(Item::is_open);
    let Some(index) = open else { return what(("all done", size(list.items.len()))) };
    let new = match list.with_done(bytes, index) {
        Ok(new) => new,
        Err(problem) => return what(("cannot be marked", kind(&problem.to_string()))),
    };
    let again = List::parse(&new).map_err(|e| format!("what was marked cannot be read: {e}"))?;
    must(again.items.len() == list.items.len(), "no item comes or goes")?;
    must(again.items[index].passes, "the item is marked")?;
    for (at, (before, after)) in list.items.iter().zip(&again.items).enumerate() {
        must(at == index || before.passes == after.passes, "no other item is marked")?;
        must(before.id == after.id && before.title == after.title, "items stay what they are")?;
    }
    what(("marked", size(list.items.len()), size(new.len().abs_diff(bytes.len()))))
}

fn progress(bytes: &[u8]) -> Result<u64, String> {
    let before = Progress::parse(bytes);
    let new = progress::with(bytes, progress::Key::Iteration, "7");
    let after = Progress::parse(&new);
    must(after.iteration == Some(7), "the value is what was written")?;
    must(Progress { iteration: before.iteration, ..after } == before, "nothing else changes")?;
    must(new.len() <= bytes.len() + 40, "a value is all that comes")?;
    what((before.iteration.is_some(), before.status.is_some(), before.settings.max_iterations.is_some()))
}

fn journal(bytes: &[u8]) -> Result<u64, String> {
    let (records, torn) = journal::records(bytes);
    for record in &records {
        let json = serde_json::to_vec(record).map_err(|e| e.to_string())?;
        must(serde_json::from_slice::<journal::Record>(&json).ok().as_ref() == Some(record), "a record that is written is read again")?;
    }
    let last = journal::last_record(bytes);
    let story = History::of(bytes);
    let _ = (story.used(), story.findings().count());
    let kinds: Vec<String> = records.iter().rev().take(2).map(|record| format!("{:?}", record.event).chars().take(8).collect()).collect();
    what((size(records.len()), size(torn), last.is_some(), kinds))
}

fn junit(bytes: &[u8]) -> Result<u64, String> {
    let found = Finding::new(&text(bytes), Kind::Command, Verdict::Fail, text(bytes)).with_detail(text(bytes));
    let written = junit::of_findings("s", 0, &[found]);
    let read = TestResults::of_junit(written.as_bytes()).map_err(|e| format!("what was written cannot be read: {e}"))?;
    must(read.failed.len() == 1, "one failure is one failure")?;
    match TestResults::of_junit(bytes) {
        Ok(results) => {
            what(("fine", size(results.failed.len()), size(usize::try_from(results.passed).unwrap_or(usize::MAX)), results.ignored > 0))
        }
        Err(problem) => what(kind(&problem)),
    }
}

/// The same bytes in every file that is looked at: all of them at the same time, and each alone.
fn detect(bytes: &[u8]) -> Result<u64, String> {
    let mut seen = Vec::new();
    for files in Draft::FILES.chunks(1).chain([Draft::FILES]) {
        let draft = Draft::fitting(&files.iter().map(|file| ((*file).to_owned(), text(bytes))).collect());
        let found = draft.as_ref().map_or(0, |draft| draft.gates.len());
        let read = draft.as_ref().map_or(Ok(Config::default()), |draft| Config::parse(draft.text.as_bytes()));
        let read = read.map_err(|e| format!("what is proposed cannot be read: {e}"))?;
        must(read.gates.len() == found && found <= 4, "there are few, and all of them can be declared")?;
        seen.push(read.gates.into_iter().map(|gate| gate.name).collect::<Vec<_>>());
    }
    what(seen)
}

fn tests(bytes: &[u8]) -> Result<u64, String> {
    let read = |size: usize| {
        let mut reader = Reader::default();
        // The second half comes from the other stream.
        let (out, err) = bytes.split_at(bytes.len() / 2);
        out.chunks(size).for_each(|part| reader.feed(Pipe::Out, part));
        err.chunks(size).for_each(|part| reader.feed(Pipe::Err, part));
        reader.finish()
    };
    let whole = read(bytes.len().max(1));
    must(whole == read(7), "it does not matter how it is cut")?;
    what(
        whole.map(|results| (size(results.failed.len()), size(usize::try_from(results.passed).unwrap_or(usize::MAX)), results.ignored > 0)),
    )
}

fn settings(bytes: &[u8]) -> Result<u64, String> {
    let as_read = settings_file::as_the_client_reads(&text(bytes)).map(|value| settings_file::Registered::all_in(&value).len());
    let settings = match Settings::parse(bytes) {
        Ok(settings) => settings,
        Err(problem) => return what((kind(&problem.to_string()), as_read.is_ok())),
    };
    must(settings.to_text().as_bytes() == bytes, "what is not changed stays as it is")?;
    if let Err(problem) = settings.register("ralph", "user") {
        return what(("cannot be registered", kind(&problem.to_string())));
    }
    let with = settings.to_text();
    let again = Settings::parse(with.as_bytes()).map_err(|e| format!("what was written cannot be read: {e}"))?;
    must(again.registers_ralph(), "it is registered")?;
    again.register("ralph", "user").map_err(|e| e.to_string())?;
    must(again.to_text() == with, "registering twice changes nothing")?;
    again.unregister(None);
    let without = Settings::parse(again.to_text().as_bytes()).map_err(|e| format!("what is left cannot be read: {e}"))?;
    must(!without.registers_ralph(), "it is registered no more")?;
    what(("registered", as_read.is_ok(), size(with.len().abs_diff(bytes.len()))))
}

fn slash(bytes: &[u8]) -> Result<u64, String> {
    let text = text(bytes);
    let Some((name, args)) = slash::split(&text) else { return what(("no command", slash::parse(&text).is_ok())) };
    must(text.contains(name) && text.contains(args), "both are parts of what was typed")?;
    let verb = slash::verb_of(name, args).map(|(verb, _)| format!("{verb:?}"));
    match slash::parse(args) {
        Ok(options) => what((verb, size(format!("{options:?}").len()))),
        Err(problem) => what((verb, kind(&problem))),
    }
}

fn promise(bytes: &[u8]) -> Result<u64, String> {
    let text = text(bytes);
    let claim = Claim::find(&text, "ALL DONE", "Make it so.\n\nThen say <promise>ALL DONE</promise>");
    if claim == Claim::Made {
        must(ralph_core::text::normalised(&text).contains("ALL DONE"), "what is not said is not claimed")?;
    }
    let of_itself = Claim::find("<promise>ALL DONE</promise>", &text, &text);
    must(text::excerpt(&text, 160).chars().count() <= 161 && text::opening(&text, 160).chars().count() <= 161, "excerpts are bounded")?;
    what((format!("{claim:?}"), matches!(of_itself, Claim::Made)))
}

fn secrets(bytes: &[u8]) -> Result<u64, String> {
    let own = Secrets::of([("MY_TOKEN", "my own secret value")]);
    let masked = own.mask_bytes(bytes);
    // Limits on lengths count anew in what became shorter.
    must(bytes.len() > 1_000 || own.mask_bytes(&masked) == masked, "masking twice changes nothing")?;
    must(masked.len() <= 4 * bytes.len() + 16, "it grows by little")?;
    must(memchr::memmem::find(&masked, b"my own secret value").is_none(), "the user's own values are gone")?;
    for parts in [1, 5, 333] {
        let mut masking = Masking::new(&own);
        let mut out = Vec::new();
        bytes.chunks(parts).for_each(|part| masking.feed(part, &mut out));
        masking.finish(&mut out);
        must(out == masked, "it does not matter how it is cut")?;
    }
    if let Ok(before) = std::str::from_utf8(bytes) {
        must(std::str::from_utf8(&masked).is_ok() && own.mask(before).as_bytes() == masked, "text stays text")?;
        must(
            serde_json::from_str::<serde_json::Value>(before).is_err() || serde_json::from_slice::<serde_json::Value>(&masked).is_ok(),
            "JSON stays JSON",
        )?;
    }
    let places: Vec<u32> = memchr::memmem::find_iter(&masked, b"[masked]").map(size).take(6).collect();
    what((places, size(bytes.len().abs_diff(masked.len()))))
}

fn output(bytes: &[u8]) -> Result<u64, String> {
    let shown = |limit: usize, parts: usize| {
        let mut useful = Useful::new(limit);
        bytes
            .chunks(parts)
            .enumerate()
            .for_each(|(at, part)| useful.feed(if parts == 7 && at % 2 == 1 { Pipe::Err } else { Pipe::Out }, part));
        useful.finish()
    };
    for limit in [0, 40, 500, 4_000] {
        must(shown(limit, bytes.len().max(1)).chars().count() <= limit, "an excerpt is bounded")?;
        must(shown(limit, 7).chars().count() <= limit, "an excerpt of both is bounded")?;
    }
    must(shown(500, 3) == shown(500, bytes.len().max(1)), "it does not matter how it is cut")?;
    let mut lines = 0;
    let mut plain = PlainLines::new(100);
    let mut is_plain = true;
    let mut keep = |line: &str| {
        lines += 1;
        is_plain &= line.chars().count() <= 101 && !line.chars().any(|c| c.is_control() && c != '\t');
    };
    plain.feed(bytes, &mut keep);
    plain.finish(&mut keep);
    must(is_plain, "lines are plain and bounded")?;
    what((size(lines), kind(&shown(500, 5))))
}

fn markers(bytes: &[u8]) -> Result<u64, String> {
    let markers = completion_markers(bytes);
    what(size(markers.len()))
}

fn entries(bytes: &[u8]) -> Result<u64, String> {
    let text = text(bytes);
    let has = |entries| File { entries, ..File::at("report.md") }.check(&text).is_ok();
    must(!has(text.lines().count() as u64 + 1), "there are no more entries than lines")?;
    what((1..=40).take_while(|entries| has(*entries)).count())
}

fn expression(bytes: &[u8]) -> Result<u64, String> {
    let text = text(bytes);
    let (pattern, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let gate = File { contains: Some(pattern.to_owned()), ..File::at("report.md") };
    what(gate.check(rest).map_err(|(verdict, _)| verdict.as_str()))
}

fn requests(bytes: &[u8]) -> Result<u64, String> {
    let repository = Repository::of_url("https://github.com/o/r").ok_or("a repository")?;
    let requests = PullRequest::list(bytes, &repository);
    let required = CheckRun::required(bytes);
    what((requests.map(|all| size(format!("{all:?}").len())), required.is_some()))
}

fn of_job(bytes: &[u8]) -> Result<u64, String> {
    let read = |size: usize| {
        let mut reader = JobLog::default();
        let mut out = Vec::new();
        bytes.chunks(size).for_each(|part| reader.feed(part, &mut |text| out.extend_from_slice(text)));
        reader.finish(&mut |text| out.extend_from_slice(text));
        out
    };
    let whole = read(bytes.len().max(1));
    must(whole.len() <= bytes.len(), "nothing is added")?;
    what((size(whole.len()), size(bytes.len() - whole.len())))
}

fn denials(bytes: &[u8]) -> Result<u64, String> {
    let input = serde_json::from_slice(bytes).unwrap_or_else(|_| serde_json::json!({"command": text(bytes)}));
    let rules: Vec<String> = ["Bash", "WebFetch", "Read", "Skill", "Other"]
        .iter()
        .flat_map(|tool| denials::denied(tool, &input))
        .map(|denied| denied.rule)
        .collect();
    must(rules.iter().all(|rule| !rule.is_empty() && !rule.contains(['\n', '\r'])), "a rule is a line")?;
    what((size(rules.len()), rules.first().map(|rule| kind(rule))))
}

fn remote(bytes: &[u8]) -> Result<u64, String> {
    what(Repository::of_url(&text(bytes)).map(|repository| size(format!("{repository:?}").len())))
}
