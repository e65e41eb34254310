//! What a fleet keeps: one record a key, as JSON. Who writes which: people `spec.*` (never changed) and `want.*`, the holder of a job `job.*`, all workers `ledger` and
//! `account.*`. Fields that this version does not know survive a rewrite, and records of a newer version are left alone.

use std::collections::BTreeMap;

use ralph_core::text::time::Millis;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// The version of the records that this program writes.
pub const VERSION: u32 = 1;

/// The keys of records that exist once.
pub const FLEET: &str = "fleet";
pub const LEDGER: &str = "ledger";

/// The wish about all jobs together.
pub const WANT_ALL: &str = "want";

/// The kinds of records that every job has: the words before its id in a key.
pub const SPEC: &str = "spec";
pub const WANT: &str = "want";
pub const JOB: &str = "job";
/// The accounts with providers.
pub const ACCOUNT: &str = "account";

pub fn key(kind: &str, id: &str) -> String {
    format!("{kind}.{id}")
}

/// A task, as a person gave it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub version: u32,
    pub id: String,
    /// What the agent is told.
    pub task: String,
    /// The list is complete without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The id of the item in the list, where it comes from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Its place in the list, or the time at which it was added: the order of equal priorities.
    pub number: u64,
    /// 1 comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// The ids of the jobs that must have landed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The workers that may take it have this pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Commands that must pass, beside those of the fleet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What a person wants of a job, or of all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Want {
    pub version: u32,
    pub wish: Wish,
    /// Notes for the agent, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The claim with this token is void: its worker does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    /// What a person said about the work of the claim with this token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// Of all jobs: how often all workers were told to end after their iteration. Those that began later go on.
    #[serde(default)]
    pub drains: u64,
    /// Of all jobs: workers that were told to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drained: Vec<String>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Want {
    /// What a record says. One that cannot be read, or that a newer ralph wrote, may say anything: then nothing is begun.
    pub fn of(record: Option<&[u8]>) -> Self {
        match record.map(read) {
            None => Want::default(),
            Some(Found::Known(want)) => want,
            Some(Found::Newer(_) | Found::Broken(_)) => Want::unknown(),
        }
    }

    pub(crate) fn unknown() -> Self {
        Want { wish: Wish::Pause, ..Want::default() }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wish {
    #[default]
    Run,
    Pause,
    Cancel,
}

/// A person's word about what an agent has proven.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// The commit that the person saw.
    pub commit: String,
    /// `None`: land it. Otherwise it goes back, with these words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<String>,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// For a worker.
    #[default]
    Waits,
    Runs,
    /// Until a time, for a quota or for something outside.
    Parked,
    /// The work is proven, and waits to be landed.
    Proven,
    Lands,
    Landed,
    /// Only a person can go on.
    NeedsPerson,
    Cancelled,
}

/// The state of a job. Only its holder writes it, by compare-and-set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub version: u32,
    pub state: State,
    /// Grows with each claim: what was written under an older one counts for nothing.
    pub token: u64,
    /// Another one for each write, so that a writer knows its own.
    pub nonce: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Claims in a row that did not finish an iteration.
    #[serde(default)]
    pub claims: u32,
    #[serde(default)]
    pub iterations: u64,
    /// How often landing sent it back.
    #[serde(default)]
    pub returns: u32,
    /// The last commit that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Where the loop itself was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// Parked until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
    #[serde(default)]
    pub usd_micros: u64,
    #[serde(default)]
    pub tokens: u64,
    /// Why it is where it is, for people, and for the agent that goes on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What the agent has to see to because its work came back; it is told before its next iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<String>,
    /// A person let it go on: its limits begin anew with its next iteration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_renewed: bool,
    /// How many of the notes the agent was told.
    #[serde(default)]
    pub notes_told: usize,
    pub changed_at: Millis,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The money of a fleet: reserved before a session, settled after it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    pub version: u32,
    /// 0 means no limit.
    pub limit_micros: u64,
    pub spent_micros: u64,
    /// By job and token: `fix-it/3`.
    #[serde(default)]
    pub reserved: BTreeMap<String, u64>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// An account with a provider, for all that use it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub version: u32,
    /// Its quota is used up until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A record as it was found.
#[derive(Debug, Clone, PartialEq)]
pub enum Found<T> {
    Known(T),
    /// Of this version, which is newer than ours.
    Newer(u64),
    /// What is wrong with it.
    Broken(String),
}

impl<T> Found<T> {
    /// The record, or why it is left alone. `what`: what it is called there.
    pub fn or_why(self, what: &str) -> Result<T, String> {
        match self {
            Found::Known(record) => Ok(record),
            Found::Newer(version) => Err(format!("{what} is of version {version}, which this ralph does not know: upgrade ralph")),
            Found::Broken(why) => Err(format!("{what} cannot be read: {why}")),
        }
    }
}

pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Found<T> {
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(e) => return Found::Broken(e.to_string()),
    };
    match value.get("version").and_then(Value::as_u64) {
        Some(version) if version > u64::from(VERSION) => Found::Newer(version),
        Some(_) => serde_json::from_value(value).map_or_else(|e| Found::Broken(e.to_string()), Found::Known),
        None => Found::Broken("it has no version".to_owned()),
    }
}
