//! Claims with the real client and a scripted model: what ends a loop, what heals itself, what asks a person, and what a person said last (t5, t11, t12).

use std::{thread, time::Duration};

use crate::real::*;
use ralph_testkit::{Gate, ModelServer, SignIn, Version, or_skip};

/// What a model writes when it does what it is told: a summary full of words that deny, and the tag.
const INSTRUCTED: &str = "Nothing is left to do, and no test was skipped.\n\nTests: 12 passed, 0 failed\n\n<promise>DONE</promise>";

/// t11: the instructed form is accepted at once, whatever the summary above it says.
fn t11_a_claim_in_the_instructed_form_ends_the_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let server = ModelServer::scripted([round(1), say(INSTRUCTED), claim(3)]);
    bed.run(&server, "begin");
    assert_eq!(server.main_requests().len(), 2, "no third iteration");
    assert_eq!(bed.journal().codes(), missing_then(1, "promise.accepted"));
    bed.assert_archived(2);
    bed.assert_replays(2);
}
newest!(t11_a_claim_in_the_instructed_form_ends_the_loop);

/// t11: a mention is answered with the line to write, and a model that writes it is done in the next iteration.
fn t11_a_mention_heals_in_one_iteration(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "ALL DONE"]);
    let server = ModelServer::with(|request| {
        let text = request.all_text();
        match text.split("does not count").nth(1).and_then(|told| told.split("end your message with ").nth(1)) {
            Some(line) => say(format!("As you like.\n\n{}", line.split(" on a line").next().unwrap())),
            None => say("Everything is finished: <promise>ALL DONE</promise>"),
        }
    });
    bed.run(&server, "begin");
    assert_eq!(server.main_requests().len(), 2);
    assert_eq!(bed.journal().codes(), ["promise.refused", "promise.accepted"]);
    bed.assert_archived(2);
}
newest!(t11_a_mention_heals_in_one_iteration);

/// t12: an agent that cannot go on is sent back once; the second time the loop pauses, and the person is told why.
fn t12_blocked_twice_pauses_the_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Deploy it.", "--completion-promise", "DONE"]);
    let blocked = |n: usize| say(format!("Try {n}: there is no key.\n\n<blocked>no key for the deploy</blocked>"));
    let server = ModelServer::scripted([work(1), blocked(1), work(2), blocked(2), claim(3)]);
    let output = bed.run(&server, "begin");
    let requests = server.main_requests();
    assert_eq!(requests.len(), 4, "no third iteration");
    let told = requests[2].all_text();
    assert!(told.contains("You said that you cannot go on: no key for the deploy. Try another way first"), "{told}");
    assert_eq!(bed.journal().codes(), ["agent.blocked", "agent.blocked"]);
    assert_eq!((bed.value("active"), bed.value("iteration")), ("false".to_owned(), "2".to_owned()));
    let line = "paused at iteration 2: the agent says that it cannot go on: no key for the deploy";
    assert!(answers(&output, "Stop").last().unwrap().contains(line), "{:?}", answers(&output, "Stop"));
    assert_eq!(informed(&output).iter().filter(|told| told.contains(line)).count(), usize::from(bed.is_newest()));
    let status = bed.ralph_ok(&["status"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status.contains("no key for the deploy"), "{status}");
    bed.assert_replays(2);
}
both!(t12_blocked_twice_pauses_the_loop);

/// t12: the same in fresh sessions: the second session knows what the first one said, and the run ends with 12.
fn t12_a_run_ends_with_12_when_the_agent_is_blocked(version: Version) {
    let server = ModelServer::with(|_| say("There is no key.\n\n<blocked>no key for the deploy</blocked>"));
    let mut bed = or_skip!(Bed::new(version));
    bed.project.write("README.md", "a project\n");
    bed.project.commit_all("begin");
    let program = bed.client.as_program(&bed.project, &server, SignIn::Key, &[("CLAUDE_CODE_MAX_RETRIES", "0")]);
    bed.path = format!("{}:{}", program.parent().unwrap().display(), bed.path);
    let run = bed.project.run(RALPH).env("PATH", &bed.path).env("IS_SANDBOX", "1");
    let args = ["run", "Deploy it.", "--completion-promise", "DONE", "--permission-mode", "bypassPermissions"];
    let output = run.args(args).timeout(Duration::from_mins(3)).output();
    assert_eq!(output.code, Some(12), "{output:?}");
    assert_eq!(bed.journal().codes(), ["agent.blocked", "agent.blocked"]);
    assert!(output.stdout.contains("the agent says that it cannot go on: no key for the deploy"), "{output:?}");
    let told = |n: usize, words: &str| server.main_requests()[n].all_text().contains(words);
    assert!(told(0, "end your message with <blocked>why</blocked>"));
    assert!(told(1, "The last iteration ended because it could not go on: no key for the deploy."));
}
newest!(t12_a_run_ends_with_12_when_the_agent_is_blocked);

/// t5: a note that a person leaves while the agent works goes before the claim that ends that work.
fn t5_a_note_goes_before_a_claim(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let gate = Gate::new();
    let server = ModelServer::scripted([round(1), claim(2).hang(&gate), claim(3)]);
    thread::scope(|scope| {
        let opens = Opens(&gate);
        let client = scope.spawn(|| bed.run(&server, "begin"));
        assert!(gate.wait_reached(SOON));
        bed.ralph_ok(&["steer", "Use tabs, please"]);
        drop(opens);
        client.join().unwrap()
    });
    let requests = server.main_requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[2].all_text().contains("- Use tabs, please"));
    assert_eq!(bed.journal().codes(), ["promise.missing", "note.undelivered", "promise.accepted"]);
    bed.assert_archived(3);
    bed.assert_replays(3);
}
newest!(t5_a_note_goes_before_a_claim);
