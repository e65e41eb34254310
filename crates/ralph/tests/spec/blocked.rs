//! An agent that cannot go on says so (t12): it is sent back once to try another way, and then a person is asked. The same failure again is told differently.

use crate::{
    common::{Bed, LOOP, ME, PROMPT, loop_text},
    run::Runs,
};

const NO_KEY: &str = "There is no key here.\n\n<blocked>no API key for the deploy</blocked>";

/// What the agent is told the first time.
const TRY: &str = "[ralph] You said that you cannot go on: no API key for the deploy. Try another way first: look for what you can do yourself, and do what does not \
                   depend on it. If that does not work either, say so again with <blocked>why</blocked> on the last line: then the loop pauses, and a person is asked.";

#[test]
fn t12_an_agent_that_cannot_go_on_is_sent_back_once_and_then_a_person_is_told_why() {
    for promise in ["DONE", "null"] {
        let bed = Bed::new();
        bed.write(LOOP, loop_text(ME, 1, 0, promise));
        let line = bed.stop(NO_KEY).send().blocks_with(&format!("{PROMPT}\n\n{TRY}"));
        assert!(line.contains("The agent says that it cannot go on; it is sent back once to try another way."), "{line}");
        let line = bed.stop(&NO_KEY.replace("here", "there")).send().line();
        let expected = "Ralph: paused at iteration 2: the agent says that it cannot go on: no API key for the deploy. `ralph steer TEXT` leaves it an answer; \
                        /ralph-resume arms it again.";
        assert_eq!(line, expected);
        assert_eq!(bed.codes(), ["agent.blocked", "agent.blocked"]);
        assert_eq!(bed.value("active"), "false");
        let shown = |args: &[&str]| bed.ralph_ok(args).split_whitespace().collect::<Vec<_>>().join(" ");
        for args in [&["status"][..], &["explain"], &["report", "--markdown"]] {
            assert!(shown(args).contains("no API key for the deploy"), "{args:?}: {}", shown(args));
        }
        assert!(shown(&["explain"]).contains("the agent says that it cannot go on, 2 times in a row:"));
        bed.ralph_ok(&["explain", "--replay", bed.files_in(".ralph/journal")[0].to_str().unwrap()]);
        // Whoever resumes it has changed something: the count begins again.
        bed.ralph_ok(&["resume"]);
        assert!(bed.stop(NO_KEY).send().blocks());
    }
}

#[test]
fn t12_only_iterations_in_a_row_count() {
    let bed = Bed::with_loop(1, 0, "DONE");
    assert!(bed.stop(NO_KEY).send().blocks());
    bed.stop("I found another way.").send().blocks_with(PROMPT);
    assert!(bed.stop(NO_KEY).send().blocks());
    assert!(bed.stop("Still at work.").send().blocks());
    assert_eq!(bed.codes(), ["agent.blocked", "promise.missing", "agent.blocked", "promise.missing"]);
    assert_eq!(bed.value("active"), "true");
}

#[test]
fn t12_what_does_not_say_why_or_says_both_does_not_count() {
    for said in [
        "<blocked>why</blocked>",
        "<blocked>…</blocked>",
        "<blocked></blocked>",
        "`<blocked>no key</blocked>`",
        "So. <blocked>no key</blocked>",
    ] {
        let bed = Bed::with_loop(1, 0, "DONE");
        bed.stop(said).send().blocks_with(PROMPT);
        assert_eq!(bed.codes(), ["promise.missing"], "{said}");
    }
    let bed = Bed::with_loop(1, 0, "DONE");
    assert!(bed.stop("<promise>DONE</promise>\n\n<blocked>no key</blocked>").send().blocks());
    assert_eq!(bed.codes(), ["promise.refused"]);
}

#[test]
fn t12_a_limit_says_what_the_agent_said_last() {
    let bed = Bed::with_loop(3, 3, "DONE");
    let line = bed.stop(NO_KEY).send().line();
    assert!(
        line.contains("limit of 3 iterations, and the agent says that it cannot go on (no API key for the deploy). The loop is kept"),
        "{line}"
    );
}

/// In fresh sessions it is the same; the run ends with 12, and says why.
#[test]
fn t12_a_run_ends_with_12_when_the_agent_cannot_go_on() {
    let runs = Runs::new("echo $N >> work.txt; commit; echo 'There is no key.'; echo; echo '<blocked>no API key</blocked>'\n");
    let out = runs.ends(12, &["Go", "--completion-promise", "DONE"]);
    assert_eq!(runs.ruled(), [(1, "agent.blocked".to_owned()), (2, "agent.blocked".to_owned())]);
    assert!(runs.prompt(1).contains("end your message with <blocked>why</blocked> on a line of its own"), "{}", runs.prompt(1));
    assert!(runs.prompt(2).contains("The last iteration ended because it could not go on: no API key."), "{}", runs.prompt(2));
    let shown = format!("{}{}", out.stdout, out.stderr);
    assert!(shown.contains("the agent says that it cannot go on: no API key"), "{shown}");
    assert!(shown.contains("`ralph run --continue` goes on"), "{shown}");
}

/// The same failure in a row is told differently each time; another failure begins anew.
#[test]
fn t12_the_same_failure_is_told_differently_each_time() {
    let bed = Bed::new();
    bed.write(LOOP, format!("---\niteration: 1\nsession_id: {ME}\nverify:\n  - run: \"cat result; exit 1\"\n---\n{PROMPT}\n"));
    bed.ralph_ok(&["trust", "--yes"]);
    bed.write("result", "one test fails\n");
    let told = |said: &str| {
        bed.write("work.txt", said);
        bed.stop(said).send().reason()
    };
    let all: Vec<String> = (1..=6).map(|n| told(&format!("Try {n}."))).collect();
    assert!(!all[0].contains("in a row"), "{}", all[0]);
    let advice: Vec<&str> = all[1..].iter().map(|text| text.split(" times in a row. ").nth(1).unwrap().lines().next().unwrap()).collect();
    for (n, pair) in advice.windows(2).enumerate().take(3) {
        assert_ne!(pair[0], pair[1], "{n}");
    }
    assert!(all[3].contains("has failed in this very way 4 times in a row."), "{}", all[3]);
    assert!(all[5].contains("6 times in a row. If no other way is left, end your message with <blocked>why</blocked>"), "{}", all[5]);
}
