//! Answers to `session/request_permission`, by the run's permission mode. Nothing is ever allowed for more than one call.

use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::tool_calls::Call;

/// What may be done without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Everything,
    Edits,
    Nothing,
}

/// For each policy the session modes of agents, the best first: what an agent calls it differs. The last ones are those in which it asks.
const BYPASS: [&str; 5] = ["bypassPermissions", "yolo", "full-access", "auto-high", "auto"];
const EDITS: [&str; 7] = ["acceptEdits", "autoEdit", "auto-edit", "default", "normal", "approve", "read-only"];
const ASKS: [&str; 4] = ["default", "normal", "approve", "read-only"];

impl Policy {
    pub(super) fn of(permission_mode: Option<&str>) -> Self {
        match permission_mode {
            Some("bypassPermissions") => Policy::Everything,
            Some("acceptEdits") => Policy::Edits,
            _ => Policy::Nothing,
        }
    }

    /// The session mode to ask for, of those that the agent has; `None`: it is in it, or has none that fits.
    pub(super) fn session_mode(self, modes: &Value) -> Option<String> {
        let wanted: &[&str] = match self {
            Policy::Everything => &BYPASS,
            Policy::Edits => &EDITS,
            Policy::Nothing => &ASKS,
        };
        let all: Vec<&str> = modes["availableModes"].as_array()?.iter().filter_map(|mode| mode["id"].as_str()).collect();
        // Copilot's ids are addresses with the name at their end.
        let is = |id: &str, name: &str| id.rsplit('#').next() == Some(name);
        let chosen = wanted.iter().find_map(|name| all.iter().find(|id| is(id, name)))?;
        (modes["currentModeId"] != **chosen).then(|| (*chosen).to_owned())
    }

    fn allows(self, call: &Call, folder: &Path) -> bool {
        match self {
            Policy::Everything => true,
            Policy::Nothing => false,
            Policy::Edits => {
                let is_edit = matches!(call.kind.as_str(), "edit" | "delete" | "move" | "read" | "search");
                is_edit && call.places.iter().all(|place| is_within(folder, Path::new(place)))
            }
        }
    }

    /// The answer to a request about that call.
    pub(super) fn answer(self, options: &Value, call: &Call, folder: &Path) -> Value {
        let of_kind = |kind: &str| {
            let mut options = options.as_array().into_iter().flatten();
            options.find(|option| option["kind"] == kind && option["optionId"].is_string()).map(|option| &option["optionId"])
        };
        let allowed = if self.allows(call, folder) { of_kind("allow_once") } else { None };
        match allowed.or_else(|| of_kind("reject_once")) {
            Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option}}),
            None => json!({"outcome": {"outcome": "cancelled"}}),
        }
    }
}

/// Whether an answer allows the call.
pub(super) fn is_allowed(answer: &Value, options: &Value) -> bool {
    let chosen = &answer["outcome"]["optionId"];
    let mut options = options.as_array().into_iter().flatten();
    chosen.is_string() && options.any(|option| option["optionId"] == *chosen && option["kind"] == "allow_once")
}

/// Whether a path is in the folder, by its words.
fn is_within(folder: &Path, path: &Path) -> bool {
    let mut plain = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain.starts_with(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: &str, places: &[&str]) -> Call {
        let mut call = Call::default();
        kind.clone_into(&mut call.kind);
        call.places = places.iter().map(|place| (*place).to_owned()).collect();
        call
    }

    #[test]
    fn h6_a_request_is_answered_by_the_permission_mode_and_never_for_good() {
        let options = json!([
            {"optionId": "always", "kind": "allow_always"}, {"optionId": "once", "kind": "allow_once"},
            {"optionId": "never", "kind": "reject_always"}, {"optionId": "no", "kind": "reject_once"},
        ]);
        let chosen = |mode, call: &Call| Policy::of(mode).answer(&options, call, Path::new("/p"))["outcome"]["optionId"].clone();
        for (mode, call, wanted) in [
            (Some("bypassPermissions"), call("execute", &[]), "once"),
            (Some("bypassPermissions"), call("", &["/etc/x"]), "once"),
            (Some("acceptEdits"), call("edit", &["/p/a.txt", "b.txt"]), "once"),
            (Some("acceptEdits"), call("edit", &["/p/../etc/x"]), "no"),
            (Some("acceptEdits"), call("edit", &["/pp/x"]), "no"),
            (Some("acceptEdits"), call("execute", &[]), "no"),
            (Some("acceptEdits"), call("", &[]), "no"),
            (Some("default"), call("edit", &["/p/a.txt"]), "no"),
            (None, call("read", &[]), "no"),
        ] {
            assert_eq!(chosen(mode, &call), wanted, "{mode:?} {call:?}");
        }
    }

    #[test]
    fn h6_without_a_fitting_option_a_request_is_cancelled() {
        let only_for_good = json!([{"optionId": "always", "kind": "allow_always"}, {"optionId": "never", "kind": "reject_always"}]);
        for options in [only_for_good, json!([]), json!(null), json!([{"kind": "allow_once"}])] {
            let answer = Policy::Everything.answer(&options, &Call::default(), Path::new("/p"));
            assert_eq!(answer["outcome"]["outcome"], "cancelled");
            assert!(!is_allowed(&answer, &options));
        }
    }

    #[test]
    fn h6_an_agent_is_put_into_the_mode_that_fits() {
        let mode = |policy: Policy, current: &str, all: &[&str]| {
            let all: Vec<Value> = all.iter().map(|id| json!({"id": id})).collect();
            policy.session_mode(&json!({"currentModeId": current, "availableModes": all}))
        };
        let gemini = ["default", "autoEdit", "yolo", "plan"];
        let goose = ["auto", "approve", "smart_approve", "chat"];
        assert_eq!(mode(Policy::Everything, "default", &gemini).as_deref(), Some("yolo"));
        assert_eq!(mode(Policy::Edits, "default", &gemini).as_deref(), Some("autoEdit"));
        assert_eq!(mode(Policy::Nothing, "default", &gemini), None);
        assert_eq!(mode(Policy::Nothing, "auto", &goose).as_deref(), Some("approve"), "it would not ask");
        assert_eq!(mode(Policy::Edits, "auto", &goose).as_deref(), Some("approve"));
        assert_eq!(mode(Policy::Everything, "auto", &goose), None);
        assert_eq!(mode(Policy::Everything, "read-only", &["read-only", "auto", "full-access"]).as_deref(), Some("full-access"));
        assert_eq!(mode(Policy::Everything, "x#agent", &["x#agent", "x#plan"]), None);
        assert_eq!(Policy::Everything.session_mode(&Value::Null), None);
    }
}
