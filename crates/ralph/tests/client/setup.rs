//! The product as it is set up: the plugin, installed offline by the real Claude Code client, and `ralph init`, with everything that a
//! person types from there on. No file is written by hand that a person would not write by hand.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::real::setup::SOURCE;
use crate::real::terminal::*;
use crate::real::*;
use ralph_testkit::{Gate, Hook, ModelServer, PrintOutput, Reply, Request, Settings, Skip, Version, nightly, or_skip};
use serde_json::json;

/// The words that tell the model that the hook has started a loop.
const TOLD: &str = "A Ralph loop was started in this session";

/// A model that needs two rounds for everything.
fn two_rounds(request: &Request) -> Reply {
    if request.index.is_multiple_of(2) { round(1) } else { claim(2) }
}

/// A command that ralph answers in `-p`, in the model's place.
fn answered(bed: &Bed, command: &str) -> String {
    let server = ModelServer::with(|_| round(1));
    let output = bed.run(&server, command);
    assert_eq!(server.main_requests().len(), 0, "{command}: the model is not asked: {output:?}");
    result_text(&output).to_owned()
}

/// S1-AC1, S1-AC2, S1-AC4 in `-p`: `start` starts a loop in the session, which is held at its first stop and ends on the promise.
fn s1_loops_to_its_promise(bed: &Bed, start: &str) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (file, of_server) = (bed.project.path(LOOP), Arc::clone(&seen));
    let server = ModelServer::with(move |request| {
        of_server.lock().unwrap().push(fs::read_to_string(&file).unwrap_or_default());
        two_rounds(request)
    });
    let args = "Make it work. --completion-promise DONE --max-iterations 3";
    let output = bed.run(&server, &format!("{start} {args}"));
    assert_eq!(result_text(&output), claimed(2));
    let requests = server.main_requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(count(&requests[0].all_text(), TOLD), 1);
    assert!(requests[0].all_text().contains(&format!("<command-args>{args}</command-args>")));
    assert!(requests[1].all_text().contains("Stop hook additional context: Make it work."));
    for (n, file) in seen.lock().unwrap().iter().enumerate() {
        let session = value_in(file, "session_id");
        assert_eq!((value_in(file, "iteration"), session.trim_matches('"')), ((n + 1).to_string(), session_of(&output).as_str()));
    }
    let journal = bed.journal();
    assert_eq!(journal.of_kind("started")[0]["session"], session_of(&output));
    assert_eq!(journal.codes(), missing_then(1, "promise.accepted"));
    assert_eq!(journal.iterations(), [1, 2]);
    bed.assert_archived(2);
}

/// S1-1, S1-3: the checked-in plugin is valid, the client installs it without a network, and its commands work in `-p`.
fn s1_1_s1_3_the_plugin_installs_offline(version: Version) {
    let bed = or_skip!(Bed::with_program(version));
    for folder in [SOURCE.to_owned(), format!("{SOURCE}/plugin")] {
        let said = bed.claude_ok(&["plugin", "validate", &folder]);
        assert!(said.contains("✔ Validation passed") && !said.contains("passed with warnings"), "{said}");
    }
    bed.install_as_the_page_says(&bed.checkout());
    s1_loops_to_its_promise(&bed, "/ralph:loop");
    bed.ralph_ok(&["start", "Go on.", "--max-iterations", "9"]);
    let status = answered(&bed, "/ralph:status");
    assert!(status.contains("waiting for a session, iteration 1 of 9"), "{status}");
    let said = answered(&bed, "/ralph:cancel");
    assert!(said.contains("Ralph loop cancelled at iteration 1 ("), "{said}");
    assert_eq!((bed.loop_file(), bed.archive().len()), (None, 2));
}
newest!(s1_1_s1_3_the_plugin_installs_offline);

/// S1-1: the plugin that `ralph plugin` writes brings its own program: nothing is on the PATH.
fn s1_1_the_written_plugin_needs_no_path(version: Version) {
    let bed = or_skip!(Bed::bare(version));
    let folder = bed.project.home().join("my plugins/ralph");
    bed.ralph_ok(&["plugin", folder.to_str().unwrap()]);
    for folder in [&folder, &folder.join("plugin")] {
        bed.claude_ok(&["plugin", "validate", folder.to_str().unwrap()]);
    }
    bed.install(&folder);
    s1_loops_to_its_promise(&bed, "/ralph:loop");
    let told = answered(&bed, "/ralph:cancel");
    assert!(told.starts_with("Operation stopped by hook: No active Ralph loop. The last one ") && told.contains("is complete"), "{told}");
}
newest!(s1_1_the_written_plugin_needs_no_path);

/// S1-3: the plugin's commands in the terminal. An API error leaves the session idle and the loop armed.
fn s1_3_the_plugin_in_the_terminal(version: Version) {
    let bed = or_skip!(Bed::with_plugin(version));
    let server = ModelServer::with(|request| match request.index {
        0 | 1 => two_rounds(request),
        _ => Reply::error(400, "invalid_request_error", "not like this"),
    });
    let tui = open(&bed, &server);
    tui.submit("/ralph:status");
    sees(&tui, "No active Ralph loop");
    tui.submit("/ralph:loop Make it work. --completion-promise DONE --max-iterations 3");
    sees(&tui, "Ralph: complete after 2 iterations");
    bed.assert_archived(2);
    bed.forget();
    tui.submit("/ralph:loop \"Once more --hours 2\" --max-iterations 7");
    sees(&tui, "Ralph: --hours stands inside quotes, so it is part of the prompt and sets nothing.");
    wait_until("the error", || server.main_requests().len() > 2 && bed.journal().heard("StopFailure") > 0);
    let asked = server.main_requests().len();
    tui.submit("/ralph:status");
    sees(&tui, "Ralph loop: active, iteration 1 of 7");
    tui.submit("/ralph:cancel");
    sees(&tui, "Ralph loop cancelled at iteration 1");
    thread::sleep(QUIET);
    assert_eq!(server.main_requests().len(), asked, "the model was not asked");
    bed.assert_archived(1);
}
newest!(s1_3_the_plugin_in_the_terminal);

/// S1-AC1, S1-AC2, S1-AC4, S1-AC7: set up for the user.
fn s1_1_s1_ac1_s1_ac7_init_for_the_user(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--user"));
    assert!(!bed.project.exists(".claude"), "nothing in the project");
    assert_eq!(answered(&bed, "/cancel-ralph"), "Operation stopped by hook: No active Ralph loop");
    s1_loops_to_its_promise(&bed, "/ralph-loop");
}
newest!(s1_1_s1_ac1_s1_ac7_init_for_the_user);

/// S1-AC5: set up for everybody in the project; `/ralph --mode hook` runs to its limit.
fn s1_1_s1_ac5_init_for_the_project(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--project"));
    let server = ModelServer::scripted((1..=4).map(round));
    let output = bed.run(&server, "/ralph --mode hook Make it work. --max-iterations 2");
    assert_eq!((result_text(&output), server.main_requests().len()), ("This is iteration 2.", 2));
    // The hook that waits runs too, at each of the two stops, and says nothing.
    let (silent, told): (Vec<&str>, Vec<&str>) = answers(&output, "Stop").into_iter().partition(|answer| answer.is_empty());
    assert!(told.len() == 2 && told[1].contains("Ralph: stopped at its limit of 2 iterations"), "{told:?}");
    assert_eq!(silent.len(), 2);
    bed.assert_archived(2);
    assert_eq!(prompt_in(&bed.archive()[0]), "Make it work.");
}
newest!(s1_1_s1_ac5_init_for_the_project);

/// S1-AC6: set up for the user in this project, by a program that is not on the PATH; paused, resumed and cancelled by command.
fn s1_1_s1_ac6_init_local(version: Version) {
    let bed = or_skip!(Bed::bare(version));
    bed.ralph_ok(&["init", "--local"]);
    s1_loops_to_its_promise(&bed, "/ralph");
    bed.forget();
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--max-iterations", "9"]);
    let paused = answered(&bed, "/ralph-pause");
    assert!(paused.contains("Ralph: paused at iteration 1 of 9."), "{paused}");
    let server = ModelServer::scripted([round(1), Reply::error(401, "authentication_error", "expired")]);
    assert_eq!(bed.print(&server, "/ralph-resume").output().code, Some(1));
    assert!(server.main_requests()[0].all_text().contains("Go on with this task now:\n\nGo on."));
    let status = bed.ralph_ok(&["status"]);
    assert!(status.contains("iteration   2 (of 9)"), "{status}");
    let said = answered(&bed, "/cancel-ralph");
    assert!(said.contains("cancelled at iteration 2 ("), "{said}");
    bed.assert_archived(2);
    for event in ["SessionStart", "UserPromptSubmit", "UserPromptExpansion", "Stop", "SessionEnd"] {
        assert!(bed.logged(&[&format!("event={event}")]) > 0, "{event} is registered");
    }
}
newest!(s1_1_s1_ac6_init_local);

/// S1-3, S1-AC1, S1-AC4 to S1-AC7: all short names, typed in one terminal session.
fn s1_3_s1_ac7_the_short_names_in_the_terminal(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--user"));
    let server = ModelServer::with(|request| match request.last_user_text() {
        text if text.contains("This is the third.") => Reply::text(claimed(1)),
        text if text.contains("This is the second.") => round(request.index),
        text if text.contains("Stop hook") => Reply::error(400, "invalid_request_error", "not like this"),
        _ => round(request.index),
    });
    let tui = open(&bed, &server);
    tui.submit("/cancel-ralph");
    sees(&tui, "No active Ralph loop");
    tui.submit("/ralph-loop This is the first. --completion-promise DONE --max-iterations 9");
    wait_until("the error", || server.main_requests().len() > 1 && bed.journal().heard("StopFailure") > 0);
    let asked = server.main_requests().len();
    tui.submit("/ralph-status");
    sees(&tui, "Ralph loop: active, iteration 2 of 9");
    tui.submit("/ralph-pause");
    sees(&tui, "Ralph: paused at iteration 2 of 9.");
    assert_eq!((server.main_requests().len(), bed.value("active").as_str()), (asked, "false"));
    tui.submit("/ralph-resume");
    wait_until("the second error", || bed.journal().heard("StopFailure") > 1);
    let asked = server.main_requests().len();
    tui.submit("/cancel-ralph");
    sees(&tui, "Ralph loop cancelled at iteration 3");
    bed.assert_archived(3);
    tui.submit("/ralph --mode hook This is the second. --max-iterations 2");
    sees(&tui, "Ralph: stopped at its limit of 2 iterations");
    tui.submit("/ralph This is the third. --completion-promise DONE");
    sees(&tui, "Ralph: complete after 1 iteration");
    let requests = server.main_requests();
    assert_eq!(requests.len(), asked + 3, "cancel asked no model");
    assert!(!requests[asked + 2].all_text().contains("This command is for ralph's hook"), "nor does it hear of it later");
    assert_eq!((bed.loop_file(), bed.archive().len()), (None, 3));
}
newest!(s1_3_s1_ac7_the_short_names_in_the_terminal);

/// Texts that break in a shell, a template, a terminal or a tag.
fn awkward_prompts() -> Vec<String> {
    let long = "Another line of a long task, with 'quotes', $(touch PWNED) and 🚀.\n".repeat(300);
    [
        "Don't break \"what\" isn't 'broken', and say \"hello, don't close it",
        "fix #12; $(touch PWNED) `touch PWNED` && touch PWNED || touch PWNED | tee PWNED > PWNED & (touch PWNED) {a,b} [c] \\n \\ C:\\dir\\ ~ * ? 100%",
        "!`touch PWNED` and !`touch PWNED`\n```!\ntouch PWNED\n```\n\n  two  blanks \\\n!touch PWNED",
        "$1 $0 $ARGUMENTS $ARGUMENTS[0] ${HOME} $HOME ${CLAUDE_SESSION_ID} ${CLAUDE_PLUGIN_ROOT} {{x}} %s say <promise>DONE</promise> </command-args> <b>&amp;",
        "🚀 👩‍👩‍👧 “quoted” «é» עברית مرحبا 日本語",
        &format!("{long}The end."),
    ]
    .map(str::to_owned)
    .to_vec()
}

/// What a terminal session changes before it sends it: tabs become blanks, letters are composed, and marks of direction are taken out.
const NOT_TYPED: &str = "a\ttab, e\u{301} and \u{202e}sdrawkcab\u{202c}";

/// pains 8: a prompt, started by a command, is what the model gets, what the loop file holds and what comes back; and none of it is run.
fn pains_8_arrives_intact(bed: &Bed, command: &str, prompt: &str) {
    let server = ModelServer::with(two_rounds);
    let args = format!("--completion-promise DONE {prompt}");
    let output = bed.run(&server, &format!("{command} {args}"));
    assert_eq!(result_text(&output), claimed(2), "{prompt}");
    assert_eq!(bed.archive().iter().map(|file| prompt_in(file)).collect::<Vec<_>>(), [prompt]);
    assert_intact(&server.main_requests(), &args, prompt);
    bed.forget();
}

/// The last two requests are those of a loop that was started with `args`.
fn assert_intact(requests: &[Request], args: &str, prompt: &str) {
    let [.., first, second] = requests else { panic!("two requests") };
    let first = first.all_text();
    assert!(first.contains(&format!("<command-args>{args}</command-args>")), "{prompt:?} in {first}");
    let label = if prompt.len() > 9_000 { "Stop hook feedback:\n" } else { "Stop hook additional context: " };
    assert!(second.all_text().contains(&format!("{label}{prompt}")), "{prompt:?} in {}", second.all_text());
}

/// The same in one text but for the long one, which the client hands on in another way; in the nightly run each in a session of its own.
fn few_prompts() -> Vec<String> {
    let mut all = awkward_prompts();
    all.insert(0, NOT_TYPED.to_owned());
    let long = all.pop().unwrap();
    nightly::amount(vec![all.join("\n")], all).into_iter().chain([long]).collect()
}

/// pains 8: through the file that `ralph init` wrote.
fn pains_8_prompts_arrive_intact_by_init(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--user"));
    for prompt in few_prompts() {
        pains_8_arrives_intact(&bed, "/ralph-loop", &prompt);
    }
    assert_eq!(bed.find("PWNED"), Vec::<PathBuf>::new());
}
newest!(pains_8_prompts_arrive_intact_by_init);

/// pains 8: through the plugin's.
fn pains_8_prompts_arrive_intact_by_plugin(version: Version) {
    let bed = or_skip!(Bed::with_plugin(version));
    for prompt in few_prompts() {
        pains_8_arrives_intact(&bed, "/ralph:loop", &prompt);
    }
    assert_eq!(bed.find("PWNED"), Vec::<PathBuf>::new());
}
newest!(pains_8_prompts_arrive_intact_by_plugin);

/// pains 8: typed on one line, and pasted with line ends.
fn pains_8_prompts_arrive_intact_from_the_terminal(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--user"));
    let server = ModelServer::with(two_rounds);
    let tui = open(&bed, &server);
    for prompt in awkward_prompts() {
        let args = format!("--completion-promise DONE {prompt}");
        enter(&tui, "/ralph-loop", &args);
        tui.expect("the loop's end", SOON, |_| bed.logged(&["code=promise.accepted"]) == 1);
        assert_eq!(bed.archive().iter().map(|file| prompt_in(file)).collect::<Vec<_>>(), [prompt.as_str()]);
        assert_intact(&server.main_requests(), &args, &prompt);
        tui.expect("the prompt", SOON, |screen| !screen.contains("esc to interrupt"));
        bed.forget();
    }
    assert_eq!(bed.find("PWNED"), Vec::<PathBuf>::new());
}
newest!(pains_8_prompts_arrive_intact_from_the_terminal);

/// What ralph answered to a typed command, through whichever of the two events.
fn told(output: &PrintOutput) -> String {
    [answers(output, "UserPromptExpansion"), answers(output, "UserPromptSubmit")].concat().join("\n")
}

/// pains 8: flags in both spellings and every position; one in quotes is prompt, and the person is told; an unknown one is refused.
fn pains_8_flags_in_every_position(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--user"));
    let spellings = [
        "fix --max-iterations=7 it --completion-promise 'ALL DONE' now",
        "--max-iterations=7 --completion-promise='ALL DONE' fix it now",
        "\"fix it now\" --completion-promise=\"ALL DONE\" --max-iterations 7",
    ];
    for typed in nightly::amount(&spellings[..1], &spellings) {
        let server = ModelServer::scripted([say("I did it.\n\n<promise>ALL DONE</promise>")]);
        bed.run(&server, &format!("/ralph-loop {typed}"));
        let file = bed.archive().concat();
        assert_eq!((prompt_in(&file), value_in(&file, "max_iterations").as_str()), ("fix it now", "7"), "{typed}");
        assert_eq!(value_in(&file, "completion_promise"), "\"ALL DONE\"", "{typed}");
        assert_eq!(bed.journal().codes(), ["promise.accepted"]);
        bed.forget();
    }
    let server = ModelServer::scripted([round(1)]);
    let output = bed.run(&server, "/ralph-loop \"fix it --max-iterations 3\" --max-iterations 1");
    let warning = "Ralph: --max-iterations stands inside quotes, so it is part of the prompt and sets nothing.";
    assert!(told(&output).contains(warning), "{}", told(&output));
    assert_eq!(informed(&output).iter().filter(|line| line.contains(warning)).count(), usize::from(bed.is_newest()));
    bed.forget();
    let said = answered(&bed, "/ralph-loop fix it --max-iteration 3");
    assert!(said.contains("unknown flag --max-iteration: did you mean --max-iterations?"), "{said}");
    assert_eq!((bed.loop_file(), bed.archive().len()), (None, 0));
}
both!(pains_8_flags_in_every_position);

/// S1-3: `/ralph-status`, typed while a round runs, is answered at no cost, and the loop goes on.
fn s1_3_status_in_mid_loop(version: Version) {
    // On a busy machine the newer client was once seen to hold a queued command back until the loop had ended.
    let is_answered = or_skip!(status_in_mid_loop(version)) || or_skip!(status_in_mid_loop(version));
    assert!(is_answered, "the status was not shown while the loop worked");
}
newest!(s1_3_status_in_mid_loop);

/// Whether `/ralph-status`, typed while a round runs, was answered before the loop went on.
fn status_in_mid_loop(version: Version) -> Result<bool, Skip> {
    let bed = Bed::with_init(version, "--user")?;
    let gate = Gate::new();
    let server = ModelServer::scripted([round(1).hang(&gate), claim(2), round(3)]);
    let tui = open(&bed, &server);
    tui.submit("/ralph-loop Make it work. --completion-promise DONE --max-iterations 9");
    assert!(gate.wait_reached(SOON));
    queue(&bed, &tui, "/ralph-status");
    gate.release();
    sees(&tui, "Ralph: complete after 2 iterations");
    assert_eq!(server.main_requests().len(), 2, "status asked no model of its own: the second request is the loop's next iteration");
    bed.assert_archived(2);
    let is_shown = tui.screen().contains("Ralph loop: active, iteration 1 of 9");
    assert!(!is_shown || bed.logged(&["code=command.status"]) == 1);
    Ok(is_shown)
}

/// u6: a command that is typed while the agent makes a claim without proof costs no iteration: with the answer the agent hears what failed.
fn u6_status_in_mid_loop_brings_what_failed(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--user"));
    let gate = Gate::new();
    let _opens = Opens(&gate);
    let server = ModelServer::scripted([claim(1).hang(&gate), Reply::bash("touch fixed"), claim(2), claim(3)]);
    let tui = open(&bed, &server);
    tui.submit("/ralph-loop Make it work. --promise DONE --max-iterations 2 --verify 'echo apples are $((1+1)); test -e fixed'");
    assert!(gate.wait_reached(SOON));
    queue(&bed, &tui, "/ralph-status");
    gate.release();
    sees(&tui, "Ralph: complete after 2 iterations");
    let requests = server.main_requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[1].all_text().contains("apples are 2"), "{}", requests[1].all_text());
    bed.assert_archived(2);
}
newest!(u6_status_in_mid_loop_brings_what_failed);

/// S1-AC6: `/cancel-ralph`, typed while a round runs, ends the loop that `/ralph-loop` started.
fn s1_ac6_cancel_in_mid_loop(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--user"));
    let gate = Gate::new();
    let server = ModelServer::scripted([round(1), round(2).hang(&gate), round(3)]);
    let tui = open(&bed, &server);
    tui.submit("/ralph-loop Make it work. --completion-promise DONE --max-iterations 9");
    assert!(gate.wait_reached(SOON));
    queue(&bed, &tui, "/cancel-ralph");
    gate.release();
    sees(&tui, "Ralph loop cancelled at iteration 2");
    thread::sleep(QUIET);
    assert_eq!(server.main_requests().len(), 2, "cancel asked no model");
    assert_eq!(bed.journal().of_kind("cancelled").len(), 1);
    bed.assert_archived(2);
}
newest!(s1_ac6_cancel_in_mid_loop);

/// S1-1: with the plugin there, `ralph init` adds the short names and no second hook. A registration by hand makes two, and a stop still counts once.
fn s1_1_never_twice(version: Version) {
    let bed = or_skip!(Bed::with_plugin(version));
    let settings = bed.project.home().join(".claude/settings.json");
    let before = fs::read_to_string(&settings).unwrap();
    let said = bed.ralph_ok(&["init"]);
    assert!(said.contains("The plugin ralph@ralph-loop registers the hooks"), "{said}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), before);
    s1_loops_to_its_promise(&bed, "/ralph-loop");
    assert_eq!((bed.logged(&["event=Stop"]), bed.logged(&["code=command.start"])), (2, 1));
    bed.forget();
    Settings::new().hook(Hook::new(RALPH)).write(&bed.project);
    s1_loops_to_its_promise(&bed, "/ralph-loop");
    assert_eq!((bed.logged(&["event=Stop"]), bed.logged(&["code=command.start"])), (4, 1), "both fired, each stop counted once");
}
newest!(s1_1_never_twice);

/// S1-1: the plugin, installed beside what `ralph init` registered. The client runs both, though the command line is the same; a stop counts once.
fn s1_1_never_twice_in_the_other_order(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--user"));
    bed.install(&bed.checkout());
    s1_loops_to_its_promise(&bed, "/ralph:loop");
    assert_eq!((bed.logged(&["event=Stop"]), bed.logged(&["code=command.start"])), (4, 1), "both fired, each stop counted once");
}
newest!(s1_1_never_twice_in_the_other_order);

/// S1-1: after `ralph uninstall` nothing is held, no command is known, and the settings are what they were.
fn s1_1_uninstall_leaves_nothing(version: Version) {
    let bed = or_skip!(Bed::with_program(version));
    let settings = bed.project.home().join(".claude/settings.json");
    // The client moves the leave to skip permissions from its memory into this file, unless it is there.
    let before = "{\n    \"skipDangerousModePermissionPrompt\": true,\n    \"env\": { \"MINE\":\"1\" }\n}";
    bed.project.write(&settings, before);
    bed.ralph_ok(&["init", "--user"]);
    assert_ne!(fs::read_to_string(&settings).unwrap(), before);
    if nightly::is_on() {
        s1_loops_to_its_promise(&bed, "/ralph-loop");
    }
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(fs::read_to_string(&settings).unwrap(), before);
    let server = ModelServer::scripted([round(1), round(2)]);
    let output = bed.run(&server, "begin");
    assert_eq!((result_text(&output), server.main_requests().len()), ("This is iteration 1.", 1));
    assert_eq!((bed.value("iteration").as_str(), answers(&output, "Stop").len()), ("1", 0));
    let server = ModelServer::scripted([round(1), round(2)]);
    let output = bed.run(&server, "/ralph-loop Make it work.");
    let sent: String = server.main_requests().iter().map(Request::all_text).collect();
    if bed.is_newest() {
        assert!(sent.contains("no command with that name is available in this session"), "{sent}");
    } else {
        assert_eq!((sent.as_str(), result_text(&output)), ("", "Unknown command: /ralph-loop"));
    }
    assert_eq!(fs::read_to_string(&settings).unwrap(), before);
}
both!(s1_1_uninstall_leaves_nothing);

/// S1-3: the commands are there and the hook is not: the model is told, so the person will be.
fn s1_3_a_missing_hook_is_noticed(version: Version) {
    let bed = or_skip!(Bed::with_program(version));
    bed.ralph_ok(&["init", "--project"]);
    let hears = |command: &str| {
        let server = ModelServer::scripted([say("The hook is not at work.")]);
        let output = bed.client.print(&bed.project, &server, command).output();
        assert_eq!(output.code, Some(0), "{output:?}");
        let text = server.main_requests()[0].all_text();
        assert!(text.contains("the hook is not at work") && text.contains("`ralph doctor`") && !text.contains(TOLD), "{text}");
    };
    // Registered, but the client's PATH is not the person's.
    hears("/ralph-loop Make it work.");
    fs::remove_file(bed.project.path(".claude/settings.json")).unwrap();
    for command in nightly::amount(&["/cancel-ralph"][..], &["/ralph Make it work.", "/cancel-ralph", "/ralph-resume"]) {
        hears(command);
    }
    // The client passes on what is in the files.
    for file in files_in(bed.project.path(".claude/commands")) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("the hook is not at work") && text.contains("`ralph doctor`"), "{}: {text}", file.display());
    }
    assert_eq!(bed.loop_file(), None);
}
newest!(s1_3_a_missing_hook_is_noticed);

/// S1-3, t2: loops are the person's. The model is not told of the commands, and can neither start nor end a loop with them or in its shell.
fn s1_3_the_model_cannot_use_the_commands(version: Version) {
    let bed = or_skip!(Bed::with_plugin(version));
    bed.ralph_ok(&["init"]);
    let skill = |name: &str| Reply::tool("Skill", json!({"skill": name, "args": "Do it."}));
    let slash = Reply::tool("SlashCommand", json!({"command": "/ralph-loop Do it."}));
    let start = Reply::bash("ralph start 'Another.' --name other --completion-promise DONE");
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let replies =
        [skill("ralph-loop"), skill("ralph:loop"), slash, start, skill("cancel-ralph"), skill("ralph:cancel"), round(1), claim(2)];
    let server = ModelServer::scripted(replies);
    let output = bed.run(&server, "hello");
    assert_eq!(result_text(&output), claimed(2));
    let requests = server.main_requests();
    let results: Vec<String> = requests[1..7].iter().map(Request::last_user_text).collect();
    for at in [0, 1, 4, 5] {
        assert!(results[at].contains("disable-model-invocation"), "{results:?}");
    }
    assert!(results[2].contains("No such tool available"), "{results:?}");
    assert!(results[3].contains("only a person can start a loop"), "{results:?}");
    assert!(!requests[0].body.to_string().contains("starts a ralph loop"), "the model is not told of the commands");
    let journal = bed.journal();
    assert_eq!((journal.of_kind("started").len(), journal.of_kind("cancelled").len()), (1, 0));
    assert_eq!(journal.codes(), missing_then(1, "promise.accepted"));
    assert_eq!(prompt_in(&bed.archive()[0]), "Go on.");
}
newest!(s1_3_the_model_cannot_use_the_commands);
