//! Reads typed values of `ralph.toml`. A mistake is a sentence for the person who wrote the file, with its line.

use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

use super::{
    FeaturesTable, Fleet, GateTable, Notify, Problem, PullRequests, Running, Verify,
    keys::{Key, Kind, Table},
};
use crate::text::{line_of, opening, suggest};

/// A table of the file whose keys are all known.
pub(super) struct Fields<'a> {
    pub(super) line: usize,
    fields: Vec<Field<'a>>,
}

/// One value, with its key and its line.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) key: &'static Key,
    pub(super) line: usize,
    value: &'a Spanned<DeValue<'a>>,
    text: &'a str,
}

/// Parses the document.
pub(super) fn document(text: &str) -> Result<Spanned<DeTable<'_>>, Problem> {
    DeTable::parse(text).map_err(|e| {
        let line = e.span().map_or(1, |span| line_of(text.as_bytes(), span.start));
        // Two `[gate]` are no TOML at all, and the parser's message does not lead to the cause.
        let single = text.lines().position(|line| line.trim_start().starts_with("[gate]"));
        match single {
            Some(at) => Problem::new(at + 1, format!("`gate` must be {}", Kind::Gates.in_words())),
            None => Problem::new(line, no_toml(text.lines().nth(line - 1).unwrap_or_default(), e.message())),
        }
    })
}

/// The mistake in a line: in plain words where it is a common one, else in the parser's.
fn no_toml(line: &str, message: &str) -> String {
    let value = line.split_once('=').map(|(_, value)| value.split('#').next().unwrap_or_default().trim());
    let is_bare =
        |value: &&str| value.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '~')) && !value.contains(['"', '\'']);
    if message.contains("duplicate key") {
        return "the same key is given twice".to_owned();
    }
    match value.filter(|value| value.is_empty() || is_bare(value)) {
        Some("") => "there is no value after the `=`".to_owned(),
        Some(value) => format!("a text must stand in quotes: \"{}\"", value.chars().take(40).collect::<String>().escape_debug()),
        None => format!("not TOML: {}", message.lines().next().unwrap_or_default()),
    }
}

impl<'a> Fields<'a> {
    /// The table's values. An unknown key is refused, because it would silently have no effect.
    pub(super) fn of(text: &'a str, table: &'a DeTable<'a>, line: usize, known: &'static Table) -> Result<Self, Problem> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let field = |(name, value): (&'a Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)| {
            let line = line_of(text.as_bytes(), name.span().start);
            match known.key(name.get_ref()) {
                Some(key) => Ok(Field { key, line, value, text }),
                None => Err(Problem::new(line, unknown(name.get_ref(), known))),
            }
        };
        Ok(Fields { line, fields: entries.into_iter().map(field).collect::<Result<_, _>>()? })
    }

    pub(super) fn get(&self, key: &str) -> Option<Field<'a>> {
        self.fields.iter().find(|field| field.key.name == key).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Field<'a>> {
        self.fields.iter()
    }

    pub(super) fn read<T>(&self, key: &str, read: impl FnOnce(Field<'a>) -> Result<T, Problem>) -> Result<Option<T>, Problem> {
        self.get(key).map(read).transpose()
    }

    pub(super) fn problem(&self, what: impl Into<String>) -> Problem {
        Problem::new(self.line, in_short(what.into()))
    }
}

/// A value can be as long as the file.
fn in_short(what: String) -> String {
    const MOST: usize = 1_000;
    if what.len() <= MOST { what } else { opening(&what, MOST) }
}

/// The message about a key that is not known in this table.
fn unknown(name: &str, table: &'static Table) -> String {
    let shown: String = name.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let keys = || table.keys.iter().map(|key| key.name);
    if let Some(near) = suggest::nearest(name, keys()) {
        return format!("`{shown}` is not known here; did you mean `{near}`?");
    }
    let all = [GateTable::TABLE, PullRequests::TABLE, Verify::TABLE, FeaturesTable::TABLE, Running::TABLE, Notify::TABLE, Fleet::TABLE];
    match all.into_iter().find(|other| other.header != table.header && other.key(name).is_some()) {
        Some(other) => format!("`{shown}` is not known here; it belongs under {}", other.header),
        None => {
            format!("`{shown}` is not known here; the keys are {}", keys().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "))
        }
    }
}

impl<'a> Field<'a> {
    pub(super) fn problem(&self, what: impl Into<String>) -> Problem {
        Problem::new(self.line, in_short(what.into()))
    }

    /// The value is of another type.
    fn wrong(&self) -> Problem {
        self.problem(format!("`{}` must be {}, not {}", self.key.name, self.key.kind.in_words(), shown(self.value.get_ref())))
    }

    pub(super) fn bool(self) -> Result<bool, Problem> {
        self.as_bool().ok_or_else(|| self.wrong())
    }

    pub(super) fn count(self) -> Result<u64, Problem> {
        number(self.value.get_ref()).ok_or_else(|| self.wrong())
    }

    pub(super) fn text(self) -> Result<String, Problem> {
        self.as_text().ok_or_else(|| self.wrong())
    }

    /// A list of texts; a single text is a list of one.
    pub(super) fn texts(self) -> Result<Vec<String>, Problem> {
        self.as_text().map_or_else(|| self.list(), |text| Ok(vec![text]))
    }

    pub(super) fn list(self) -> Result<Vec<String>, Problem> {
        let DeValue::Array(values) = self.value.get_ref() else { return Err(self.wrong()) };
        values.iter().map(|value| string(value.get_ref()).ok_or_else(|| self.within(value).wrong())).collect()
    }

    /// A value of a list or a table, which may be on a line of its own.
    fn within(self, value: &'a Spanned<DeValue<'a>>) -> Self {
        Field { line: line_of(self.text.as_bytes(), value.span().start), value, ..self }
    }

    /// The meaning of the key's word; `meanings` are in the order of the words.
    pub(super) fn pick<T, const N: usize>(self, meanings: [T; N]) -> Result<T, Problem> {
        let Kind::Choice(words) = self.key.kind else { return Err(self.wrong()) };
        let given = self.as_text();
        let place = words.iter().position(|word| Some(*word) == given.as_deref());
        place.and_then(|place| meanings.into_iter().nth(place)).ok_or_else(|| self.wrong())
    }

    pub(super) fn as_text(self) -> Option<String> {
        string(self.value.get_ref())
    }

    pub(super) fn as_bool(self) -> Option<bool> {
        if let DeValue::Boolean(value) = self.value.get_ref() { Some(*value) } else { None }
    }

    /// Names and their texts, by name.
    pub(super) fn pairs(self) -> Result<Vec<(String, String)>, Problem> {
        let DeValue::Table(table) = self.value.get_ref() else { return Err(self.wrong()) };
        let pair = |(name, value): (&'a Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)| match string(value.get_ref()) {
            Some(text) => Ok((name.get_ref().to_string(), text)),
            None => Err(self.within(value).wrong()),
        };
        table.iter().map(pair).collect()
    }

    /// The table under the key.
    pub(super) fn table(self, known: &'static Table) -> Result<Fields<'a>, Problem> {
        match self.value.get_ref() {
            DeValue::Table(table) => Fields::of(self.text, table, self.line, known),
            DeValue::Array(_) if matches!(self.key.kind, Kind::Table(_)) => {
                Err(self.problem(format!("there is only one of these: write {}, with one bracket", known.header)))
            }
            _ => Err(self.wrong()),
        }
    }

    /// The tables of `[[gate]]`.
    pub(super) fn tables(self, known: &'static Table) -> Result<Vec<Fields<'a>>, Problem> {
        let DeValue::Array(values) = self.value.get_ref() else {
            return Err(self.problem(format!("`{}` must be {}", self.key.name, self.key.kind.in_words())));
        };
        values.iter().map(|value| self.within(value).table(known)).collect()
    }

    /// The entries of a list, each with its line; a single value is a list of one.
    pub(super) fn entries(self) -> Vec<Self> {
        match self.value.get_ref() {
            DeValue::Array(values) => values.iter().map(|value| self.within(value)).collect(),
            _ => vec![self],
        }
    }

    pub(super) fn is_table(self) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(_))
    }
}

fn string(value: &DeValue<'_>) -> Option<String> {
    if let DeValue::String(text) = value { Some(text.to_string()) } else { None }
}

fn number(value: &DeValue<'_>) -> Option<u64> {
    let DeValue::Integer(number) = value else { return None };
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A value as a message shows it.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{}\"", text.chars().take(40).collect::<String>().escape_debug()),
        DeValue::Integer(number) => number.to_string().chars().take(40).collect(),
        DeValue::Float(number) => number.to_string().chars().take(40).collect(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
