//! Signed tasks: what workers run comes from whoever could write to the queue, so they may ask for a signature by a key that they know. It covers the record, its
//! key and the fleet's name: a record that was signed for another place counts for nothing here.

use std::{
    fmt::{self, Write as _},
    path::Path,
};

use nkeys::KeyPair;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    problem::{Problem, Result},
    records::Want,
};

/// Where a record has its signature.
const FIELD: &str = "signature";

/// Writes the records that say what is run, signed if there is a key.
#[derive(Default)]
pub struct Pen {
    pub fleet: String,
    pub pair: Option<KeyPair>,
}

impl fmt::Debug for Pen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pen").field("fleet", &self.fleet).field("key", &self.public()).finish_non_exhaustive()
    }
}

impl Pen {
    /// With the key whose seed is in this file, as the server's client takes it.
    pub fn with(fleet: &str, seed: Option<&Path>) -> Result<Self> {
        let pair = seed.map(|path| {
            let told = || format!("NATS_NKEY: {}", path.display());
            let text = std::fs::read_to_string(path).map_err(Problem::when(told()))?;
            let seed = text.lines().map(str::trim).find(|line| line.starts_with('S')).unwrap_or_default();
            KeyPair::from_seed(seed).map_err(Problem::when(told()))
        });
        Ok(Pen { fleet: fleet.to_owned(), pair: pair.transpose()? })
    }

    /// The key that others know.
    pub fn public(&self) -> Option<String> {
        self.pair.as_ref().map(KeyPair::public_key)
    }

    /// A record of a kind that keeps what it does not know, with its signature.
    pub fn signed<T: Serialize + DeserializeOwned>(&self, key: &str, record: &T) -> Result<T> {
        serde_json::from_slice(&self.bytes(key, record)?).map_err(Problem::when(key))
    }

    /// A record as it is stored.
    pub fn bytes(&self, key: &str, record: &impl Serialize) -> Result<Vec<u8>> {
        let mut value = serde_json::to_value(record).map_err(Problem::when(key))?;
        if let Value::Object(fields) = &mut value {
            fields.remove(FIELD);
        }
        if let (Some(pair), Value::Object(fields)) = (&self.pair, &mut value) {
            let signature = pair.sign(&signed(&self.fleet, key, fields)).map_err(Problem::when("a task cannot be signed"))?;
            fields.insert(FIELD.to_owned(), json!({ "by": pair.public_key(), "is": hex(&signature) }));
        }
        serde_json::to_vec(&value).map_err(Problem::when(key))
    }
}

/// Whose signatures count.
#[derive(Debug, Clone, Default)]
pub struct Signers {
    pub fleet: String,
    /// Public keys. None: a signature is not asked for.
    pub keys: Vec<String>,
}

impl Signers {
    /// Public keys, as a person gives them.
    pub fn of(fleet: &str, keys: Vec<String>) -> Result<Self> {
        for key in &keys {
            KeyPair::from_public_key(key)
                .map_err(|_| Problem::new(format!("--signer: {key} is no public key: give what begins with U")))?;
        }
        Ok(Signers { fleet: fleet.to_owned(), keys })
    }

    /// What a record says that a person wants, as far as it counts.
    pub fn want(&self, key: &str, record: Option<&[u8]>) -> Want {
        let said = Want::of(record);
        record.map_or_else(Want::default, |record| self.counted(key, record, said))
    }

    /// What counts of a wish. Without a signature that counts it can only keep work back.
    pub(crate) fn counted(&self, key: &str, record: &[u8], said: Want) -> Want {
        match self.refuse(key, record) {
            None => said,
            Some(_) => Want { wish: said.wish, ..Want::default() },
        }
    }

    /// Why a record does not count.
    pub fn refuse(&self, key: &str, bytes: &[u8]) -> Option<String> {
        if self.keys.is_empty() {
            return None;
        }
        let Ok(Value::Object(mut fields)) = serde_json::from_slice(bytes) else { return Some("cannot be read".to_owned()) };
        let Some(signature) = fields.remove(FIELD) else { return Some("is not signed, and this worker takes only signed ones".to_owned()) };
        let text = |key: &str| signature.get(key).and_then(Value::as_str).unwrap_or_default();
        let by = text("by");
        if !self.keys.iter().any(|known| known == by) {
            return Some(format!("is signed by {by}, which no --signer of this worker names"));
        }
        let holds = KeyPair::from_public_key(by)
            .is_ok_and(|pair| unhex(text("is")).is_some_and(|is| pair.verify(&signed(&self.fleet, key, &fields), &is).is_ok()));
        (!holds).then(|| format!("was changed after {by} had signed it"))
    }
}

/// The bytes that are signed: the place, and the record with its keys in order.
fn signed(fleet: &str, key: &str, fields: &serde_json::Map<String, Value>) -> Vec<u8> {
    let mut text = format!("ralph-fleet 1\n{fleet}\n{key}\n");
    spell(&Value::Object(fields.clone()), &mut text);
    text.into_bytes()
}

fn spell(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in fields {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                spell(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(values) => {
            out.push('[');
            for value in values {
                spell(value, out);
                out.push(',');
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{VERSION, WANT_ALL, Wish};

    #[test]
    fn f7_a_wish_without_a_signature_that_counts_can_only_keep_work_back() {
        let pens = [(); 2].map(|()| Pen { fleet: "night".to_owned(), pair: Some(KeyPair::new_user()) });
        let signers = Signers { fleet: "night".to_owned(), keys: vec![pens[0].public().unwrap()] };
        let wish =
            |wish: Wish| Want { version: VERSION, wish, notes: vec!["Send me the keys".to_owned()], release: Some(3), ..Want::default() };
        let stored = |pen: &Pen, want: &Want| pen.bytes(WANT_ALL, want).unwrap();
        let read = |bytes: &[u8]| signers.want(WANT_ALL, Some(bytes));
        let mine = read(&stored(&pens[0], &wish(Wish::Run)));
        assert_eq!((mine.notes.len(), mine.release), (1, Some(3)));
        // What is changed and signed again by its own hand counts, too.
        let again = pens[0].signed(WANT_ALL, &Want { notes: vec!["Use tabs".to_owned()], ..mine.clone() }).unwrap();
        assert_eq!(read(&serde_json::to_vec(&again).unwrap()).notes, ["Use tabs"]);
        let changed = serde_json::to_vec(&Want { notes: vec!["Other words".to_owned()], ..mine }).unwrap();
        for bytes in [stored(&pens[1], &wish(Wish::Run)), stored(&Pen::default(), &wish(Wish::Run)), changed] {
            assert_eq!(read(&bytes), Want::default());
        }
        let kept_back = read(&stored(&Pen::default(), &wish(Wish::Cancel)));
        assert_eq!((kept_back.wish, kept_back.notes.len(), kept_back.release), (Wish::Cancel, 0, None));
        // Nobody asks for signatures: all of it counts.
        assert_eq!(Signers::default().want(WANT_ALL, Some(&stored(&Pen::default(), &wish(Wish::Run)))).notes.len(), 1);
    }
}
