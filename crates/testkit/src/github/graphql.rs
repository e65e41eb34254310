//! The little GraphQL that a scripted GitHub needs: reads a query and picks from a tree of JSON what the query names.
//!
//! Objects carry their `__typename`. A list under [`ALL`] is a connection: it is cut by `first`, `last` and `after` into
//! `nodes` and `pageInfo`. A field that the tree does not have is a [`Problem::Unknown`], never a silent null.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The key under which a connection holds all its nodes.
pub(super) const ALL: &str = "__all";

pub(super) type Args = BTreeMap<String, Value>;

/// Why a query has no answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Problem {
    /// GitHub refuses: an entry of `errors`.
    Refused(Value),
    /// The model does not know what was asked.
    Unknown(String),
}

impl Problem {
    pub(super) fn refused(kind: &str, path: &str, message: impl Into<String>) -> Self {
        let place = json!([{"line": 1, "column": 1}]);
        Self::Refused(json!({"type": kind, "path": [path], "locations": place, "message": message.into()}))
    }
}

/// Answers the fields that depend on their arguments: type, field, arguments; `None` where the tree has the answer.
pub(super) type Resolve<'a> = &'a mut dyn FnMut(&str, &str, &Args) -> Option<Result<Value, Problem>>;

#[derive(Debug, Clone, PartialEq)]
enum Selected {
    Field { alias: String, name: String, args: Vec<(String, Literal)>, of_it: Vec<Selected> },
    Spread(String),
    Inline { on: Option<String>, of_it: Vec<Selected> },
}

#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Constant(Value),
    Variable(String),
    List(Vec<Literal>),
    Object(Vec<(String, Literal)>),
}

/// A parsed request.
#[derive(Debug)]
pub(super) struct Document {
    /// The operation's name; empty where it has none.
    pub(super) name: String,
    mutation: bool,
    selection: Vec<Selected>,
    fragments: BTreeMap<String, (String, Vec<Selected>)>,
}

impl Document {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { words: words(text)?, next: 0 };
        let mut document = Self { name: String::new(), mutation: false, selection: Vec::new(), fragments: BTreeMap::new() };
        while let Some(word) = parser.peek().map(str::to_owned) {
            match word.as_str() {
                "{" => document.selection = parser.selection()?,
                "query" | "mutation" => {
                    parser.take();
                    document.mutation = word == "mutation";
                    if parser.peek().is_some_and(is_name) {
                        document.name = parser.name()?;
                    }
                    parser.skip_definitions()?;
                    document.selection = parser.selection()?;
                }
                "fragment" => {
                    parser.take();
                    let name = parser.name()?;
                    parser.expect("on")?;
                    let on = parser.name()?;
                    document.fragments.insert(name, (on, parser.selection()?));
                }
                other => return Err(format!("unexpected {other:?}")),
            }
        }
        Ok(document)
    }

    /// The `data` of the answer.
    pub(super) fn run(&self, variables: &Value, resolve: Resolve) -> Result<Value, Problem> {
        let root = json!({"__typename": if self.mutation { "Mutation" } else { "Query" }});
        Run { document: self, variables, resolve }.pick(&root, &self.selection).map(Value::Object)
    }
}

struct Run<'a, 'b> {
    document: &'a Document,
    variables: &'a Value,
    resolve: Resolve<'b>,
}

impl Run<'_, '_> {
    fn pick(&mut self, from: &Value, selection: &[Selected]) -> Result<Map<String, Value>, Problem> {
        let kind = from["__typename"].as_str().unwrap_or_default();
        let mut picked = Map::new();
        for selected in selection {
            match selected {
                Selected::Field { alias, name, args, of_it } => {
                    picked.insert(alias.clone(), self.field(from, kind, name, args, of_it)?);
                }
                Selected::Inline { on, of_it } => {
                    if on.as_ref().is_none_or(|on| on == kind) {
                        picked.extend(self.pick(from, of_it)?);
                    }
                }
                Selected::Spread(name) => {
                    let document = self.document;
                    let fragment = document.fragments.get(name).ok_or_else(|| Problem::Unknown(format!("no fragment {name}")))?;
                    if fragment.0 == kind {
                        picked.extend(self.pick(from, &fragment.1)?);
                    }
                }
            }
        }
        Ok(picked)
    }

    fn field(&mut self, from: &Value, kind: &str, name: &str, args: &[(String, Literal)], of_it: &[Selected]) -> Result<Value, Problem> {
        let args: Args = args.iter().map(|(key, value)| (key.clone(), self.value(value))).collect();
        let found = match (self.resolve)(kind, name, &args) {
            Some(answer) => answer?,
            None => from.get(name).cloned().ok_or_else(|| Problem::Unknown(format!("Field '{name}' doesn't exist on type '{kind}'")))?,
        };
        self.shape(&cut(found, &args), of_it)
    }

    fn shape(&mut self, value: &Value, of_it: &[Selected]) -> Result<Value, Problem> {
        match value {
            Value::Array(items) => items.iter().map(|item| self.shape(item, of_it)).collect::<Result<_, _>>().map(Value::Array),
            Value::Object(_) if of_it.is_empty() => Err(Problem::Unknown(format!("an object without a selection: {value}"))),
            Value::Object(_) => self.pick(value, of_it).map(Value::Object),
            scalar => Ok(scalar.clone()),
        }
    }

    fn value(&self, literal: &Literal) -> Value {
        match literal {
            Literal::Constant(value) => value.clone(),
            Literal::Variable(name) => self.variables[name].clone(),
            Literal::List(items) => items.iter().map(|item| self.value(item)).collect(),
            Literal::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), self.value(value))).collect(),
        }
    }
}

/// Cuts a connection to the page that the arguments name; the cursor is the place in the list. GitHub gives 100 at most.
fn cut(value: Value, args: &Args) -> Value {
    let Some(all) = value.get(ALL).and_then(Value::as_array) else { return value };
    let number = |name: &str| args.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let after = args.get("after").and_then(Value::as_str).and_then(|cursor| cursor.parse().ok());
    let mut start = after.unwrap_or(0).min(all.len());
    let end = (start + number("first").unwrap_or(100).min(100)).min(all.len());
    if let Some(last) = number("last") {
        start = start.max(end.saturating_sub(last));
    }
    let page = json!({"__typename": "PageInfo", "hasNextPage": end < all.len(), "hasPreviousPage": start > 0,
        "startCursor": start.to_string(), "endCursor": end.to_string()});
    let mut cut = value.clone();
    cut["totalCount"] = all.len().into();
    cut["nodes"] = all[start..end].into();
    cut["pageInfo"] = page;
    cut
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Splits a query into names, numbers, strings (with their opening quote) and punctuation.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => 1 + rest[1..].find('"').ok_or("a string without an end")?,
            '.' if rest.starts_with("...") => 3,
            c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => {
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len())
            }
            c if "{}()[]:!$=@".contains(c) => 1,
            other => return Err(format!("unexpected {other:?}")),
        };
        words.push(rest[..length].to_owned());
        let skip = length + usize::from(first == '"');
        rest = rest[skip..].trim_start_matches(is_blank);
    }
    Ok(words)
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == ','
}

struct Parser {
    words: Vec<String>,
    next: usize,
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.next).map(String::as_str)
    }

    fn take(&mut self) -> String {
        self.next += 1;
        self.words.get(self.next - 1).cloned().unwrap_or_default()
    }

    /// Takes the next word if it is this one.
    fn took(&mut self, word: &str) -> bool {
        let same = self.peek() == Some(word);
        self.next += usize::from(same);
        same
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.took(word) { Ok(()) } else { Err(format!("{word:?} expected, not {:?}", self.peek())) }
    }

    fn name(&mut self) -> Result<String, String> {
        let word = self.take();
        if is_name(&word) { Ok(word) } else { Err(format!("a name expected, not {word:?}")) }
    }

    /// The definitions of variables; their types are not checked.
    fn skip_definitions(&mut self) -> Result<(), String> {
        if self.took("(") {
            while !self.took(")") {
                self.peek().ok_or("definitions without an end")?;
                self.take();
            }
        }
        Ok(())
    }

    fn selection(&mut self) -> Result<Vec<Selected>, String> {
        self.expect("{")?;
        let mut all = Vec::new();
        while !self.took("}") {
            all.push(if self.took("...") { self.fragment()? } else { self.field()? });
        }
        Ok(all)
    }

    fn fragment(&mut self) -> Result<Selected, String> {
        if self.took("on") {
            return Ok(Selected::Inline { on: Some(self.name()?), of_it: self.selection()? });
        }
        if self.peek() == Some("{") {
            return Ok(Selected::Inline { on: None, of_it: self.selection()? });
        }
        self.name().map(Selected::Spread)
    }

    fn field(&mut self) -> Result<Selected, String> {
        let alias = self.name()?;
        let name = if self.took(":") { self.name()? } else { alias.clone() };
        let args = if self.took("(") { self.pairs(")")? } else { Vec::new() };
        let of_it = if self.peek() == Some("{") { self.selection()? } else { Vec::new() };
        Ok(Selected::Field { alias, name, args, of_it })
    }

    fn pairs(&mut self, end: &str) -> Result<Vec<(String, Literal)>, String> {
        let mut all = Vec::new();
        while !self.took(end) {
            let name = self.name()?;
            self.expect(":")?;
            all.push((name, self.literal()?));
        }
        Ok(all)
    }

    fn literal(&mut self) -> Result<Literal, String> {
        let word = self.take();
        Ok(match word.as_str() {
            "$" => Literal::Variable(self.name()?),
            "{" => Literal::Object(self.pairs("}")?),
            "[" => {
                let mut items = Vec::new();
                while !self.took("]") {
                    items.push(self.literal()?);
                }
                Literal::List(items)
            }
            "true" | "false" | "null" => Literal::Constant(serde_json::from_str(&word).unwrap()),
            "" => return Err("a value expected".to_owned()),
            _ => Literal::Constant(word.strip_prefix('"').map_or_else(|| number_or_name(&word), Value::from)),
        })
    }
}

/// A number, or an enum's value, which JSON spells as a string.
fn number_or_name(word: &str) -> Value {
    word.parse::<i64>().map_or_else(|_| Value::from(word), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(kind: &str, field: &str, args: &Args) -> Option<Result<Value, Problem>> {
        match (kind, field) {
            ("Query", "list") => {
                let items: Vec<Value> = (0..3).map(|n| json!({"__typename": if n == 1 { "B" } else { "A" }, "n": n})).collect();
                Some(Ok(json!({"__typename": "Items", ALL: items})))
            }
            ("Query", "echo") => Some(Ok(args["what"].to_string().into())),
            ("Query", "gone") => Some(Err(Problem::refused("NOT_FOUND", "gone", "no such thing"))),
            _ => None,
        }
    }

    fn run(query: &str, variables: &Value) -> Result<Value, Problem> {
        Document::parse(query).unwrap().run(variables, &mut tree)
    }

    #[test]
    fn a_query_gets_what_it_names_page_by_page() {
        let query = "query Some($c: String) { it: list(first: 2, after: $c) { nodes { __typename...on A { n } } pageInfo { hasNextPage, endCursor } } }";
        let first = run(query, &json!({})).unwrap();
        assert_eq!(first["it"]["nodes"], json!([{"__typename": "A", "n": 0}, {"__typename": "B"}]));
        assert_eq!(first["it"]["pageInfo"], json!({"hasNextPage": true, "endCursor": "2"}));
        let second = run(query, &json!({"c": "2"})).unwrap();
        assert_eq!(second["it"]["nodes"], json!([{"__typename": "A", "n": 2}]));
        assert_eq!(run("{list(last: 1){nodes{n}}}", &json!({})).unwrap()["list"]["nodes"], json!([{"n": 2}]));
    }

    #[test]
    fn values_are_read_in_every_spelling() {
        let all = run(r#"{ echo(what: [1, "a b", OPEN, true, {k: $v}]) }"#, &json!({"v": null})).unwrap();
        assert_eq!(all["echo"], r#"[1,"a b","OPEN",true,{"k":null}]"#);
    }

    #[test]
    fn what_is_not_there_is_told() {
        assert_eq!(run("{nothing}", &json!({})), Err(Problem::Unknown("Field 'nothing' doesn't exist on type 'Query'".to_owned())));
        assert!(matches!(run("{gone{n}}", &json!({})), Err(Problem::Refused(error)) if error["type"] == "NOT_FOUND"));
        for broken in ["{", "{a(", "query (", "nonsense", "{a(b:)}", "{…}", "{a(b:\"}"] {
            assert!(Document::parse(broken).is_err(), "{broken}");
        }
    }
}
