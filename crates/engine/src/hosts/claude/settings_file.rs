//! Claude Code's settings files: reads them, and adds and removes ralph's hooks without changing any other byte.
//!
//! People have comments and trailing commas in them, for which the client ignores the whole file: so the text is changed as a syntax tree, never printed
//! anew, and read as the client would.

use std::{fmt, ops::Range};

use jsonc_parser::{
    CollectOptions, ParseOptions,
    common::Ranged,
    cst::{CstArray, CstContainerNode, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode},
    parse_to_ast,
};
use serde_json::Value;

use crate::hosts::{
    SHORT,
    claude::registration::{ASYNC, CommandLine, Hook, entry},
};

const BOM: &str = "\u{feff}";

/// The text of a settings file, ready to be changed.
pub(crate) struct Settings {
    root: CstRootNode,
    has_bom: bool,
    /// The white space inside the outermost braces, which the tree forgets when something is put in or taken out.
    margins: Option<(String, String)>,
}

/// Why a settings file can be neither read nor changed, in words that follow the file's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A hook that a settings file, or a plugin's `hooks.json`, registers.
#[derive(Debug, Clone)]
pub struct Registered {
    pub event: String,
    pub line: CommandLine,
    pub timeout: Option<f64>,
    /// Whether the client goes on at once, and never sees what it prints.
    pub in_background: bool,
    /// Whether it can wake the model from there.
    pub rewakes: bool,
    /// The occasions that it is restricted to, if it is.
    pub matcher: Option<String>,
}

impl Registered {
    /// Every command hook of a settings file, or of a plugin's `hooks.json`.
    pub fn all_in(settings: &Value) -> Vec<Registered> {
        let events = settings.get("hooks").and_then(Value::as_object);
        let groups = events
            .into_iter()
            .flatten()
            .flat_map(|(event, groups)| groups.as_array().into_iter().flatten().map(move |group| (event, group)));
        groups
            .flat_map(|(event, group)| {
                let hooks = group.get("hooks").and_then(Value::as_array);
                hooks.into_iter().flatten().map(move |hook| (event, matcher(group), hook))
            })
            // Without its type the client skips an entry, or the whole file.
            .filter(|(_, _, hook)| hook.get("type").is_some())
            .filter_map(|(event, matcher, hook)| {
                let timeout = hook.get("timeout").and_then(Value::as_f64);
                let is_set = |field: &str| hook.get(field) == Some(&Value::Bool(true));
                let (rewakes, in_background) = (is_set(Hook::REWAKES), BACKGROUND.into_iter().any(is_set));
                CommandLine::of(hook).map(|line| Registered { event: event.clone(), line, timeout, in_background, rewakes, matcher })
            })
            .collect()
    }

    /// Whether it is this hook of ralph's, whatever its program is.
    pub fn is(&self, hook: &Hook) -> bool {
        self.line.is_ralphs() && Hook::of_line(&self.event, &self.line) == Some(hook)
    }

    /// Whether it is ralph's answer to an event.
    pub fn answers(&self, event: &str) -> bool {
        self.event == event && self.line.is_ralphs() && !self.line.waits()
    }
}

impl Settings {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        let text = std::str::from_utf8(bytes).map_err(|e| Problem(format!("is not UTF-8 text (byte {})", e.valid_up_to())))?;
        let (has_bom, text) = text.strip_prefix(BOM).map_or((false, text), |rest| (true, rest));
        let root = CstRootNode::parse(text, &dialect())
            .map_err(|e| Problem(format!("is not valid JSON: line {}, column {}: {}", e.line_display(), e.column_display(), e.kind())))?;
        match root.value() {
            Some(value) if value.as_object().is_none() => Err(Problem("is not a JSON object".to_owned())),
            _ => {
                Ok(Settings { root, has_bom, margins: margins(text).map(|(open, close)| (text[open].to_owned(), text[close].to_owned())) })
            }
        }
    }

    pub(crate) fn value(&self) -> Value {
        self.root.to_serde_value().unwrap_or_default()
    }

    /// Whether it holds nothing, not even a comment.
    pub(crate) fn is_empty(&self) -> bool {
        self.root.object_value().is_none_or(|root| is_bare(&root)) && !has_comment(&self.root.clone().into())
    }

    pub(crate) fn registers_ralph(&self) -> bool {
        Registered::all_in(&self.value()).iter().any(|hook| hook.line.is_ralphs())
    }

    pub(crate) fn env(&self, name: &str) -> Option<Value> {
        self.value().get("env")?.get(name).cloned()
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = self.root.to_string();
        if let (Some((after_open, before_close)), Some((open, close))) = (&self.margins, margins(&text)) {
            let mut restored = text.clone();
            restored.replace_range(close, before_close);
            restored.replace_range(open, after_open);
            // Without the line break after it, a comment that is last now would take the brace along.
            if margins(&restored).is_some() {
                text = restored;
            }
        }
        if self.has_bom { format!("{BOM}{text}") } else { text }
    }

    /// Registers all of ralph's hooks under `command`, as those of `via`. What is registered already keeps its place, and its timeout if a person chose it.
    pub(crate) fn register(&self, command: &str, via: &str) -> Result<(), Problem> {
        let hooks = object(&self.root.object_value_or_set(), "hooks", "hooks")?;
        for hook in &Hook::ALL {
            let groups = array(&hooks, hook.event, &format!("hooks.{}", hook.event))?;
            let mut ours: Vec<_> = entries_of(&groups).into_iter().filter(|(_, entry)| may_be(entry, hook)).collect();
            let first = ours.iter().position(|(group, _)| !is_restricted(group)).map(|at| ours.remove(at));
            // A second one would run beside the first, and one for some occasions only is none.
            for (group, entry) in ours {
                take_out(&group, entry);
            }
            match first {
                Some((_, entry)) => update(&entry, hook, command, via),
                None => add(&groups, hook, command, via),
            }
        }
        Ok(())
    }

    /// Registers another agent's hooks, each a group for its event. What is registered already stays where it is; ralph's entries for other events go, which
    /// came with Claude Code's.
    pub(crate) fn register_groups(&self, groups: &[(&str, Value)]) -> Result<(), Problem> {
        let hooks = object(&self.root.object_value_or_set(), "hooks", "hooks")?;
        let is_other = |event: &CstObjectProp| event.decoded_name().is_none_or(|name| groups.iter().all(|(known, _)| *known != name));
        for event in hooks.properties().into_iter().filter(is_other) {
            let Some(groups) = event.array_value() else { continue };
            if take_ours_out(&groups) && is_bare_list(groups) {
                event.remove();
            }
        }
        for (event, wanted) in groups {
            let groups = array(&hooks, event, &format!("hooks.{event}"))?;
            let is_there = |group: &CstNode| group.to_serde_value().is_some_and(|value: Value| value == *wanted);
            let has_it = groups.elements().iter().any(is_there);
            for (group, entry) in entries_of(&groups).into_iter().filter(|(_, entry)| is_ralphs(entry)) {
                if !has_it || !group.to_serde_value().is_some_and(|value: Value| value == *wanted) {
                    take_out(&group, entry);
                }
            }
            if !has_it {
                groups.append(input(wanted));
            }
        }
        Ok(())
    }

    /// Takes all of ralph's hooks out again, and what held nothing else, unless it was there before: `was` is the file as it was, if that is known.
    pub(crate) fn unregister(&self, was: Option<&Settings>) {
        let was = was.map(Settings::value).unwrap_or_default();
        let Some(hooks) = self.root.object_value().and_then(|root| root.object_value("hooks")) else { return };
        let mut changed = false;
        for event in hooks.properties() {
            let Some(groups) = event.array_value() else { continue };
            if !take_ours_out(&groups) {
                continue;
            }
            changed = true;
            let was_there = event.decoded_name().is_some_and(|name| was.get("hooks").is_some_and(|hooks| hooks.get(name).is_some()));
            if is_bare_list(groups) && !was_there {
                event.remove();
            }
        }
        if changed && was.get("hooks").is_none() {
            remove_if_empty(&self.root, "hooks");
        }
    }

    /// Sets a variable of the client's environment.
    pub(crate) fn set_env(&self, name: &str, value: &Value) -> Result<(), Problem> {
        let env = object(&self.root.object_value_or_set(), "env", "env")?;
        match only(&env, name, name)? {
            Some(property) => property.set_value(input(value)),
            None => {
                env.append(name, input(value));
            }
        }
        Ok(())
    }

    /// The rules of the permissions in one of their lists, `allow` or `deny`.
    pub(crate) fn rules(&self, list: &str) -> Vec<String> {
        let settings = self.value();
        let rules = settings.get("permissions").and_then(|permissions| permissions.get(list)).and_then(Value::as_array);
        rules.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Adds a rule to a list of the permissions, unless it is there.
    pub(crate) fn add_rule(&self, list: &str, rule: &str) -> Result<(), Problem> {
        if self.rules(list).iter().any(|known| known == rule) {
            return Ok(());
        }
        let permissions = object(&self.root.object_value_or_set(), "permissions", "permissions")?;
        array(&permissions, list, &format!("permissions.{list}"))?.append(input(&rule.into()));
        Ok(())
    }

    /// Takes such a rule out, and what held nothing else, unless it was there before.
    pub(crate) fn remove_rule(&self, list: &str, rule: &str, was: Option<&Settings>) {
        let Some(permissions) = self.root.object_value().and_then(|root| root.object_value("permissions")) else { return };
        let Some(rules) = permissions.array_value(list) else { return };
        let is_rule = |node: &CstNode| node.to_serde_value().is_some_and(|value: Value| value == rule);
        let Some(entry) = rules.elements().into_iter().find(is_rule) else { return };
        entry.remove();
        let was = was.map(Settings::value).unwrap_or_default();
        let was = was.get("permissions");
        if rules.elements().is_empty() && was.is_none_or(|was| was.get(list).is_none()) {
            permissions.get(list).into_iter().for_each(CstObjectProp::remove);
        }
        if was.is_none() {
            remove_if_empty(&self.root, "permissions");
        }
    }

    /// Takes a variable out, and what held nothing else, unless it was there before.
    pub(crate) fn remove_env(&self, name: &str, was: Option<&Settings>) {
        if let Some(property) = self.root.object_value().and_then(|root| root.object_value("env")?.get(name)) {
            property.remove();
            if was.is_none_or(|was| was.value().get("env").is_none()) {
                remove_if_empty(&self.root, "env");
            }
        }
    }
}

/// A settings file as the client reads it: plain JSON, and of two equal keys the last.
pub(crate) fn as_the_client_reads(text: &str) -> Result<Value, Problem> {
    let text = text.strip_prefix(BOM).unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    match (serde_json::from_str::<Value>(text), Settings::parse(text.as_bytes())) {
        (Ok(value), _) if value.is_object() => Ok(value),
        (Ok(_), _) => Err(Problem("is not a JSON object".to_owned())),
        (Err(_), Err(problem)) => Err(problem),
        (Err(e), Ok(_)) => Err(Problem(format!(
            "is not plain JSON (a comment or a trailing comma, line {}), so Claude Code ignores the whole file",
            e.line()
        ))),
    }
}

/// The fields that have the client run an entry in the background.
const BACKGROUND: [&str; 2] = [ASYNC, Hook::REWAKES];

/// The occasions that a group of hooks is restricted to.
fn matcher(group: &Value) -> Option<String> {
    group.get("matcher").and_then(Value::as_str).filter(|m| !matches!(*m, "" | "*" | ".*")).map(str::to_owned)
}

/// JSON with comments and trailing commas, and nothing else of what the parser would put up with.
fn dialect() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The entries of an event, each with its group.
fn entries_of(groups: &CstArray) -> Vec<(CstObject, CstObject)> {
    let groups = groups.elements().into_iter().filter_map(|group| group.as_object());
    groups.flat_map(|group| entries_in(&group).into_iter().map(move |entry| (group.clone(), entry))).collect()
}

fn entries_in(group: &CstObject) -> Vec<CstObject> {
    let entries = group.array_value("hooks").map(|list| list.elements()).unwrap_or_default();
    entries.into_iter().filter_map(|entry| entry.as_object()).collect()
}

/// Adds a new entry behind everything else; but the one that waits comes before the one that judges.
fn add(groups: &CstArray, hook: &Hook, command: &str, via: &str) {
    let fields = entry(hook, hook.timeout, command, via).iter().map(|(name, value)| ((*name).to_owned(), input(value))).collect();
    let group = one("hooks", CstInputValue::Array(vec![CstInputValue::Object(fields)]));
    let is_ours = |group: &CstNode| group.as_object().is_some_and(|group| entries_in(&group).iter().any(is_ralphs));
    match groups.elements().iter().position(is_ours).filter(|_| hook.waits) {
        Some(place) => groups.insert(place, group),
        None => groups.append(group),
    };
}

/// Takes an entry out, and the group that held nothing else.
fn take_out(group: &CstObject, entry: CstObject) {
    let beside = group.array_value("hooks").map_or(0, |list| list.elements().len());
    if beside > 1 { entry.remove() } else { group.clone().remove() }
}

/// Takes all of ralph's entries out of an event's groups. Whether there were any.
fn take_ours_out(groups: &CstArray) -> bool {
    let ours = entries_of(groups).into_iter().filter(|(_, entry)| is_ralphs(entry));
    ours.map(|(group, entry)| take_out(&group, entry)).count() > 0
}

fn is_restricted(group: &CstObject) -> bool {
    group.to_serde_value().as_ref().and_then(matcher).is_some()
}

fn is_ralphs(entry: &CstObject) -> bool {
    entry.to_serde_value().as_ref().and_then(CommandLine::of).is_some_and(|line| line.is_ralphs())
}

/// Whether an entry is ralph's, and this hook of the event; or none that ralph registers there: then it becomes this one.
fn may_be(entry: &CstObject, hook: &Hook) -> bool {
    let line = entry.to_serde_value().as_ref().and_then(CommandLine::of).filter(CommandLine::is_ralphs);
    line.is_some_and(|line| Hook::of_line(hook.event, &line).is_none_or(|is| is == hook))
}

/// Brings an entry of ralph's own up to date, and leaves one alone that runs what it should.
fn update(entry: &CstObject, hook: &Hook, command: &str, via: &str) {
    let is = entry.to_serde_value().unwrap_or_default();
    let line = CommandLine::of(&is);
    let chosen = chosen_limit(&is, hook, line.as_ref());
    let wanted: Value = self::entry(hook, chosen.unwrap_or(hook.timeout), command, via).into_iter().collect();
    if chosen.is_none() && is.get("timeout") != wanted.get("timeout") {
        set(entry, "timeout", &wanted);
    }
    for name in BACKGROUND {
        match (is.get(name) == Some(&true.into()), wanted.get(name).is_some()) {
            (false, true) => set(entry, name, &wanted),
            (true, false) => named(entry, name).for_each(CstObjectProp::remove),
            _ => {}
        }
    }
    let is_complete = entry.get("type").is_some();
    if is_complete && line == CommandLine::of(&wanted) {
        return;
    }
    for name in ["type", "command", "args"] {
        set(entry, name, &wanted);
    }
}

/// The limit that a person chose, in whole seconds. What ralph wrote before it ran commands was not chosen.
fn chosen_limit(entry: &Value, hook: &Hook, line: Option<&CommandLine>) -> Option<u64> {
    let seconds = entry.get("timeout")?.as_f64().filter(|seconds| (1.0..=1e9).contains(seconds))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a billion")]
    let seconds = seconds as u64;
    let is_told = line.is_some_and(|line| line.limit().is_some());
    (!hook.measures() || is_told || seconds != SHORT).then_some(seconds)
}

/// Sets a field of an entry. Of several with its name the client takes the last: that one stays.
fn set(entry: &CstObject, name: &str, wanted: &Value) {
    let mut all: Vec<CstObjectProp> = named(entry, name).collect();
    match all.pop() {
        Some(last) => {
            all.into_iter().for_each(CstObjectProp::remove);
            last.set_value(input(&wanted[name]));
        }
        None => {
            entry.append(name, input(&wanted[name]));
        }
    }
}

fn named<'a>(parent: &CstObject, name: &'a str) -> impl Iterator<Item = CstObjectProp> + use<'a> {
    parent.properties().into_iter().filter(move |property| property.decoded_name().as_deref() == Some(name))
}

fn object(parent: &CstObject, name: &str, path: &str) -> Result<CstObject, Problem> {
    only(parent, name, path)?;
    parent.object_value_or_create(name).ok_or_else(|| Problem(format!("has something else than an object as \"{path}\"")))
}

fn array(parent: &CstObject, name: &str, path: &str) -> Result<CstArray, Problem> {
    only(parent, name, path)?;
    parent.array_value_or_create(name).ok_or_else(|| Problem(format!("has something else than a list as \"{path}\"")))
}

/// The property of that name. Of two the client takes the last, so a change to the first would change nothing.
fn only(parent: &CstObject, name: &str, path: &str) -> Result<Option<CstObjectProp>, Problem> {
    let mut all = named(parent, name);
    match (all.next(), all.next()) {
        (_, Some(_)) => Err(Problem(format!("has the key \"{path}\" twice"))),
        (first, None) => Ok(first),
    }
}

fn remove_if_empty(root: &CstRootNode, name: &str) {
    let property = root.object_value().and_then(|root| root.get(name));
    if let Some(property) = property.filter(|p| p.object_value().is_some_and(|o| is_bare(&o))) {
        property.remove();
    }
}

/// Whether an object holds nothing at all, not even a comment.
fn is_bare(object: &CstObject) -> bool {
    object.properties().is_empty() && !has_comment(&object.clone().into())
}

/// The same of a list.
fn is_bare_list(list: CstArray) -> bool {
    list.elements().is_empty() && !has_comment(&list.into())
}

fn has_comment(node: &CstContainerNode) -> bool {
    node.children().iter().any(CstNode::is_comment)
}

/// The white space after the first brace and before the last one, if there is anything between them.
fn margins(text: &str) -> Option<(Range<usize>, Range<usize>)> {
    let tree = parse_to_ast(text, &CollectOptions::default(), &dialect()).ok()?;
    let braces = tree.value?.range();
    let inside = text.get(braces.start + 1..braces.end - 1)?;
    let (open, close) = (inside.len() - inside.trim_start().len(), inside.trim_end().len());
    (open < close).then_some((braces.start + 1..braces.start + 1 + open, braces.start + 1 + close..braces.end - 1))
}

fn one(name: &str, value: CstInputValue) -> CstInputValue {
    CstInputValue::Object(vec![(name.to_owned(), value)])
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(b) => CstInputValue::Bool(*b),
        Value::Number(n) => CstInputValue::Number(n.to_string()),
        Value::String(s) => CstInputValue::String(s.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => CstInputValue::Object(fields.iter().map(|(name, value)| (name.clone(), input(value))).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, change: impl FnOnce(&Settings)) -> String {
        let settings = Settings::parse(text.as_bytes()).unwrap();
        change(&settings);
        settings.to_text()
    }

    fn registered_in(text: &str) -> String {
        changed(text, |s| s.register("ralph", "user").unwrap())
    }

    #[test]
    fn what_was_put_in_comes_out_byte_for_byte() {
        for text in [
            "{\n  \"model\": \"opus\"\n}\n",
            "{\r\n\t\"model\":   \"opus\", // mine\r\n\t/* more */\r\n}\r\n",
            "{\n    \"hooks\": {\n        \"Stop\": [\n            {\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}\n        ]\n    },\n    \"z\": 1,\n}",
            "{\n  \"hooks\": {\n    \"PreToolUse\": []\n  },\n  \"a\": [1,2]\n}\n",
            "// header\n{\n  // only a comment\n  \"a\": 1 // tail\n}\n// footer\n",
            "\u{feff}{\n  \"a\": 1\n}\n",
        ] {
            let with = registered_in(text);
            assert_eq!(
                Registered::all_in(&Settings::parse(with.as_bytes()).unwrap().value()).iter().filter(|r| r.line.is_ralphs()).count(),
                Hook::ALL.len()
            );
            assert_eq!(changed(&with, |s| s.unregister(None)), text, "{with}");
            assert_eq!(registered_in(&with), with, "a second time changes nothing");
        }
    }

    #[test]
    fn an_empty_file_gets_an_object_and_a_file_on_one_line_stays_valid() {
        for text in ["", "{}", " \n", "{ }\n", "{\"hooks\":{\"Stop\":[]}}", "{\"model\":\"opus\"}"] {
            let with = registered_in(text);
            assert_eq!(Registered::all_in(&serde_json::from_str(&with).unwrap()).len(), Hook::ALL.len(), "{with}");
            let without: Value = serde_json::from_str(&changed(&with, |s| s.unregister(None))).unwrap();
            assert_eq!(Registered::all_in(&without).len(), 0);
        }
    }

    #[test]
    fn entries_beside_ralphs_stay_and_an_old_one_is_brought_up_to_date() {
        let text = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"},{"type":"command","command":"/old/ralph hook","timeout":9}]}]}}"#;
        let with = registered_in(text);
        let stops: Vec<_> = Registered::all_in(&serde_json::from_str(&with).unwrap()).into_iter().filter(|r| r.event == "Stop").collect();
        let lines: Vec<String> = stops.iter().map(|r| r.line.to_string()).collect();
        assert_eq!(lines, ["ralph hook claude --wait --timeout 28800 --via user", "mine", "ralph hook claude --timeout 9 --via user"]);
        assert_eq!(stops[2].timeout, Some(9.0), "a person's own timeout stays");
        assert_eq!(changed(text, |s| s.unregister(None)), r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}]}}"#);
    }

    /// Ralph's hooks for a stop, as they stand: whether each waits, its limit, and how the client runs it.
    fn stops_of(text: &str) -> Vec<(bool, Option<f64>, bool, bool)> {
        let value = Settings::parse(text.as_bytes()).unwrap().value();
        let stops = Registered::all_in(&value).into_iter().filter(|r| r.event == "Stop" && r.line.is_ralphs());
        stops.map(|r| (r.line.waits(), r.timeout, r.in_background, r.rewakes)).collect()
    }

    const WAITER: (bool, Option<f64>, bool, bool) = (true, Some(28_800.0), true, true);
    const JUDGE: (bool, Option<f64>, bool, bool) = (false, Some(3_600.0), false, false);

    #[test]
    fn s2_5_the_hook_that_waits_comes_before_the_one_of_an_older_ralph_and_goes_with_it() {
        let old = r#"{"type": "command", "command": "ralph", "args": ["hook", "claude", "--timeout", "3600"], "timeout": 3600}"#;
        let mine = r#"{"type": "command", "command": "mine"}"#;
        for (stop, without) in [
            (format!("[{{\"hooks\": [{old}]}}]"), "[]".to_owned()),
            (
                format!("[\n  // mine\n  {{\"hooks\": [{mine}]}},\n  {{\"hooks\": [{old}]}}\n]"),
                format!("[\n  // mine\n  {{\"hooks\": [{mine}]}}\n]"),
            ),
            (format!("[\n  {{\"hooks\": [{mine}, {old}]}}\n]"), format!("[\n  {{\"hooks\": [{mine}]}}\n]")),
        ] {
            let text = |stop: &str| format!("{{\n  \"hooks\": {{\n    \"Notification\": [],\n    \"Stop\": {stop}\n  }}\n}}\n");
            let with = registered_in(&text(&stop));
            assert_eq!(stops_of(&with), [WAITER, JUDGE], "{with}");
            assert_eq!(registered_in(&with), with, "a second time changes nothing");
            let was = Settings::parse(text("[]").as_bytes()).unwrap();
            assert_eq!(changed(&with, |s| s.unregister(Some(&was))), text(&without), "{with}");
        }
    }

    #[test]
    fn s2_5_of_each_kind_one_is_left_and_runs_as_it_should() {
        let entry = |args: &str, more: &str| format!(r#"{{"hooks": [{{"type": "command", "command": "ralph", "args": [{args}]{more}}}]}}"#);
        let (judge, waiter) = (r#""hook", "claude", "--timeout", "3600""#, r#""hook", "claude", "--wait", "--timeout", "28800""#);
        let stops = |entries: &[String]| stops_of(&registered_in(&format!(r#"{{"hooks": {{"Stop": [{}]}}}}"#, entries.join(", "))));
        let (limit, wakes) = (r#", "timeout": 28800"#, r#", "timeout": 28800, "asyncRewake": true"#);
        assert_eq!(stops(&[entry(waiter, wakes)]), [WAITER, JUDGE], "the one that judges is missing");
        assert_eq!(stops(&[entry(waiter, wakes), entry(judge, ""), entry(waiter, wakes), entry(judge, "")]), [WAITER, JUDGE]);
        // What somebody changed so that it would hold every stop, or none.
        for changed in [limit.to_owned(), format!(r#"{limit}, "asyncRewake": false"#), format!(r#"{limit}, "async": true"#)] {
            assert_eq!(
                stops(&[entry(waiter, &changed), entry(judge, r#", "asyncRewake": true, "async": true"#)]),
                [WAITER, JUDGE],
                "{changed}"
            );
        }
        // A limit of one's own stays, and the hook is told.
        let with = registered_in(&format!(r#"{{"hooks": {{"Stop": [{}]}}}}"#, entry(waiter, r#", "timeout": 7200, "asyncRewake": true"#)));
        assert_eq!(stops_of(&with), [(true, Some(7_200.0), true, true), JUDGE]);
        assert!(Registered::all_in(&serde_json::from_str(&with).unwrap()).iter().any(|r| r.line.limit() == Some(7_200)), "{with}");
        // One that waits where nothing is to be waited for becomes the one that answers.
        let with = registered_in(&format!(r#"{{"hooks": {{"SubagentStop": [{}]}}}}"#, entry(waiter, wakes)));
        let subagents: Vec<Registered> =
            Registered::all_in(&serde_json::from_str(&with).unwrap()).into_iter().filter(|r| r.event == "SubagentStop").collect();
        assert!(subagents.len() == 1 && subagents[0].answers("SubagentStop") && !subagents[0].in_background, "{with}");
    }

    #[test]
    fn what_cannot_be_changed_is_named() {
        let problem = |text: &str| {
            let parsed = Settings::parse(text.as_bytes());
            parsed.and_then(|s| s.register("ralph", "user")).map_err(|p| p.to_string()).unwrap_err()
        };
        assert_eq!(problem("{\n  \"a\": 1\n  \"b\": 2\n}"), "is not valid JSON: line 2, column 9: Expected comma");
        assert_eq!(problem("[]"), "is not a JSON object");
        assert_eq!(problem("{\"hooks\": []}"), "has something else than an object as \"hooks\"");
        assert_eq!(problem("{\"hooks\": {\"Stop\": {}}}"), "has something else than a list as \"hooks.Stop\"");
        assert_eq!(problem("{\"hooks\": {}, \"hooks\": {}}"), "has the key \"hooks\" twice");
        assert_eq!(Settings::parse(b"{\"a\": \"\xff\"}").err().map(|p| p.to_string()).as_deref(), Some("is not UTF-8 text (byte 7)"));
        for lax in ["{a: 1}", "{'a': 1}", "{\"a\": 0x1}", "{\"a\": 1} x"] {
            assert!(problem(lax).starts_with("is not valid JSON"), "{lax}");
        }
    }

    #[test]
    fn a_variable_is_set_changed_and_removed() {
        let text = "{\n  \"a\": 1\n}\n";
        let with = changed(text, |s| s.set_env("CAP", &"0".into()).unwrap());
        assert_eq!(with, "{\n  \"a\": 1,\n  \"env\": {\n    \"CAP\": \"0\"\n  }\n}\n");
        assert_eq!(changed(&with, |s| s.remove_env("CAP", None)), text);
        assert_eq!(changed(&with, |s| s.set_env("CAP", &"20".into()).unwrap()), with.replace("\"0\"", "\"20\""));
        let kept = "{\"env\": {\"B\": \"1\"}}";
        assert_eq!(
            changed(&changed(kept, |s| s.set_env("CAP", &"0".into()).unwrap()), |s| s.remove_env("CAP", None)).replace(['\n', ' '], ""),
            kept.replace(' ', "")
        );
    }
}
