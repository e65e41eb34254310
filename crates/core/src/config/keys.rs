//! The keys of `ralph.toml`: one list, from which its reader, its messages and its JSON schema are made.

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
    /// A list of texts; one may stand alone.
    Texts,
    Choice(&'static [&'static str]),
    /// A line for the shell, or a program and its arguments.
    Run,
    Time,
    Fresh,
    /// A path, or false.
    Report,
    Env,
    Gates,
    Table(&'static Table),
    Commands,
}

/// A table of the file.
#[derive(Debug)]
pub(super) struct Table {
    /// As it stands in the file.
    pub(super) header: &'static str,
    about: &'static str,
    pub(super) keys: &'static [Key],
}

const fn key(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, of: None, about }
}

const fn of(gate: &'static str, name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, of: Some(gate), about }
}

pub(super) const GUARD: &[&str] = &["tests", "block", "warn", "off"];
pub(super) const OLD_FAILURES: &[&str] = &["block", "allow"];

const STAGE: &[&str] = &["open", "merged"];
const CHECKS_THAT_COUNT: &[&str] = &["all", "required"];

pub(super) static TOP: Table = Table {
    header: "the file",
    about: "Settings of a project that uses ralph.",
    keys: &[
        key(
            "guard",
            Kind::Choice(GUARD),
            "What happens when tests vanish, are skipped, or a gate is weakened while a loop runs: tests (missing or skipped tests keep it from ending, the rest is listed; the default), block (all of it does), warn (it is listed), off.",
        ),
        key("keep_going", Kind::Bool, "Run further commands after one has failed."),
        key("gate", Kind::Gates, "What must hold before a loop may end, in this order."),
        key("features", Kind::Table(&FEATURES), "Settings for all lists."),
        key("verify", Kind::Table(&VERIFY), "What a subagent must prove when it stops."),
        key("pr", Kind::Table(&PR), "What the loops of a pull request look at."),
        key("run", Kind::Table(&RUN), "How `ralph run` runs fresh sessions."),
        key("notify", Kind::Table(&NOTIFY), "Who is told when a run ends, waits for long, or needs a person."),
    ],
};

/// What a gate can check: one of these keys it must have.
pub(super) const CHECKS: [&str; 6] = ["command", "file", "features", "markers", "pr", "ci"];

pub(super) static GATE: Table = Table {
    header: "[[gate]]",
    about: "One thing that must hold: a command, a file, a list, markers, a pull request or its checks.",
    keys: &[
        key("name", Kind::Text, "What it is called; made from what it checks if not given."),
        key("every_stop", Kind::Bool, "Measure it at every stop, not only when the agent claims to be done."),
        key("next", Kind::Text, "What the agent should do while it does not hold."),
        key("command", Kind::Run, "A command that must pass: a line for the shell, or a program and its arguments."),
        of("command", "folder", Kind::Text, "Where it runs, relative to the project's root."),
        of("command", "env", Kind::Env, "Variables beside those of the agent."),
        of("command", "deadline", Kind::Time, "How long it may run: \"90s\", \"10m\", \"2h\", or seconds. 120 s if not given."),
        of("command", "parallel", Kind::Bool, "It may run at the same time as its neighbours that may, too."),
        of("command", "retry", Kind::Bool, "A failure is tried once more, to tell a flake."),
        of("command", "cache", Kind::Bool, "Believe the last verdict while no file has changed. True if not given."),
        of("command", "leave_running", Kind::Bool, "What it started may outlive it."),
        of(
            "command",
            "old_failures",
            Kind::Choice(OLD_FAILURES),
            "Failures that were there when the loop started: block (they count), allow (only new ones do).",
        ),
        of("command", "junit", Kind::Text, "A JUnit file that it writes, relative to the project's root."),
        of("command", "excerpt", Kind::Count, "How many characters of its output the agent is shown. 500 if not given."),
        key("file", Kind::Text, "A file that must be there, relative to the project's root."),
        of("file", "contains", Kind::Text, "A regular expression that must match in it."),
        of(
            "file",
            "fresh",
            Kind::Fresh,
            "Its sources must not have changed since it was written: true for all files, or patterns such as \"src/**\".",
        ),
        of("file", "entries", Kind::Count, "So many entries must stand in it: items of lists, rows of tables, paragraphs."),
        key(
            "features",
            Kind::Text,
            "A list whose items must all pass: `feature_list.json`, `prd.json`, or a Markdown file with check boxes.",
        ),
        key("markers", Kind::Texts, "Words that must all stand in the agent's last message."),
        key("pr", Kind::Choice(STAGE), "The branch's pull request must be open, or merged."),
        key(
            "ci",
            Kind::Choice(CHECKS_THAT_COUNT),
            "The checks on the pull request's head commit must be green: all of them, or those that the base branch requires.",
        ),
    ],
};

pub(super) static FEATURES: Table = Table {
    header: "[features]",
    about: "Settings for all lists.",
    keys: &[key("per_session", Kind::Count, "After so many items done in one session the loop pauses; 0 means no limit.")],
};

pub(super) static PR: Table = Table {
    header: "[pr]",
    about: "What the loops of a pull request (the presets pre-pr and after-pr) look at.",
    keys: &[
        key("audit", Kind::Report, "The report of the audit, docs/AUDIT-REPORT.md if not given; false: none is asked for."),
        key("audit_says", Kind::Text, "A regular expression that must match in the report; a line `Decision: PASS` if not given."),
        key("audit_command", Kind::Text, "What the agent is told to run for it; /audit if not given."),
        key(
            "quality",
            Kind::Report,
            "What the project's quality gate leaves behind, .quality-gate-passed if not given; false: none is asked for.",
        ),
        key("quality_command", Kind::Text, "What the agent is told to run for it; `npm run qa:gate` if not given."),
        key("sources", Kind::Texts, "Patterns of the files that must not have changed since the quality gate passed; all if not given."),
        key("evidence", Kind::Report, "Where the evidence stands, .layer2-evidence.md if not given; false: none is asked for."),
        key("checks", Kind::Choice(CHECKS_THAT_COUNT), "Which checks must be green: all, or those that the base branch requires."),
        key("ignore", Kind::Texts, "Patterns of the names of checks that do not count, such as \"codecov/*\"."),
        key("no_checks", Kind::Choice(&["ask", "pass"]), "A commit that no check reports on: ask (the loop pauses), or pass."),
        key("base", Kind::Text, "The branch that the pull request must go to; any if not given."),
        key(
            "merge",
            Kind::Choice(&["agent", "ralph"]),
            "Who merges once everything else holds: the agent, or ralph (squash, and the branch is deleted).",
        ),
    ],
};

/// The client's own words.
const PERMISSION_MODES: &[&str] = &["default", "acceptEdits", "auto", "dontAsk", "bypassPermissions"];

pub(super) static RUN: Table = Table {
    header: "[run]",
    about: "How `ralph run` runs fresh sessions.",
    keys: &[
        key(
            "model",
            Kind::Text,
            "The model of every session, unless an item of a list names another. The client's own choice if not given.",
        ),
        key(
            "permission_mode",
            Kind::Choice(PERMISSION_MODES),
            "The client's permission mode; what its own settings say if not given. Counts once this file is trusted.",
        ),
        key(
            "inner",
            Kind::Count,
            "So many times a session's own stop hook sends it back while gates fail, before its round ends. 0 if not given.",
        ),
        key("silence", Kind::Time, "A session of which nothing is heard for so long is ended. 15m if not given."),
        key("round", Kind::Time, "One round may not take longer; 0 means no limit. 2h if not given."),
        key("retries", Kind::Count, "So many crashes of the agent in a row are borne. 3 if not given."),
        key("calls_per_hour", Kind::Count, "So many sessions are started within an hour; 0 means no limit."),
        key("escalate_after", Kind::Count, "After so many failing rounds in a row `escalate_model` gets its turn; 0 means never."),
        key("escalate_model", Kind::Text, "The model for rounds after failing ones."),
        key(
            "snapshots",
            Kind::Bool,
            "Keep the files after every round under refs/ralph/, for `ralph diff` and `ralph rollback`. True if not given.",
        ),
        key(
            "cooldown",
            Kind::Time,
            "How long nothing is tried after too many rounds without progress; then comes one last try. 1m if not given.",
        ),
    ],
};

pub(super) static NOTIFY: Table = Table {
    header: "[notify]",
    about: "Who is told when a run ends, waits for long, or needs a person.",
    keys: &[
        key("desktop", Kind::Bool, "A notification on the desktop."),
        key("terminal", Kind::Bool, "One through the terminal that the run is shown in, also over ssh."),
        key(
            "command",
            Kind::Text,
            "A line for the shell, with the news in its environment and as JSON on its input. Runs once this file is trusted.",
        ),
        key("webhook", Kind::Text, "An address that gets the news as JSON, by POST. Asked once this file is trusted."),
    ],
};

pub(super) static VERIFY: Table = Table {
    header: "[verify]",
    about: "What a subagent must prove when it stops.",
    keys: &[
        key("agents", Kind::Texts, "The types of the agents that must prove their work; \"check\" if not given."),
        key("commands", Kind::Commands, "The commands that must pass, in this order."),
        key("rounds", Kind::Count, "Rounds after which an agent is let go, unverified. 5 if not given."),
        key("minutes", Kind::Count, "Minutes after which it is. 30 if not given."),
        key("excerpt", Kind::Count, "How many characters of a command's output the agent is shown."),
    ],
};

pub(super) static VERIFY_COMMAND: Table = Table {
    header: "a command of [verify]",
    about: "A command, and how long it may run.",
    keys: &[
        key("run", Kind::Run, "A line for the shell, or a program and its arguments."),
        key("command", Kind::Run, "Another word for `run`."),
        key("deadline", Kind::Time, "How long it may run. 120 s if not given."),
    ],
};

impl Kind {
    /// What a value must be, after "must be".
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
            Kind::Env => json!({ "type": "object", "additionalProperties": text }),
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
            spec["description"] = key.about.into();
            (key.name.to_owned(), spec)
        };
        let properties: Map<String, Value> = self.keys.iter().map(described).collect();
        json!({ "type": "object", "description": self.about, "additionalProperties": false, "properties": properties })
    }

    /// The schema of a table that must have exactly one of these keys.
    fn schema_with_one_of(&self, keys: &[&str]) -> Value {
        let mut schema = self.schema();
        schema["oneOf"] = keys.iter().map(|key| json!({ "required": [key] })).collect();
        schema
    }
}

/// The JSON schema of the file.
pub fn schema() -> Value {
    let mut schema = TOP.schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "ralph.toml".into();
    schema["$defs"] = json!({
        "gate": GATE.schema_with_one_of(&CHECKS),
        "features": FEATURES.schema(),
        "verify": VERIFY.schema(),
        "pr": PR.schema(),
        "run": RUN.schema(),
        "notify": NOTIFY.schema(),
        "command": VERIFY_COMMAND.schema_with_one_of(&["run", "command"]),
    });
    schema
}
