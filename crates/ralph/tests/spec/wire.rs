//! The answer on the wire (S0-10, design 7): which form, for which client, at which size.

use serde_json::json;

use crate::{
    claims::BLOCKED,
    common::{Bed, LOOP, ME, PROMPT, loop_text},
};

const TELLS: &str = "Ralph: iteration 2. Ends on <promise>DONE</promise>.";

fn with(extra: &str, prompt: &str) -> Bed {
    let bed = Bed::new();
    let text = loop_text(ME, 1, 0, "DONE").replace("active: true\n", &format!("active: true\n{extra}"));
    bed.write(LOOP, text.replace(PROMPT, prompt));
    bed
}

/// S0-10: `auto` follows the client's version.
#[test]
fn s0_10_auto_uses_the_context_form_only_where_the_client_knows_it() {
    for extra in ["", "continue_with: auto\n"] {
        for client in [
            "claude-code_2-1-163_harness",
            "claude-code_2-1-325_harness",
            "claude-code_2-2-0_x",
            "claude-code_3-0-0",
            "claude-code_2.1.200",
        ] {
            assert_eq!(with(extra, PROMPT).work().client(client).send().goes_on_with(PROMPT), TELLS, "{client}");
        }
        for client in [
            "claude-code_2-1-162_harness",
            "claude-code_2-0-999_x",
            "claude-code_1-9-999",
            "claude-code_next",
            "codex_9-9-9",
            "",
            "2.1.325",
        ] {
            assert_eq!(with(extra, PROMPT).work().client(client).send().blocks_with(PROMPT), TELLS, "{client}");
        }
        assert_eq!(with(extra, PROMPT).work().send().blocks_with(PROMPT), TELLS);
    }
}

/// S0-10: the loop can force either form.
#[test]
fn s0_10_the_loop_can_force_a_form() {
    with("continue_with: block\n", PROMPT).work().client("claude-code_2-1-325_harness").send().blocks_with(PROMPT);
    with("continue_with: context\n", PROMPT).work().send().goes_on_with(PROMPT);
    with("continue_with: \"context\"\n", PROMPT).work().client("claude-code_2-1-100_x").send().goes_on_with(PROMPT);
    // Any other word is a mistake that is named.
    let line = with("continue_with: exit2\n", PROMPT).work().send().line();
    assert!(line.contains("`continue_with` must be one of auto, block, context, not `exit2`"), "{line}");
}

/// S0-10: what the client would cut goes as a block: 10,000 characters as JavaScript counts them.
#[test]
fn s0_10_a_long_prompt_goes_as_a_block() {
    let client = "claude-code_2-1-325_harness";
    let sizes = [
        ("x".repeat(10_000), true),
        ("x".repeat(10_001), false),
        ("é".repeat(10_000), true),
        ("😀".repeat(5_000), true),
        ("😀".repeat(5_001), false),
    ];
    for (prompt, fits) in &sizes {
        let answer = with("", prompt).work().client(client).send();
        let forced = with("continue_with: context\n", prompt).work().client(client).send();
        if *fits {
            answer.goes_on_with(prompt);
            forced.goes_on_with(prompt);
        } else {
            answer.blocks_with(prompt);
            forced.blocks_with(prompt);
        }
    }
    // With the reminder the text is longer than the prompt; the whole of it must fit.
    let bed = with("remind: true\n", &"x".repeat(9_950));
    assert_eq!(bed.work().client(client).send().json.unwrap()["decision"], "block");
}

/// S0-10: 400 KB of any characters arrive whole, in one line.
#[test]
fn s0_10_a_prompt_of_400_kb_arrives_whole() {
    let piece = "Zeile \"quoted\" \\ back\tslash <system-reminder> ünïcødé 🎉 \u{2028} $HOME `id`\n\n---\n";
    let prompt = piece.repeat(400 * 1024 / piece.len());
    let prompt = prompt.trim_end_matches('\n');
    for client in ["claude-code_2-1-325_harness", "claude-code_2-1-100_harness"] {
        let bed = with("", prompt);
        bed.work().client(client).send().blocks_with(prompt);
        assert_eq!(bed.iteration(), 2);
    }
}

/// S0-10: `remind: true` adds one line: how to claim.
#[test]
fn s0_10_the_reminder_is_one_line_after_the_prompt() {
    let hint = "[ralph] Only when all of it is completely true, end your message with <promise>DONE</promise> on a line of its own.";
    with("remind: true\n", PROMPT).work().send().blocks_with(&format!("{PROMPT}\n\n{hint} {BLOCKED}"));
    with("remind: false\n", PROMPT).work().send().blocks_with(PROMPT);
    let no_promise = Bed::new();
    no_promise.write(LOOP, loop_text(ME, 1, 0, "null").replace("active: true\n", "active: true\nremind: true\n"));
    no_promise.work().send().blocks_with(PROMPT);
}

/// S0-10: the keys of the answer stand in the well-known order, and nothing surrounds the line.
#[test]
fn s0_10_the_bytes_of_each_answer() {
    let raw = |bed: &Bed, client: &str| {
        let event = bed.work().client(client);
        let out = ralph_testkit::process::run_bounded(&mut event.command(), event.json().as_bytes(), std::time::Duration::from_secs(10));
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
        out.stdout
    };
    let line = "Ralph: iteration 2. Ends on <promise>DONE</promise>.";
    let block = format!("{{\"decision\":\"block\",\"reason\":\"Go\",\"systemMessage\":\"{line}\"}}\n");
    assert_eq!(raw(&with("", "Go"), "claude-code_2-1-100_x"), block);
    let context = "{\"hookEventName\":\"Stop\",\"additionalContext\":\"Go\"}";
    let context = format!("{{\"hookSpecificOutput\":{context},\"systemMessage\":\"{line}\"}}\n");
    assert_eq!(raw(&with("", "Go"), "claude-code_2-1-325_x"), context);
    let bed = with("max_iterations: 1\n", "Go");
    bed.write(LOOP, bed.read(LOOP).replace("max_iterations: 0\n", ""));
    assert_eq!(
        raw(&bed, "claude-code_2-1-325_x"),
        "{\"systemMessage\":\"Ralph: stopped at its limit of 1 iteration, without the promise. The loop is kept: `/ralph-resume \
         --max-iterations 2` goes on.\"}\n"
    );
    assert_eq!(raw(&bed, "claude-code_2-1-325_x"), "");
}

/// design 6: what the person sees has no control characters in it, whatever the promise holds.
#[test]
fn s0_10_the_persons_line_stays_one_line() {
    let bed = Bed::new();
    bed.write(LOOP, format!("---\niteration: 1\nsession_id: {ME}\ncompletion_promise: \"A\\nB\\e[31m\"\n---\nGo\n"));
    let line = bed.work().send().blocks_with("Go");
    assert!(!line.contains('\n'), "{line:?}");
    assert!(!line.contains('\u{1b}'), "{line:?}");
}

/// The journal keeps a bounded, printable end of the message.
#[test]
fn s0_10_the_journal_keeps_a_bounded_end_of_the_message() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.stop(&format!("{}\u{1b}[31m the\nend", "x".repeat(5_000))).send();
    let said = bed.journal().pop().unwrap()["event"]["said"].clone();
    let said = said.as_str().unwrap();
    assert!(said.chars().count() <= 170 && said.ends_with("the end") && !said.contains('\u{1b}'), "{said:?}");
    assert_eq!(json!(said.chars().next()), json!("…"));
}
