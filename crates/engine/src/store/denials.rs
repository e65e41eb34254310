//! The ledger of what nobody was there to allow: each rule that would have, and how often it was missed.

use ralph_core::journal::{Event, Record};
use serde::Serialize;

/// Tool calls that one rule would have allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Denials {
    /// For `permissions.allow` in the client's settings.
    pub rule: String,
    pub times: u64,
    /// What the last one was about: the command, the file.
    pub what: String,
}

/// All that these records know of, the most frequent first.
pub fn ledger<'r>(journal: impl IntoIterator<Item = &'r Record>) -> Vec<Denials> {
    let mut all: Vec<Denials> = Vec::new();
    let denied = journal.into_iter().filter_map(|record| match &record.event {
        Event::Stop { work, .. } => work.as_deref(),
        Event::Broke { work, .. } => Some(work),
        _ => None,
    });
    for one in denied.flat_map(|work| &work.denied) {
        match all.iter_mut().find(|known| known.rule == one.rule) {
            Some(known) => {
                known.times += 1;
                known.what.clone_from(&one.what);
            }
            None => all.push(Denials { rule: one.rule.clone(), times: 1, what: one.what.clone() }),
        }
    }
    // Rules that were missed equally often stay in the order in which they were.
    all.sort_by_key(|denials| std::cmp::Reverse(denials.times));
    all
}

/// The same since a runner last took the loop: what was denied before, a person may have allowed since.
pub fn of_this_run(journal: &[Record]) -> Vec<Denials> {
    let taken = journal.iter().rposition(|record| matches!(record.event, Event::Taken { .. })).unwrap_or(0);
    ledger(&journal[taken..])
}

#[cfg(test)]
mod tests {
    use ralph_core::{
        journal::State,
        judge::session_outcome::{Cut, Denied, Outcome, Then, Work},
    };

    use super::*;

    fn record(event: Event) -> Record {
        Record { v: 1, seq: 1, at: String::new(), loop_id: "main".to_owned(), session: None, event, state: State::default() }
    }

    fn broke(denied: &[(&str, &str)]) -> Record {
        let denied =
            denied.iter().map(|(rule, what)| Denied { tool: "Bash".to_owned(), what: (*what).to_owned(), rule: (*rule).to_owned() });
        record(Event::Broke {
            iteration: 1,
            attempt: 1,
            outcome: Outcome::Cut { by: Cut::Time },
            then: Then::Judge,
            work: Box::new(Work { denied: denied.collect(), ..Work::default() }),
        })
    }

    #[test]
    fn s4_6_what_was_missed_most_comes_first_and_an_earlier_run_does_not_count() {
        let old = broke(&[("Bash(make:*)", "make")]);
        let taken = record(Event::Taken { pid: 1, from: None, unfinished: None, unwritten: None });
        let new = [broke(&[("Edit", "a.rs"), ("Bash(npm test:*)", "npm test")]), broke(&[("Bash(npm test:*)", "npm test -- x")])];
        let journal: Vec<Record> = [old, taken].into_iter().chain(new).collect();
        let shown: Vec<String> = of_this_run(&journal).iter().map(|d| format!("{} {} {}", d.rule, d.times, d.what)).collect();
        assert_eq!(shown, ["Bash(npm test:*) 2 npm test -- x", "Edit 1 a.rs"]);
        assert_eq!(ledger(&journal).len(), 3);
        assert_eq!(of_this_run(&[]), []);
    }
}
