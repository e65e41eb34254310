//! The keys of `ralph.toml`: each is declared once, and its reader, its messages and its JSON schema are made from that.

use super::{Config, FeaturesTable, Fleet, GateTable, Notify, PullRequests, Running, Verify, VerifyCommand};
use serde_json::{Map, Value, json};

/// One key of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The kind of gate that it belongs to; `None`: to all.
    pub(super) of: Option<&'static str>,
    pub(super) about: &'static str,
}

/// The type of a key's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Bool,
    Count,
    Text,
    /// A list of texts, or a single one.
    Texts,
    Choice(&'static [&'static str]),
    /// A line for the shell, or a program and its arguments.
    Run,
    Time,
    Fresh,
    /// A path, or false.
    Report,
    Env,
    Prices,
    Gates,
    Table(&'static Table),
    Commands,
}

/// A table of the file.
#[derive(Debug)]
pub(super) struct Table {
    /// As it is written in the file.
    pub(super) header: &'static str,
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key],
}

/// Declares a table of the file once: the struct that it becomes, the defaults, and the name, the meaning and the reader of each key. A key is called like its
/// field unless `as` says otherwise, and belongs to every kind of gate unless `of` names one.
macro_rules! table {
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (@of) => { None };
    (@of $gate:literal) => { Some($gate) };
    ($(#[doc = $about:literal])+ $vis:vis struct $name:ident = $header:literal;
     $($(#[doc = $doc:literal])+ $field:ident $(as $key:literal)? $(of $gate:literal)?: $type:ty = $usual:expr, $kind:expr, $read:expr;)+) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        $vis struct $name { $($(#[doc = $doc])+ pub $field: $type,)+ }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $usual,)+ }
            }
        }

        impl $name {
            pub(in crate::config) const TABLE: &$crate::config::keys::Table = &$crate::config::keys::Table {
                header: $header,
                about: concat!($($about),+),
                keys: &[$($crate::config::keys::Key {
                    name: table!(@key $field $($key)?),
                    kind: $kind,
                    of: table!(@of $($gate)?),
                    about: concat!($($doc),+),
                },)+],
            };

            pub(in crate::config) fn read(table: &$crate::config::reader::Fields<'_>) -> Result<Self, $crate::config::Problem> {
                let usual = Self::default();
                Ok($name { $($field: table.read(table!(@key $field $($key)?), $read)?.map_or(usual.$field, Into::into),)+ })
            }

            #[allow(dead_code, reason = "a gate's table is looked at before it is read")]
            pub(in crate::config) fn of(field: $crate::config::reader::Field<'_>) -> Result<Self, $crate::config::Problem> {
                Self::read(&field.table(Self::TABLE)?)
            }
        }
    };
}
pub(super) use table;

impl Kind {
    /// The end of a sentence: "must be …".
    pub(super) fn in_words(self) -> String {
        match self {
            Kind::Bool => "true or false".to_owned(),
            Kind::Count => "a whole number from 0 on".to_owned(),
            Kind::Text => "a text in quotes".to_owned(),
            Kind::Texts => "a text in quotes, or a list of them".to_owned(),
            Kind::Choice(values) => {
                let (last, others) = values.split_last().unwrap_or((&"", &[]));
                format!("\"{}\" or \"{last}\"", others.join("\", \""))
            }
            Kind::Run => "a line for the shell such as \"cargo test\", or a list of words such as [\"cargo\", \"test\"]".to_owned(),
            Kind::Time => "a length of time such as \"10m\", or seconds".to_owned(),
            Kind::Report => "a path within the project, or false".to_owned(),
            Kind::Fresh => "true, false, or a list of patterns such as [\"src/**\"]".to_owned(),
            Kind::Env => "names with texts in quotes, such as { RUST_BACKTRACE = \"1\" }".to_owned(),
            Kind::Prices => {
                "models with dollars for a million tokens of input, output and cached input, such as { \"gpt-5.5\" = \"5, 30, 0.5\" }"
                    .to_owned()
            }
            Kind::Gates => "a list of gates: write [[gate]], with two brackets".to_owned(),
            Kind::Table(table) => format!("a table: write {} on a line of its own", table.header),
            Kind::Commands => {
                "a list of lines for the shell such as [\"pnpm lint\", { run = \"pnpm test\", deadline = \"10m\" }]".to_owned()
            }
        }
    }

    fn schema(self) -> Value {
        let text = json!({ "type": "string" });
        let texts = json!({ "type": "array", "items": text });
        let or = |a: Value, b: &Value| json!({ "anyOf": [a, b] });
        match self {
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Count => json!({ "type": "integer", "minimum": 0 }),
            Kind::Text => text,
            Kind::Texts | Kind::Run => or(text, &texts),
            Kind::Choice(values) => json!({ "enum": values }),
            Kind::Time => or(text, &json!({ "type": "integer", "minimum": 1 })),
            Kind::Report => or(text, &json!({ "const": false })),
            Kind::Fresh => json!({ "type": ["boolean", "string", "array"], "items": text }),
            Kind::Env | Kind::Prices => json!({ "type": "object", "additionalProperties": text }),
            Kind::Gates => json!({ "type": "array", "items": { "$ref": "#/$defs/gate" } }),
            Kind::Table(table) => json!({ "$ref": format!("#/$defs/{}", table.header.trim_matches(['[', ']'])) }),
            Kind::Commands => {
                let command = or(text, &json!({ "$ref": "#/$defs/command" }));
                or(json!({ "type": "array", "items": command }), &command)
            }
        }
    }
}

impl Table {
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    fn schema(&self) -> Value {
        let described = |key: &Key| {
            let mut spec = key.kind.schema();
            spec["description"] = key.about.trim().into();
            (key.name.to_owned(), spec)
        };
        let properties: Map<String, Value> = self.keys.iter().map(described).collect();
        json!({ "type": "object", "description": self.about.trim(), "additionalProperties": false, "properties": properties })
    }

    /// The schema of a table that must have exactly one of these keys.
    fn schema_with_one_of(&self, keys: &[&str]) -> Value {
        let mut schema = self.schema();
        schema["oneOf"] = keys.iter().map(|key| json!({ "required": [key] })).collect();
        schema
    }
}

/// A gate has exactly one of these keys.
pub(super) const CHECKS: [&str; 7] = ["command", "file", "features", "markers", "committed", "pr", "ci"];

impl Config {
    /// The JSON schema of the file.
    pub fn schema() -> Value {
        let mut schema = Config::TABLE.schema();
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = "ralph.toml".into();
        schema["$defs"] = json!({
            "gate": GateTable::TABLE.schema_with_one_of(&CHECKS),
            "features": FeaturesTable::TABLE.schema(),
            "verify": Verify::TABLE.schema(),
            "pr": PullRequests::TABLE.schema(),
            "run": Running::TABLE.schema(),
            "notify": Notify::TABLE.schema(),
            "fleet": Fleet::TABLE.schema(),
            "command": VerifyCommand::TABLE.schema_with_one_of(&["run", "command"]),
        });
        schema
    }
}
