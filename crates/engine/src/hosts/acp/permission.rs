//! Answers to `session/request_permission`, by the run's permission mode. Nothing is ever allowed for more than one call, and no edit whose place is not told, that is
//! outside of the folder, or that would change what programs run or what agents may do.

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
const BYPASS: [&str; 6] = ["bypassPermissions", "yolo", "full-access", "auto-high", "auto", "dont_ask"];
const EDITS: [&str; 8] = ["acceptEdits", "accept_edits", "autoEdit", "auto-edit", "default", "normal", "approve", "read-only"];
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
                let looks = matches!(call.kind.as_str(), "read" | "search");
                let edits = matches!(call.kind.as_str(), "edit" | "delete" | "move");
                let places = call.told_places();
                let may = |place: &String| within(folder, Path::new(place)).is_some_and(|path| looks || !is_protected(&path));
                (looks || (edits && !places.is_empty())) && places.iter().all(may)
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

/// Folders and files with settings of programs that run commands: git's hooks, agents' hooks and permissions, editors' tasks, a shell's first lines; and ralph's own.
/// Claude Code asks before it writes such files in every mode but one, and so should an agent that asks ralph.
const PROTECTED: [&str; 26] = [
    ".git",
    ".gitmodules",
    ".gitconfig",
    ".ralph",
    ".claude",
    ".mcp.json",
    ".agents",
    ".codex",
    ".copilot",
    ".cursor",
    ".factory",
    ".gemini",
    ".goose",
    ".grok",
    ".hermes",
    ".kilo",
    ".kimi",
    ".opencode",
    ".qwen",
    ".vibe",
    ".vscode",
    ".idea",
    ".husky",
    ".envrc",
    "opencode.json",
    "opencode.jsonc",
];

fn is_protected(path: &Path) -> bool {
    let is = |part: &str| PROTECTED.iter().any(|name| part.eq_ignore_ascii_case(name));
    path.components().any(|part| part.as_os_str().to_str().is_none_or(is))
}

/// The path below the folder, if it is in it: by its words, and where links lead.
fn within(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    let below = plain.strip_prefix(folder).ok()?.to_owned();
    // What is not there yet will be in the nearest folder that is.
    let there = plain.ancestors().find(|path| path.symlink_metadata().is_ok());
    let Some(there) = there.filter(|there| there.starts_with(folder)) else { return Some(below) };
    let real = there.canonicalize().ok()?;
    let real = real.strip_prefix(folder.canonicalize().ok()?).ok()?;
    // Where a link leads counts as well as what it is called.
    Some(real.join(below))
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
            (Some("acceptEdits"), call("edit", &[]), "no"),
            (Some("acceptEdits"), call("search", &[]), "once"),
            (Some("acceptEdits"), call("edit", &["/p/a", "/p/.git/hooks/pre-commit"]), "no"),
            (Some("acceptEdits"), call("edit", &["sub/.GIT/config"]), "no"),
            (Some("acceptEdits"), call("move", &["/p/.gemini/settings.json"]), "no"),
            (Some("acceptEdits"), call("edit", &["/p/.claude/settings.json"]), "no"),
            (Some("acceptEdits"), call("read", &["/p/.git/config"]), "once"),
            (Some("acceptEdits"), call("edit", &["/p/.github/workflows/ci.yml"]), "once"),
            (Some("acceptEdits"), call("execute", &[]), "no"),
            (Some("acceptEdits"), call("", &[]), "no"),
            (Some("default"), call("edit", &["/p/a.txt"]), "no"),
            (None, call("read", &[]), "no"),
        ] {
            assert_eq!(chosen(mode, &call), wanted, "{mode:?} {call:?}");
        }
    }

    /// An agent that tells the place among its arguments only.
    #[test]
    fn t1_h6_an_edit_is_allowed_only_where_its_place_is_told() {
        let options = json!([{"optionId": "once", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]);
        for (input, wanted) in [
            (json!({"file_path": "/p/a.txt"}), "once"),
            (json!({"path": "a.txt", "command": "write"}), "once"),
            (json!({"changes": {"/p/a.txt": {}, "b.txt": {}}}), "once"),
            (json!({"changes": {"/p/a.txt": {}, "/etc/x": {}}}), "no"),
            (json!({"filePath": "/etc/x"}), "no"),
            (json!({"target_file": ".git/config"}), "no"),
            (json!({"path": "a.txt", "new_path": "../x"}), "no"),
            (json!({"text": "/p/a.txt"}), "no"),
            (json!({}), "no"),
        ] {
            let mut calls = super::super::tool_calls::ToolCalls::default();
            let asked = json!({"toolCallId": "c", "kind": "edit", "title": "Edit", "rawInput": input});
            let call = calls.asked_about(&asked, &mut Vec::new());
            let answer = Policy::Edits.answer(&options, &call, Path::new("/p"));
            assert_eq!(answer["outcome"]["optionId"], wanted, "{input}");
        }
    }

    /// A link in the project, and one call's kind for another without a name.
    #[test]
    #[cfg(unix)]
    fn t1_h6_no_edit_goes_through_a_link_or_under_another_calls_name() {
        let root = crate::sys::temp_dir::Scratch::create("ralph-acp-", false).unwrap();
        let folder = root.path().join("p");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        for (to, link) in [(root.path().to_owned(), "out"), (folder.join("sub"), "in"), (folder.join(".git"), "hidden")] {
            std::os::unix::fs::symlink(to, folder.join(link)).unwrap();
        }
        std::fs::create_dir(folder.join(".git")).unwrap();
        let may = |place: &str| Policy::Edits.allows(&call("edit", &[place]), &folder);
        assert!(may("sub/new/a.txt") && may("in/a.txt") && may("a.txt"));
        assert!(!may("out/a.txt") && !may("out") && !may("hidden/hooks/pre-commit") && !may("hidden"));
        let options = json!([{"optionId": "once", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]);
        let mut calls = super::super::tool_calls::ToolCalls::default();
        calls.update(&json!({"kind": "edit", "locations": [{"path": "a.txt"}]}), &mut Vec::new());
        let call = calls.asked_about(&json!({"title": "rm -rf x", "rawInput": {"command": "rm -rf x"}}), &mut Vec::new());
        assert_eq!(Policy::Edits.answer(&options, &call, &folder)["outcome"]["optionId"], "no");
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
