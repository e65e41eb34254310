//! The usage of whole sessions and their subagents, message by message: for reports, and for a session that crashed before it could report it.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use ralph_core::{
    journal::is_older,
    judge::session_outcome::Tokens,
    money::Micros,
    text::{Lines, time::Millis},
};

use super::{Amount, MAX_LINE, Meter, read_lines, spending::REACH};
use crate::hosts::claude::transcript::{OpenFile, find, of_subagents};

/// Messages that are remembered, to know them again where another file repeats them: a session that goes on under another name takes its past along.
const MOST_KNOWN: usize = 500_000;

/// The usage that one line of a transcript adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    pub amount: Amount,
    pub of_subagent: bool,
}

impl Spent {
    /// Hands on what the messages of these sessions used that are newer than `since`: those of each file in their order, one file after the other. At most about
    /// `most` bytes are read. A session without a transcript adds nothing; the result says whether there was any.
    pub fn of_sessions<'s>(
        claude_config: &Path,
        sessions: impl IntoIterator<Item = &'s str>,
        since: Millis,
        most: u64,
        mut each: impl FnMut(Spent),
    ) -> bool {
        let files = files(claude_config, sessions, since);
        let mut budget = most;
        // Which file told of a message first, by a fingerprint of its id.
        let mut known = HashMap::new();
        for (n, (path, of_subagent)) in files.iter().enumerate() {
            let Some(source) = OpenFile::open(path) else { continue };
            let mut meter = Meter::since(since);
            read_lines(&source, 0, Lines::new(MAX_LINE), &mut budget, |line| {
                if let Some(amount) = meter.line(line, |id| is_elsewhere(&mut known, id, n)) {
                    each(Spent { amount, of_subagent: *of_subagent });
                }
            });
        }
        !files.is_empty()
    }

    /// The usage of a session, its subagents included, as far as their first [`REACH`] bytes tell; `None`: it has no transcript.
    pub fn of_session(claude_config: &Path, session: &str) -> Option<(Tokens, Micros)> {
        let mut sum = (Tokens::default(), 0);
        let add = |one: Spent| sum = (sum.0.plus(one.amount.tokens), Micros::saturating_add(sum.1, one.amount.usd_micros));
        Spent::of_sessions(claude_config, [session], 0, REACH, add).then_some(sum)
    }
}

/// The transcripts of these sessions, each once, and whether it is a subagent's.
fn files<'s>(claude_config: &Path, sessions: impl IntoIterator<Item = &'s str>, since: Millis) -> Vec<(PathBuf, bool)> {
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    for own in sessions.into_iter().filter_map(|session| find(claude_config, session)) {
        let subagents = of_subagents(&own).into_iter().filter(|file| !is_older(file.changed, since)).map(|file| (file.path, true));
        files.extend([(own, false)].into_iter().chain(subagents).filter(|(path, _)| seen.insert(path.clone())));
    }
    files
}

/// Whether another file told of this message first.
fn is_elsewhere(known: &mut HashMap<u64, usize>, id: &str, file: usize) -> bool {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let is_full = known.len() >= MOST_KNOWN;
    match known.entry(hasher.finish()) {
        Entry::Occupied(first) => *first.get() != file,
        Entry::Vacant(place) => {
            if !is_full {
                place.insert(file);
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sys::{files, temp_dir::Scratch};

    fn recorded(name: &str) -> Vec<u8> {
        fs::read(format!("{}/tests/transcripts/{name}.jsonl", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    fn all(config: &Path, sessions: &[&str], since: Millis) -> Vec<Spent> {
        let mut spent = Vec::new();
        Spent::of_sessions(config, sessions.iter().copied(), since, u64::MAX, |one| spent.push(one));
        spent
    }

    fn tokens(spent: &[Spent]) -> u64 {
        spent.iter().map(|one| one.amount.tokens.total()).sum()
    }

    #[test]
    fn eyes_2_what_a_session_and_its_subagents_used_is_told_with_its_times() {
        let scratch = Scratch::create("ralph-used-", false).unwrap();
        let folder = scratch.path().join("projects/-home-me-proj");
        fs::create_dir_all(folder.join("s-1/subagents")).unwrap();
        files::append(&folder.join("s-1.jsonl"), &recorded("2.1.325-subagent")).unwrap();
        files::append(&folder.join("s-1/subagents/agent-a.jsonl"), &recorded("2.1.325-subagent.agent")).unwrap();
        let spent = all(scratch.path(), &["s-1", "s-2", "../s-1", "s-1"], 0);
        assert_eq!((spent.len(), tokens(&spent)), (6, 660));
        assert_eq!(spent.iter().filter(|one| one.of_subagent).count(), 1);
        assert!(spent.iter().all(|one| one.amount.at > 1_794_000_000_000 && one.amount.usd_micros > 0 && one.amount.context == Some(100)));
        let middle = spent[1].amount.at;
        let later = all(scratch.path(), &["s-1"], middle);
        assert!(later.len() < spent.len() && later.iter().all(|one| one.amount.at > middle), "what is older does not count");
        assert_eq!(Spent::of_session(scratch.path(), "s-1").unwrap().0.total(), 660);
        assert_eq!((Spent::of_session(scratch.path(), "s-2"), Spent::of_session(scratch.path(), "../s-1")), (None, None));
        // The file goes on.
        files::append(&folder.join("s-1.jsonl"), &recorded("2.1.325-compacted")).unwrap();
        let more = all(scratch.path(), &["s-1"], 0);
        let compactions: Vec<_> = more.iter().filter(|one| one.amount.context.is_none()).collect();
        assert_eq!(compactions.len(), 1);
        assert_eq!(compactions[0].amount.tokens.input, 110);
    }

    #[test]
    fn t24_the_usage_of_one_session_is_read_within_bounds() {
        let scratch = Scratch::create("ralph-used-", false).unwrap();
        let folder = scratch.path().join("projects/-home-me-proj");
        fs::create_dir_all(&folder).unwrap();
        let (path, message) = (folder.join("s-1.jsonl"), recorded("2.1.325-subagent"));
        files::append(&path, &message).unwrap();
        let used = Spent::of_session(scratch.path(), "s-1").unwrap();
        // Behind a hole that is longer than what is read.
        let file = fs::File::options().append(true).open(&path).unwrap();
        file.set_len(REACH + (1 << 20)).unwrap();
        let more = String::from_utf8(message).unwrap().replace("msg_0", "msg_1");
        files::append(&path, format!("\n{more}").as_bytes()).unwrap();
        assert_eq!(Spent::of_session(scratch.path(), "s-1").unwrap(), used);
        assert!(tokens(&all(scratch.path(), &["s-1"], 0)) > used.0.total(), "without the bound it would count");
    }

    #[test]
    fn eyes_2_a_session_that_goes_on_under_another_name_counts_its_past_once() {
        let scratch = Scratch::create("ralph-used-", false).unwrap();
        let folder = scratch.path().join("projects/-home-me-proj");
        fs::create_dir_all(&folder).unwrap();
        let past = recorded("2.1.325-subagent");
        files::append(&folder.join("a.jsonl"), &past).unwrap();
        let next = String::from_utf8(past.clone()).unwrap().replace("msg_0", "msg_1");
        files::append(&folder.join("b.jsonl"), &[past, next.into_bytes()].concat()).unwrap();
        assert_eq!(tokens(&all(scratch.path(), &["a", "b"], 0)), 2 * 550);
    }
}
