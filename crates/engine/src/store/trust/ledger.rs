//! The decisions about one repository, in a file that only this user can write.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::Path,
    time::Duration,
};

use ralph_core::text::time::Millis;
use serde::{Deserialize, Serialize};

use crate::{
    store::{
        Error,
        place::Place,
        private,
        trust::{Decision, Trust, sha256},
    },
    sys::{files, lock::Lock},
};

/// Several branches may have their own content, and should not ask again at each switch.
pub(super) const MOST_CONTENTS: usize = 16;
/// A list of work can have a command for each item.
pub(super) const MOST_COMMANDS: usize = 1_000;
/// Files of one repository that declare commands.
pub(super) const MOST_ORIGINS: usize = 200;
/// More than all of these take.
const LARGEST: u64 = 32 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A whole file.
    Content,
    /// One command of a file.
    Command,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ledger {
    repository: String,
    origins: BTreeMap<String, Origin>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Origin {
    /// The oldest first.
    #[serde(default)]
    contents: Vec<Trusted>,
    #[serde(default)]
    commands: Vec<Trusted>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Trusted {
    sha256: String,
    at: Millis,
}

impl Origin {
    fn knows(&self, hash: &str) -> bool {
        self.contents.iter().chain(&self.commands).any(|known| known.sha256 == hash)
    }

    fn last(&self) -> Millis {
        self.contents.iter().chain(&self.commands).map(|known| known.at).max().unwrap_or(0)
    }
}

impl Ledger {
    pub(super) fn empty(place: &Place) -> Self {
        Ledger { repository: repository(place), origins: BTreeMap::new() }
    }

    /// `None`: there are no decisions, or none that can be relied on.
    pub(super) fn read(folder: &Path, place: &Place) -> Option<Self> {
        private::check(folder, place).ok()?;
        let mut file = files::options().read(true).open(folder.join(file_name(place))).ok()?;
        let meta = file.metadata().ok()?;
        if !meta.is_file() || !files::is_mine_alone(&meta) || meta.len() > LARGEST {
            return None;
        }
        let mut bytes = Vec::new();
        Read::by_ref(&mut file).take(LARGEST).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|ledger: &Ledger| ledger.repository == repository(place))
    }

    pub(super) fn write(&self, folder: &Path, place: &Place) -> Result<(), Error> {
        let path = folder.join(file_name(place));
        let bytes = serde_json::to_vec_pretty(self).map_err(|e| Error::io("write", &path)(e.into()))?;
        files::replace_private(&path, &bytes).map_err(Error::io("write", &path))
    }

    /// The decision about something with these hashes, all of which have to be trusted.
    pub(super) fn says(&self, origin: &str, hashes: &[String]) -> Trust {
        match self.origins.get(origin) {
            None => Trust::Untrusted,
            Some(known) if hashes.iter().all(|hash| known.knows(hash)) => Trust::Trusted,
            Some(_) => Trust::Changed,
        }
    }

    pub(super) fn note(&mut self, origin: &str, hashes: &[String], kind: Kind, at: Millis) {
        let known = self.origins.entry(origin.to_owned()).or_default();
        let (list, most) = match kind {
            Kind::Content => (&mut known.contents, MOST_CONTENTS),
            Kind::Command => (&mut known.commands, MOST_COMMANDS),
        };
        for hash in hashes {
            list.retain(|known| known.sha256 != *hash);
            list.push(Trusted { sha256: hash.clone(), at });
        }
        list.drain(..list.len().saturating_sub(most));
        while self.origins.len() > MOST_ORIGINS {
            let oldest = self.origins.iter().filter(|(name, _)| *name != origin).min_by_key(|(_, known)| known.last());
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            self.origins.remove(&oldest);
        }
    }

    pub(super) fn decisions(&self) -> Vec<Decision> {
        let decision = |(origin, known): (&String, &Origin)| Decision {
            origin: origin.clone(),
            contents: known.contents.len(),
            commands: known.commands.len(),
            at: known.last(),
        };
        self.origins.iter().map(decision).collect()
    }
}

/// For people who read the file, and to be sure that it is the right one.
fn repository(place: &Place) -> String {
    place.key().display().to_string()
}

fn file_name(place: &Place) -> String {
    format!("{}.json", sha256(b"repository", &[place.key().as_os_str().as_encoded_bytes()]))
}

/// Makes the folder and locks it. On a file system without locks, decisions made at the same time can be lost.
pub(super) fn prepare(folder: &Path, place: &Place) -> Result<Option<Lock>, Error> {
    private::make(folder, place)?;
    match Lock::of_folder(folder, Duration::from_secs(3)) {
        Ok(None) => Err(Error::io("lock", folder)(io::ErrorKind::WouldBlock.into())),
        locked => Ok(locked.ok().flatten()),
    }
}

pub(super) fn remove(folder: &Path, place: &Place) -> Result<(), Error> {
    let path = folder.join(file_name(place));
    match fs::remove_file(&path) {
        Err(e) if !files::is_missing(&e) => return Err(Error::io("remove", &path)(e)),
        _ => {}
    }
    // With the last decision the folder goes too, and ralph's. This removes only empty folders.
    for folder in path.ancestors().skip(1).take(2) {
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}
