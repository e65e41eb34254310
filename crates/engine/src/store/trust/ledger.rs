//! The decisions about one repository, in a file that only its owner can have written.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::Path,
    time::Duration,
};

use ralph_core::text::time::Millis;
use serde::{Deserialize, Serialize};

use crate::{
    store::{
        Error, private,
        trust::{Decision, Trust, place::Place},
    },
    sys::files,
};

/// Two branches shall not ask again and again; more contents of one file than this are nobody's work.
pub(super) const MOST_CONTENTS: usize = 16;
/// A list can have a command for each of its items.
pub(super) const MOST_COMMANDS: usize = 1_000;
/// Files that declare commands, in one repository.
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
    /// For people: which repository it is. It also has to be the right one.
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
        Ledger { repository: place.key(), origins: BTreeMap::new() }
    }

    /// What was decided. `None`: nothing, or nothing that can be relied on.
    pub(super) fn read(folder: &Path, place: &Place) -> Option<Self> {
        private::check(folder, place).ok()?;
        let mut file = files::options().read(true).open(folder.join(place.file_name())).ok()?;
        let meta = file.metadata().ok()?;
        if !meta.is_file() || !private::is_mine_alone(&meta) || meta.len() > LARGEST {
            return None;
        }
        let mut bytes = Vec::new();
        Read::by_ref(&mut file).take(LARGEST).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|ledger: &Ledger| ledger.repository == place.key())
    }

    pub(super) fn write(&self, folder: &Path, place: &Place) -> Result<(), Error> {
        let path = folder.join(place.file_name());
        let bytes = serde_json::to_vec_pretty(self).map_err(|e| Error::io("write", &path)(e.into()))?;
        files::replace_private(&path, &bytes).map_err(Error::io("write", &path))
    }

    /// What it says about something of this origin that has these hashes, all of which have to be trusted.
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

/// Makes the folder, and keeps others who decide something away for as long as the result lives. Where folders cannot be locked, nobody is kept away.
pub(super) fn prepare(folder: &Path, place: &Place) -> Result<Option<File>, Error> {
    private::make(folder, place)?;
    let Ok(alone) = File::open(folder) else { return Ok(None) };
    match files::wait_for_lock(&alone, Duration::from_secs(3)) {
        Ok(false) => Err(Error::io("lock", folder)(io::ErrorKind::WouldBlock.into())),
        _ => Ok(Some(alone)),
    }
}

pub(super) fn remove(folder: &Path, place: &Place) -> Result<(), Error> {
    let path = folder.join(place.file_name());
    match fs::remove_file(&path) {
        Err(e) if !files::is_missing(&e) => return Err(Error::io("remove", &path)(e)),
        _ => {}
    }
    // With the last decision their folder goes too, and ralph's; a folder that holds anything else cannot be removed like this.
    for folder in path.ancestors().skip(1).take(2) {
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}
