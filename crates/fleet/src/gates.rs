//! What a job must prove: the project's `ralph.toml`, as the person trusted it, and commands. An agent's branch has no word in it.

use ralph_core::{
    config::{self, Config},
    gate::{Gate, Run},
};
use ralph_engine::{
    gates::declared,
    ops::command_sources::Named,
    store::{
        project::Project,
        trust::{self, Trust},
    },
};
use toml::{Table, Value};

use crate::{
    problem::{Problem, Result},
    records::Spec,
    settings::{Settings, Slots},
};

/// Gates that a clone without a remote cannot pass, or that are the lander's: it marks the list.
const NOT_IN_A_SLOT: [&str; 3] = ["features", "pr", "ci"];

/// What the project says: the gates as the text of a `ralph.toml`, the names of those that are left out, and how slots are made ready.
pub struct OfProject {
    pub gates: String,
    pub left_out: Vec<String>,
    pub slots: Slots,
}

pub fn of_project(project: &Project) -> Result<OfProject> {
    let Some(read) = declared::config_of_runs(project) else {
        return Ok(OfProject { gates: String::new(), left_out: Vec::new(), slots: Slots::default() });
    };
    let (settings, trust) = read.map_err(|finding| Problem::new(format!("{}: {}", config::FILE, finding.detail)))?;
    // What it says is passed on as settings that need no trust any more. Variables and a permission mode decide what is run as much as a command does.
    let (run, fleet) = (&settings.run, &settings.fleet);
    let of_sessions = run.permission_mode.is_some() || !run.prices.is_empty();
    let of_slots = fleet.setup.is_some() || !fleet.copy.is_empty() || !fleet.env.is_empty();
    let runs_something = settings.gates.iter().any(Gate::acts) || of_sessions || of_slots;
    if runs_something && !trust.is_trusted() {
        return Err(Problem::new(format!("{} is not trusted: look at it, then `ralph trust`", config::FILE)));
    }
    // Somebody may have taken the gates away, and what is there now asks for no trust.
    if trust == Trust::Changed {
        let told = format!(
            "{} has changed since you trusted it, and runs nothing now. If that is right, `ralph trust --revoke` forgets what you trusted",
            config::FILE
        );
        return Err(Problem::new(told));
    }
    let text = std::fs::read_to_string(project.root().join(config::FILE)).map_err(Problem::when(config::FILE))?;
    // What was looked at is what is passed on.
    if Config::parse(text.as_bytes()).ok().as_ref() != Some(&settings) {
        return Err(Problem::new(format!("{} was changed just now: try again", config::FILE)));
    }
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

/// Refuses a list whose items have commands of their own that no person has seen, which become gates, or name an agent that the person did not (`named`).
pub fn refuse_untrusted(project: &Project, list: &str, items: &[Spec], named: &[String]) -> Result<()> {
    let commands = items.iter().flat_map(|item| &item.verify).cloned().map(Run::Shell);
    let is_named = |agent: &&String| named.contains(agent);
    let agents = items.iter().filter_map(|item| item.agent.as_ref()).filter(|agent| !is_named(agent)).map(|agent| Named::of_agent(agent));
    if trust::of_commands(project, list, &commands.chain(agents).collect::<Vec<_>>()).is_trusted() {
        return Ok(());
    }
    Err(Problem::new(format!("the commands and agents of {list} are not trusted: `ralph trust {list}` shows them and asks")))
}

/// The same with more commands that must pass, each within its deadline.
pub fn with_commands(gates: &str, commands: &[String], deadline: Option<&str>) -> Result<String> {
    let mut table: Table = gates.parse().map_err(Problem::when("the fleet's gates"))?;
    let list = table.entry("gate").or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(list) = list else { return Err(Problem::new("the fleet's gates are no list")) };
    for command in commands {
        let known = list.iter().any(|gate| gate.get("command").and_then(Value::as_str) == Some(command));
        if !known {
            let deadline = deadline.map(|time| ("deadline".to_owned(), Value::from(time)));
            list.push(Value::Table([("command".to_owned(), Value::from(command.as_str()))].into_iter().chain(deadline).collect()));
        }
    }
    Ok(table.to_string())
}

/// What a job must prove.
pub fn of_job(settings: &Settings, spec: &Spec) -> Result<String> {
    with_commands(&settings.gates, &spec.verify, settings.deadline.as_deref())
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

/// The same for what lands: no agent is there that could say something.
pub fn where_it_lands(gates: &str) -> Result<String> {
    let mut table: Table = gates.parse().map_err(Problem::when("the fleet's gates"))?;
    if let Some(Value::Array(list)) = table.get_mut("gate") {
        list.retain(|gate| gate.get("markers").is_none());
    }
    Ok(table.to_string())
}

/// How many gates there are.
pub fn count(gates: &str) -> usize {
    let table: Option<Table> = gates.parse().ok();
    table.and_then(|table| table.get("gate").and_then(Value::as_array).map(Vec::len)).unwrap_or(0)
}
