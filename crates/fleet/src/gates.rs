//! What a job must prove: the project's `ralph.toml`, as the person trusted it, and commands. An agent's branch has no word in it.

use ralph_core::config;
use ralph_engine::{gates::declared, store::project::Project};
use toml::{Table, Value};

use crate::{
    problem::{Problem, Result},
    settings::Slots,
};

/// Gates that a clone without a remote cannot pass, or that are the lander's: it marks the list.
const NOT_IN_A_SLOT: [&str; 4] = ["features", "pr", "ci", "markers"];

/// What the project says: the gates as the text of a `ralph.toml`, the names of those that are left out, and how slots are made ready.
pub struct OfProject {
    pub gates: String,
    pub left_out: Vec<String>,
    pub slots: Slots,
}

pub fn of_project(project: &Project) -> Result<OfProject> {
    let (Some(read), Some(for_runs)) = (declared::config(project), declared::config_of_runs(project)) else {
        return Ok(OfProject { gates: String::new(), left_out: Vec::new(), slots: Slots::default() });
    };
    let (settings, trust) = read.map_err(|finding| Problem::new(format!("{}: {}", config::FILE, finding.detail)))?;
    let acts = settings.fleet.setup.is_some() || !settings.fleet.copy.is_empty();
    if !trust.is_trusted() || (acts && for_runs.is_ok_and(|(_, trust)| !trust.is_trusted())) {
        return Err(Problem::new(format!("{} is not trusted: look at it, then `ralph trust`", config::FILE)));
    }
    let text = std::fs::read_to_string(project.root().join(config::FILE)).map_err(Problem::when(config::FILE))?;
    let mut table: Table = text.parse().map_err(Problem::when(config::FILE))?;
    let mut left_out = Vec::new();
    if let Some(Value::Array(gates)) = table.get_mut("gate") {
        gates.retain(|gate| {
            let kind = NOT_IN_A_SLOT.iter().find(|key| gate.get(key).is_some());
            left_out.extend(kind.map(|kind| gate.get("name").and_then(Value::as_str).unwrap_or(kind).to_owned()));
            kind.is_none()
        });
    }
    for not_needed in ["features", "verify", "pr", "notify", "fleet"] {
        table.remove(not_needed);
    }
    let fleet = settings.fleet;
    let slots = Slots {
        setup: fleet.setup,
        copy: fleet.copy,
        keep: fleet.keep,
        env: fleet.env.into_iter().collect(),
        union: fleet.union,
        gates_at_once: fleet.gates_at_once,
    };
    Ok(OfProject { gates: table.to_string(), left_out, slots })
}

/// The same with more commands that must pass.
pub fn with_commands(gates: &str, commands: &[String]) -> Result<String> {
    let mut table: Table = gates.parse().map_err(Problem::when("the fleet's gates"))?;
    let list = table.entry("gate").or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(list) = list else { return Err(Problem::new("the fleet's gates are no list")) };
    for command in commands {
        let known = list.iter().any(|gate| gate.get("command").and_then(Value::as_str) == Some(command));
        if !known {
            list.push(Value::Table(Table::from_iter([("command".to_owned(), Value::String(command.clone()))])));
        }
    }
    Ok(table.to_string())
}

/// The same for an agent's work in its slot: everything must be committed, too, or it would not land.
pub fn in_a_slot(gates: &str) -> Result<String> {
    let mut table: Table = gates.parse().map_err(Problem::when("the fleet's gates"))?;
    let Value::Array(list) = table.entry("gate").or_insert_with(|| Value::Array(Vec::new())) else {
        return Err(Problem::new("the fleet's gates are no list"));
    };
    if !list.iter().any(|gate| gate.get("committed").is_some()) {
        list.push(Value::Table(Table::from_iter([("committed".to_owned(), Value::Boolean(true))])));
    }
    Ok(table.to_string())
}

/// How many gates there are.
pub fn count(gates: &str) -> usize {
    let table: Option<Table> = gates.parse().ok();
    table.and_then(|table| table.get("gate").and_then(Value::as_array).map(Vec::len)).unwrap_or(0)
}
