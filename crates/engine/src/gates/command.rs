//! The `command` gate: run it, keep all it says, tell what is useful of it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ralph_core::{
    gate::{
        Command, End, Finding, Gate, Origin, Run, Stream, Useful, Verdict,
        test_results::{self, TestResults},
    },
    text::{
        Masking, opening,
        time::{self, in_words, millis},
    },
};

use crate::{
    gates::{
        Context, Watch, baseline, cache,
        durations::{self, Time},
        junit_files::Report,
        logs::Log,
        masked, turns,
    },
    sys::{
        command::{self, Asked, Ended, Failure, HURRY, Leave, Listener, Task},
        env, process_tree, secrets, signals,
    },
};

/// The time between the request to end and the end.
const GRACE: Duration = Duration::from_secs(2);

/// With less time left there is no point in starting.
const WORTH_BEGINNING: Duration = Duration::from_millis(500);

/// The finding about a command that no person has trusted.
pub(super) fn untrusted(gate: &Gate) -> Finding {
    let what = format!("its command was not run, because {} is not trusted, or has changed since it was", gate.origin.shown());
    Finding { needs: Some("`ralph trust` shows what it would run and asks".to_owned()), ..gate.finding(Verdict::Unknown, what) }
}

/// Runs a command, unless its verdict on this very tree is known.
pub(crate) fn run(gate: &Gate, command: &Command, ctx: &Context<'_>) -> Finding {
    if !gate.trusted {
        return untrusted(gate);
    }
    let fingerprint = if command.cache { ctx.verdict_fingerprint() } else { None };
    let key = fingerprint.as_deref().map(|tree| cache::Key::of(&gate.name, command, tree));
    let in_clones = |key| if command.any_clone { cache::find_in_clones(ctx, key) } else { None };
    let find = |key| cache::find_for(ctx, key).or_else(|| in_clones(key));
    if let Some(finding) = key.as_ref().filter(|_| !ctx.again).and_then(find) {
        return baseline::weigh(gate, command, ctx, finding);
    }
    if let Some(why) = why_not(ctx) {
        return gate.finding(Verdict::Unknown, why);
    }
    let turn = match turns::take(command, ctx) {
        Ok(turn) => turn,
        Err(why) => return gate.finding(Verdict::Unknown, why),
    };
    let shown = durations::shown(command);
    let usual = durations::usual_ms(ctx.project, &gate.name, &shown).map(Duration::from_millis);
    ctx.watch.begins(gate, Time { limit: limit(command, ctx), usual });
    let finding = measured(gate, command, ctx);
    drop(turn);
    if ctx.keeps {
        durations::note(ctx.project, &shown, &finding);
    }
    // Whatever ran may have changed the tree, and then what is known about it is no longer true.
    ctx.forget_files();
    if let Some(key) = key.filter(|_| matches!(finding.verdict, Verdict::Pass | Verdict::Fail)) {
        // A command that changes the tree has been measured on neither of the two.
        if ctx.verdict_fingerprint() == fingerprint {
            if ctx.keeps {
                cache::keep(ctx, &key, &finding);
                if command.any_clone {
                    cache::keep_for_clones(ctx, &key, &finding);
                }
            } else if finding.verdict == Verdict::Pass {
                cache::doubt(ctx.project, &key);
            }
        }
    }
    let finding = baseline::weigh(gate, command, ctx, finding);
    ctx.watch.ended(&finding);
    finding
}

/// Why nothing is run at all.
fn why_not(ctx: &Context<'_>) -> Option<&'static str> {
    if env::is_within_gate() {
        return Some("not run: gates do not run gates");
    }
    ctx.is_cancelled().then_some("not run: the result is not wanted any more")
}

/// The verdict on this very tree, if it is known without running anything.
pub(super) fn known(gate: &Gate, command: &Command, ctx: &Context<'_>) -> Option<Finding> {
    let fingerprint = ctx.verdict_fingerprint().filter(|_| command.cache && gate.trusted)?;
    cache::find(ctx.project, &cache::Key::of(&gate.name, command, &fingerprint))
}

fn limit(command: &Command, ctx: &Context<'_>) -> Duration {
    Duration::from_millis(command.deadline_ms).min(ctx.time_left())
}

/// Runs it, and a second time if a failure may be a flake.
fn measured(gate: &Gate, command: &Command, ctx: &Context<'_>) -> Finding {
    let first = attempt(gate, command, ctx);
    if !command.retry || first.verdict != Verdict::Fail || ctx.time_left() < WORTH_BEGINNING {
        return first;
    }
    let second = attempt(gate, command, ctx);
    match second.verdict {
        Verdict::Pass => Finding {
            what: format!("{}, after it had failed once: a flake", second.what),
            flaky: true,
            took_ms: first.took_ms + second.took_ms,
            ..second
        },
        _ => Finding { what: format!("{}, twice", second.what), took_ms: first.took_ms + second.took_ms, ..second },
    }
}

/// The output of a running command.
struct Heard {
    useful: Useful,
    tests: test_results::Reader,
    log: Option<Log>,
    /// Of its two outputs. The tests are read from what really was said.
    masking: [Masking; 2],
}

fn attempt(gate: &Gate, command: &Command, ctx: &Context<'_>) -> Finding {
    let limit = limit(command, ctx);
    if limit < WORTH_BEGINNING {
        return gate.finding(Verdict::Unknown, "not run: the hook's time was used up before its turn came");
    }
    let folder = match folder(command, ctx) {
        Ok(folder) => folder,
        Err(what) => return gate.finding(Verdict::Unknown, what),
    };
    let report = command.junit.as_ref().map(|path| Report::before(ctx.tree.join(path)));
    let shown = durations::shown(command);
    let secrets = secrets::own().and(command.env.iter().map(|(name, value)| (name, value)));
    let heard = Arc::new(Mutex::new(Heard {
        useful: Useful::new(command.excerpt),
        tests: test_results::Reader::default(),
        log: Some(Log::begin(ctx.project, &gate.name, &secrets.mask(&shown))),
        masking: [Masking::new(&secrets), Masking::new(&secrets)],
    }));
    process_tree::inherit_orphans();
    signals::notice();
    let begun = std::time::Instant::now();
    let mark = command.leave_running.then(|| format!("{}={}", env::GATE, gate.name));
    let leave =
        Leave { cancelled: &|| ctx.is_cancelled(), grace: GRACE, hurry: HURRY, asked: &|| Asked::ToEnd, leave_running: mark.as_deref() };
    let ended = task(gate, command, &folder, limit).run_heard(&listener(gate, ctx, &heard), leave);
    // A request to end this process may have ended the command too, or a part of it, and that says nothing about the work.
    let ended = if ended.is_ok() && ctx.is_cancelled() { Err(Failure::Cancelled) } else { ended };
    let took_ms = millis(begun.elapsed());
    let (verdict, state) = state(&ended, took_ms, || too_long(gate, command, limit));
    let mut heard = lock(&heard);
    heard.finish(&gate.name, &ctx.watch);
    let excerpt = std::mem::replace(&mut heard.useful, Useful::new(0)).finish();
    let (verdict, state) = match missing_module(&command.run, &excerpt) {
        Some(module) if verdict == Verdict::Fail => (Verdict::Unknown, format!("{state}: the Python module {module} was not found")),
        _ => (verdict, state),
    };
    let (log, problem) = heard.log.take().map(|log| log.finish(ctx.project, &state)).unwrap_or_default();
    let held = || ended.as_ref().is_ok_and(|ended| !ended.whole).then(|| "what it left running holds its output".to_owned());
    let problem = problem.or_else(held);
    let tests = tests_of(&mut heard, report.as_ref());
    let what = if gate.name == Gate::name_for(&command.run.shown()) { state } else { format!("`{shown}`: {state}") };
    let what = [Some(what), told(tests.as_ref()), problem].into_iter().flatten().collect::<Vec<_>>().join("; ");
    let detail = if verdict == Verdict::Pass { String::new() } else { excerpt };
    let end = ended.ok().and_then(|ended| ended.code.map(End::Code).or(ended.signal.map(End::Signal)));
    masked(Finding { log, took_ms, tests, end, ..gate.finding(verdict, what).with_detail(detail) }, &secrets)
}

fn task<'a>(gate: &Gate, command: &Command, folder: &'a Path, limit: Duration) -> Task<'a> {
    let (program, args) = program(&command.run);
    let vars = command.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    // What may live on does so without its runner, too.
    let runner = env::runner_mark().filter(|_| !command.leave_running).map(|mark| (env::RUNNER.into(), mark.into()));
    Task {
        program,
        args,
        folder,
        vars: vars.chain([(env::GATE.into(), gate.name.clone().into())]).chain(runner).collect(),
        hidden: Vec::new(),
        input: Vec::new(),
        limit,
        most_output: 0,
    }
}

/// Sends the output to the log, to the watcher, and to the readers of tests and excerpts.
fn listener(gate: &Gate, ctx: &Context<'_>, heard: &Arc<Mutex<Heard>>) -> Listener {
    let (heard, watch, name) = (Arc::clone(heard), Arc::clone(&ctx.watch), gate.name.clone());
    Arc::new(move |stream: Stream, bytes: &[u8]| {
        let shown = lock(&heard).hear(stream, bytes);
        watch.says(&name, stream, &shown);
    })
}

impl Heard {
    /// Takes what was said, and gives back what may be shown.
    fn hear(&mut self, stream: Stream, bytes: &[u8]) -> Vec<u8> {
        self.tests.feed(stream, bytes);
        let mut shown = Vec::with_capacity(bytes.len());
        self.masking[stream as usize].feed(bytes, &mut shown);
        self.keep(stream, &shown);
        shown
    }

    /// Output that was held back, because it might have been the beginning of a secret.
    fn finish(&mut self, gate: &str, watch: &Arc<dyn Watch>) {
        for stream in [Stream::Out, Stream::Err] {
            let mut shown = Vec::new();
            self.masking[stream as usize].finish(&mut shown);
            self.keep(stream, &shown);
            if !shown.is_empty() {
                watch.says(gate, stream, &shown);
            }
        }
    }

    fn keep(&mut self, stream: Stream, shown: &[u8]) {
        if let Some(log) = &mut self.log {
            log.write(shown);
        }
        self.useful.feed(stream, shown);
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where it runs. A folder that leads out of the tree is none of the project's.
fn folder(command: &Command, ctx: &Context<'_>) -> Result<PathBuf, String> {
    let Some(relative) = &command.folder else { return Ok(ctx.tree.to_owned()) };
    let folder = ctx.tree.join(relative);
    let inside = || folder.canonicalize().ok()?.starts_with(ctx.tree.canonicalize().ok()?).then_some(());
    match folder.is_dir().then(inside) {
        Some(Some(())) => Ok(folder),
        Some(None) => Err(format!("its folder {relative} leads out of the project")),
        None => Err(format!("its folder {relative} is not there")),
    }
}

fn program(run: &Run) -> (OsString, Vec<OsString>) {
    match run {
        Run::Shell(line) => command::shell(line),
        Run::Argv(words) => (words.first().map(OsString::from).unwrap_or_default(), words.iter().skip(1).map(OsString::from).collect()),
    }
}

/// The verdict of an end, and the end in words.
fn state(ended: &Result<Ended, Failure>, took_ms: u64, too_long: impl FnOnce() -> String) -> (Verdict, String) {
    let after = time::measured(took_ms);
    match ended {
        Ok(Ended { code: Some(0), .. }) => (Verdict::Pass, format!("passed in {after}")),
        // What the shell says when it does not find or may not run a program: nothing was measured.
        Ok(Ended { code: Some(code @ (126 | 127)), .. }) => {
            let why = if *code == 127 { "a program was not found" } else { "a program may not be run" };
            (Verdict::Unknown, format!("exit code {code} after {after}: {why}"))
        }
        Ok(Ended { code: Some(code), .. }) => (Verdict::Fail, format!("exit code {code} after {after}")),
        Ok(Ended { signal, .. }) => {
            (Verdict::Fail, format!("ended by signal {} after {after}", signal.map_or_else(|| "?".to_owned(), |s| s.to_string())))
        }
        Err(Failure::TookTooLong) => (Verdict::Unknown, too_long()),
        Err(Failure::Cancelled) => (Verdict::Unknown, format!("was ended after {after}, because the result is not wanted any more")),
        Err(Failure::CannotStart(e)) if e.kind() == std::io::ErrorKind::NotFound => {
            (Verdict::Unknown, "cannot be started: there is no such program".to_owned())
        }
        Err(Failure::CannotStart(e)) => (Verdict::Unknown, format!("cannot be started: {e}")),
    }
}

/// The module of `python3 -m MODULE`, if that line is all that Python said: like a program that was not found, nothing was measured.
fn missing_module<'a>(run: &'a Run, said: &str) -> Option<&'a str> {
    let words: Vec<&str> = match run {
        Run::Shell(line) => line.split_whitespace().collect(),
        Run::Argv(words) => words.iter().map(String::as_str).collect(),
    };
    let is_python = |program: &str| program.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    let module = words.windows(3).find(|three| is_python(three[0]) && three[1] == "-m")?[2];
    let said = said.trim();
    (!said.contains('\n') && said.ends_with(&format!(": No module named {module}"))).then_some(module)
}

/// The sentence about a command that was ended at this limit: its own, or the hook's.
fn too_long(gate: &Gate, command: &Command, limit: Duration) -> String {
    let limit = millis(limit);
    let why = match gate.origin {
        _ if limit < command.deadline_ms => "; the hook's time ended first",
        // Commands of items have no settings of their own.
        Origin::List(_) => "",
        Origin::File(_) | Origin::Loop => "; a longer `deadline` gives it more time",
    };
    format!("did not end within {}, and was ended{why}", in_words(limit))
}

/// The test results: those of a report that this run wrote, else those that it printed.
fn tests_of(heard: &mut Heard, report: Option<&Report>) -> Option<TestResults> {
    let printed = std::mem::take(&mut heard.tests).finish();
    report.and_then(Report::results).or(printed)
}

/// The failing tests in a few words.
fn told(tests: Option<&TestResults>) -> Option<String> {
    let tests = tests?;
    let count = tests.failures();
    let names: Vec<String> = tests.failed.iter().take(3).map(|name| opening(name, 80)).collect();
    let more = count.saturating_sub(names.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let fail = ralph_core::text::count(count, "test fails", "tests fail");
    match &names[..] {
        _ if count == 0 => None,
        [] => Some(fail),
        names => Some(format!("{fail}: {}{more}", names.join(", "))),
    }
}
