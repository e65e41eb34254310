//! What sessions used that no runner counted: told by the transcripts of their clients, main and subagents, message by message.
//!
//! Files are read forwards, each byte once, and may go on growing. A session without a transcript is named, and nothing is guessed in its place.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use ralph_core::text::time::Millis;

use crate::{
    hosts::claude::{
        transcripts::{self, Transcript},
        usage::{self, Amount, Messages},
    },
    sys::follow::{Follower, Seen},
};

/// So many messages are remembered, to know those again that another file repeats: a session that goes on under another name takes its past along.
const MOST_KNOWN: usize = 500_000;

/// What one line of a transcript adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    pub amount: Amount,
    pub of_subagent: bool,
}

/// The transcripts of some sessions.
#[derive(Debug)]
pub struct Transcripts {
    claude_config: PathBuf,
    sessions: Vec<Session>,
    since: Millis,
    files: Vec<File>,
    paths: HashSet<PathBuf>,
    /// Which file told of a message first, by a fingerprint of its id.
    known: HashMap<u64, usize>,
}

#[derive(Debug)]
struct Session {
    id: String,
    /// Its own transcript.
    path: Option<PathBuf>,
}

#[derive(Debug)]
struct File {
    follower: Follower,
    messages: Messages,
    of_subagent: bool,
}

impl Transcripts {
    /// Of these sessions, whose client keeps its files in that folder. What is not newer than `since` does not count.
    pub fn of(claude_config: &Path, sessions: impl IntoIterator<Item = String>, since: Millis) -> Self {
        let mut all = Transcripts {
            claude_config: claude_config.to_owned(),
            sessions: Vec::new(),
            since,
            files: Vec::new(),
            paths: HashSet::new(),
            known: HashMap::new(),
        };
        sessions.into_iter().for_each(|session| all.add(session));
        all
    }

    /// A further session has the loop.
    pub fn add(&mut self, session: String) {
        if self.sessions.iter().all(|known| known.id != session) {
            self.sessions.push(Session { id: session, path: None });
        }
    }

    /// Hands on what about `most` bytes more tell: the messages of each file in their order, one file after the other. `true`: there is more to read.
    pub fn read_on(&mut self, most: u64, mut each: impl FnMut(&Spent)) -> bool {
        self.find_files();
        let mut left = most;
        let mut more = false;
        for (n, file) in self.files.iter_mut().enumerate() {
            let (known, of_subagent, messages) = (&mut self.known, file.of_subagent, &mut file.messages);
            let mut read = 0;
            let look = file.follower.look(left, |seen| match seen {
                Seen::Anew => messages.begin_anew(),
                Seen::Line(line) => {
                    read += line.len() as u64 + 1;
                    if let Some(amount) = messages.line(line, |id| is_elsewhere(known, id, n)) {
                        each(&Spent { amount, of_subagent });
                    }
                }
            });
            more |= look.more;
            left = left.saturating_sub(read);
        }
        more
    }

    /// Sessions that have no transcript: it was removed, or lies on another machine.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.sessions.iter().filter(|session| session.path.is_none()).map(|session| session.id.as_str())
    }

    /// The files that grow, for whoever watches.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.follower.path())
    }

    fn find_files(&mut self) {
        let mut found: Vec<(PathBuf, bool)> = Vec::new();
        for session in &mut self.sessions {
            if session.path.is_none() {
                session.path = transcripts::find(&self.claude_config, &session.id);
                found.extend(session.path.clone().map(|path| (path, false)));
            }
            let since = u64::try_from(self.since).unwrap_or(0);
            let of_subagents = session.path.iter().flat_map(|path| transcripts::of_subagents(path));
            // What was last changed before the loop began has nothing in it that counts.
            found.extend(of_subagents.filter(|file: &Transcript| file.changed > since).map(|file| (file.path, true)));
        }
        for (path, of_subagent) in found {
            if self.paths.insert(path.clone()) {
                let follower = Follower::new(path, usage::MAX_LINE);
                self.files.push(File { follower, messages: Messages::since(self.since), of_subagent });
            }
        }
    }
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

    fn all(transcripts: &mut Transcripts, most: u64) -> Vec<Spent> {
        let mut spent = Vec::new();
        while transcripts.read_on(most, |one| spent.push(*one)) {}
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
        let sessions = ["s-1", "s-2", "../s-1", "s-1"].map(str::to_owned);
        let mut transcripts = Transcripts::of(scratch.path(), sessions, 0);
        let spent = all(&mut transcripts, u64::MAX);
        assert_eq!(transcripts.missing().collect::<Vec<_>>(), ["s-2", "../s-1"]);
        assert_eq!((spent.len(), tokens(&spent)), (6, 660));
        assert_eq!(spent.iter().filter(|one| one.of_subagent).count(), 1);
        assert!(spent.iter().all(|one| one.amount.at > 1_794_000_000_000 && one.amount.usd_micros > 0 && one.amount.context == Some(100)));
        let middle = spent[1].amount.at;
        let later = all(&mut Transcripts::of(scratch.path(), ["s-1".to_owned()], middle), 1);
        assert!(later.len() < spent.len() && later.iter().all(|one| one.amount.at > middle), "what is older does not count");
        // The file goes on.
        assert_eq!(all(&mut transcripts, u64::MAX), []);
        files::append(&folder.join("s-1.jsonl"), &recorded("2.1.325-compacted")).unwrap();
        let more = all(&mut transcripts, u64::MAX);
        let compactions: Vec<_> = more.iter().filter(|one| one.amount.context.is_none()).collect();
        assert_eq!(compactions.len(), 1);
        assert_eq!(compactions[0].amount.tokens.input, 110);
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
        let mut transcripts = Transcripts::of(scratch.path(), ["a", "b"].map(str::to_owned), 0);
        assert_eq!(tokens(&all(&mut transcripts, u64::MAX)), 2 * 550);
        // A file that was written anew has what was counted before.
        fs::remove_file(folder.join("a.jsonl")).unwrap();
        all(&mut transcripts, u64::MAX);
        files::append(&folder.join("a.jsonl"), &recorded("2.1.325-subagent")).unwrap();
        assert_eq!(all(&mut transcripts, u64::MAX), []);
    }
}
