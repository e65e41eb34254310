//! The corpus of endings (`claims/README.md`): how many honest ones are accepted, and how many others are refused (t11).

#![allow(clippy::panic, clippy::print_stdout, reason = "tests: they fail loudly, and tell their figures")]

use ralph_core::judge::Claim;
use serde::Deserialize;

#[derive(Deserialize)]
struct Ending {
    honest: bool,
    lang: String,
    kind: String,
    text: String,
    #[serde(default)]
    promise: Option<String>,
    #[serde(default)]
    prompt: String,
    #[serde(default)]
    loose: bool,
}

impl Ending {
    fn is_accepted(&self) -> bool {
        Claim::find(&self.text, self.promise.as_deref().unwrap_or("DONE"), &self.prompt) == Claim::Made
    }
}

fn read(corpus: &str) -> Vec<Ending> {
    corpus.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// The endings of a corpus that are judged wrongly: kind, language, and the beginning of the line above the tag.
fn misses(name: &str, corpus: &str, at_least: usize) -> Vec<String> {
    let all = read(corpus);
    let asked: Vec<&Ending> = all.iter().filter(|ending| !ending.loose).collect();
    let loose: Vec<&Ending> = all.iter().filter(|ending| ending.loose).collect();
    let share = |honest: bool| {
        let of: Vec<_> = asked.iter().filter(|ending| ending.honest == honest).collect();
        let right = of.iter().filter(|ending| ending.is_accepted() == honest).count();
        println!("{name}: {right} of {} {}", of.len(), if honest { "honest endings accepted" } else { "other endings refused" });
        (right * 100, of.len())
    };
    for (hundredfold, all) in [share(true), share(false)] {
        assert!(hundredfold >= at_least * all, "{name}: less than {at_least} %");
    }
    println!("{name}: {} of {} loose endings accepted", loose.iter().filter(|ending| ending.is_accepted()).count(), loose.len());
    let wrong = asked.iter().filter(|ending| ending.is_accepted() != ending.honest);
    wrong
        .map(|ending| format!("{} {}: {}", ending.kind, ending.lang, ending.text.chars().take(24).collect::<String>().replace('\n', " ")))
        .collect()
}

#[test]
fn t11_held_out_endings_are_judged_right_to_95_percent_both_ways() {
    assert_eq!(misses("held-out", include_str!("claims/held-out.jsonl"), 95), HELD_OUT);
}

#[test]
fn t11_endings_that_the_rule_was_tuned_on() {
    assert_eq!(misses("tuning", include_str!("claims/tuning.jsonl"), 95), TUNING);
}

#[test]
fn t11_endings_that_were_measured_before() {
    assert_eq!(misses("measured", include_str!("claims/measured.jsonl"), 93), MEASURED);
}

/// Known misses. What words say against the tag below them no form can tell; what announces an honest tag costs one iteration.
const HELD_OUT: &[&str] = &[
    "lead-in en: Since all of the above h",
    "lead-in en: So, as instructed, here ",
    "contradiction en: Only the Windows build i",
    "contradiction en: I ran out of time, half ",
    "contradiction de: Die Hälfte fehlt noch.  ",
    "run on en: The message that ends th",
];
const TUNING: &[&str] =
    &["lead-in en: Every box of the checkli", "contradiction en: One of the five endpoint", "run on en: I will only ever finish "];
/// Of the last ones, every seventeenth contradicts itself.
const MEASURED: &[&str] = &[
    "other en: The example was `<promis",
    "leadin en: All phases are complete,",
    "plan en: Iteration 3 is done (sto",
    "contradiction en: Progress this iteration:",
    "contradiction en: The main path works, but",
    "contradiction en: I was not able to get th",
    "contradiction en: ⚠️ Partially completed: ",
    "contradiction zh: 目前只完成了一半，还有三个测试没有通过。  <p",
    "contradiction de: Zwei Tests schlagen noch",
    "restated zh: 任务要求：全部测试通过后输出 <promise>",
];
