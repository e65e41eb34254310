//! A look before the first session: would sessions without a person get anywhere? A tool that is denied at night is a lost night.

use std::{path::Path, time::Duration};

use ralph_core::{
    gate::Gate,
    text::{opening, parse_tolerant},
};
use serde_json::Value;

use crate::{
    gates::declared,
    git::Repository,
    hosts::{
        Headless, Version, acp,
        claude::{program::said_version, registration::CommandLine},
    },
    run::session::Agent,
    setup::{
        permissions::{Fate, Permissions},
        places::Places,
        survey::Survey,
    },
    store::{loops, project::Project},
    sys::{env, files, process},
};

/// A larger file of settings is not looked into.
const MOST_SETTINGS: usize = 4 << 20;

/// How long git may take to say that it is there.
const GIT: Duration = Duration::from_secs(30);

/// How much a remark matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// It may save an iteration.
    Hint,
    /// The run will not get far.
    Warning,
    /// It makes no sense to begin.
    Refusal,
}

/// A sentence that says what to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    pub weight: Weight,
    pub text: String,
}

impl Remark {
    fn new(weight: Weight, text: impl Into<String>) -> Self {
        Remark { weight, text: text.into() }
    }
}

/// Looks at the client and at what it would let its sessions do here. `permission_mode` is what the runner will ask for; `None`: what the settings say.
/// `verify` are the commands of a loop that does not exist yet, and `task` is what it works on.
pub fn look(project: &Project, permission_mode: Option<&str>, task: &str, verify: &[String], agent: &Agent) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = cut_task(task, agent).into_iter().collect();
    remarks.extend(at_its_settings(project, permission_mode, verify, agent));
    remarks
}

fn at_its_settings(project: &Project, permission_mode: Option<&str>, verify: &[String], agent: &Agent) -> Vec<Remark> {
    let path = match agent {
        Agent::Known(host, path) if host.is_claude() => path,
        Agent::Known(host, _) => return of_another(project, host.headless.as_ref(), host.title, permission_mode),
        Agent::Acp(agent, _) => return of_another(project, Some(&agent.headless), agent.title, permission_mode),
        Agent::AcpCommand(_) => return of_another(project, Some(&acp::COMMAND.headless), acp::COMMAND.title, permission_mode),
        // Of another program nothing is known.
        Agent::Command(_) => return Vec::new(),
    };
    let mut remarks: Vec<Remark> = version(path).into_iter().collect();
    let survey = Survey::take(&Places::of(project));
    let (permissions, ignored_rules) = Permissions::unattended(&survey, project.root(), permission_mode);
    remarks.extend(impossible(permissions.mode.as_deref()));
    remarks.extend(unguarded(permissions.mode.as_deref(), env::is_container()));
    if let Some((mode, file)) = &permissions.ignored_mode {
        let text = format!(
            "permission mode \"{mode}\" in {} does not count, because the client takes it from your own settings only: `ralph run --permission-mode {mode}`, if that is what you want",
            file.display()
        );
        remarks.push(Remark::new(Weight::Warning, text));
    }
    if ignored_rules > 0 {
        let text = format!(
            "{ignored_rules} of the rules under permissions.allow do not count: they are the project's, and Claude Code has not been told to trust this folder. Start `claude` here once and answer its question"
        );
        remarks.push(Remark::new(Weight::Warning, text));
    }
    if !survey.trusts(project.root()) {
        remarks.extend(run_unasked(project, &survey));
    }
    if remarks.iter().all(|remark| remark.weight < Weight::Refusal) {
        let rules = rules_of_gates(project, verify, &permissions);
        remarks.extend(denied(&permissions, &rules).or_else(|| unproven_by_itself(&rules)));
    }
    remarks
}

/// What an agent other than Claude Code may do in its sessions.
fn of_another(project: &Project, headless: Option<&Headless>, title: &str, mode: Option<&str>) -> Vec<Remark> {
    let Some(headless) = headless else { return Vec::new() };
    let mut remarks = of_its_mode(headless, title, mode);
    remarks.extend(loaded_unasked(project, headless.program, title));
    remarks
}

fn of_its_mode(headless: &Headless, title: &str, mode: Option<&str>) -> Vec<Remark> {
    let known = || headless.modes.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    match mode {
        Some(mode) if headless.mode(Some(mode)).is_none() => {
            let text = format!("{title} has no permission mode \"{mode}\"; it has {}", known());
            vec![Remark::new(Weight::Refusal, text)]
        }
        None if headless.needs_mode => {
            let text = format!(
                "without a permission mode {title} may change nothing, because there is no one to ask: `ralph run --permission-mode acceptEdits`"
            );
            vec![Remark::new(Weight::Warning, text)]
        }
        mode => unguarded(mode, env::is_container()).into_iter().collect(),
    }
}

/// Ralph adds to a task what an iteration has to know: the findings of the last one, notes, how it ends.
const ADDED: usize = 16_000;

/// An agent that reads only a part of a long prompt would never see the rest of the task.
fn cut_task(task: &str, agent: &Agent) -> Option<Remark> {
    let headless = match agent {
        Agent::Known(host, _) => host.headless.as_ref()?,
        Agent::Acp(agent, _) => &agent.headless,
        Agent::Command(_) | Agent::AcpCommand(_) => return None,
    };
    let most = headless.longest?.saturating_sub(ADDED);
    (task.len() > most).then(|| {
        let text = format!(
            "the task has {} bytes, and {} would read only a part of it: it takes {most} with what ralph adds. Put the long part into a file of the project, and name that file in the task",
            task.len(),
            agent.title()
        );
        Remark::new(Weight::Refusal, text)
    })
}

/// Sending a session back within its iteration needs its own stop hook. `inner`: how many are wanted.
pub fn inner_iterations(project: &Project, inner: u64, agent: &Agent) -> Option<Remark> {
    if !agent.is_claude() {
        return (inner > 0).then(|| {
            Remark::new(
                Weight::Warning,
                format!("--inner {inner} has no effect: only Claude Code's sessions are sent back within an iteration"),
            )
        });
    }
    let is_registered = || Survey::take(&Places::of(project)).ours().iter().any(|ours| ours.hook.event == "Stop");
    (inner > 0 && !is_registered()).then(|| {
        let text = format!(
            "--inner {inner} has no effect here, because ralph's stop hook is not registered with Claude Code: `ralph init` does that"
        );
        Remark::new(Weight::Warning, text)
    })
}

/// Looks at the folder that the agent would work in. `keeps`: its files are to be kept after each iteration.
pub fn ground(project: &Project, keeps: bool) -> Option<Remark> {
    if let Some(place) = project.no_project() {
        let text = format!("refusing to run unattended in {place}: cd into a project, or pass -C");
        return Some(Remark::new(Weight::Refusal, text));
    }
    let is_bare = || matches!(Repository::of(project, GIT), Ok(None));
    (keeps && is_bare()).then(|| {
        let text = "this is no git repository, so the files are not kept after each iteration: `ralph diff` and `ralph rollback` will have nothing. `git init` changes that";
        Remark::new(Weight::Hint, text)
    })
}

/// The permission mode to ask for. One that must not count, because the project's settings name it, is overruled: older clients take it (2.1.197).
pub fn mode_to_ask_for(project: &Project, asked: Option<String>) -> Option<String> {
    let ignored = || Permissions::of_settings(&Survey::take(&Places::of(project))).ignored_mode;
    asked.or_else(|| ignored().map(|_| "default".to_owned()))
}

/// Programs that the project names and that a session without a person runs, though no person has trusted the folder.
fn run_unasked(project: &Project, survey: &Survey) -> Option<Remark> {
    let hooks = survey.hooks();
    let foreign = hooks.iter().filter(|hook| !hook.hook.line.is_ralphs() && !survey.is_own(hook));
    let mut files: Vec<String> = foreign.map(|hook| hook.path.display().to_string()).collect();
    files.extend(Some(project.root().join(".mcp.json")).filter(|file| file.exists()).map(|file| file.display().to_string()));
    files.dedup();
    (!files.is_empty()).then(|| {
        let text = format!(
            "the programs that {} names are run without a question, and Claude Code has not been told to trust this folder. Look at them; start `claude` here once and answer its question",
            files.join(" and ")
        );
        Remark::new(Weight::Warning, text)
    })
}

/// Settings of a project in which other agents find programs to run, by the name of the agent's program.
const WITH_PROGRAMS: [(&str, &[&str]); 5] = [
    ("gemini", &[".gemini/settings.json"]),
    ("qwen", &[".qwen/settings.json"]),
    ("droid", &[".factory/settings.json", ".factory/mcp.json"]),
    ("opencode", &["opencode.json", "opencode.jsonc"]),
    ("kilo", &["opencode.json", "opencode.jsonc"]),
];

/// The same for another agent: in a session without a person it asks nobody whether the folder is trusted, or is told that it is.
fn loaded_unasked(project: &Project, program: &str, title: &str) -> Option<Remark> {
    let (_, files) = WITH_PROGRAMS.iter().find(|(name, _)| *name == program)?;
    let named: Vec<&str> = files.iter().copied().filter(|file| names_programs(&project.root().join(file))).collect();
    (!named.is_empty()).then(|| {
        let text = format!(
            "the programs that {} names (hooks, MCP servers) are run without a question when {title} works here: look at them",
            named.join(" and ")
        );
        Remark::new(Weight::Warning, text)
    })
}

/// Whether a file of settings names a program that is not ralph. One that cannot be read may.
fn names_programs(file: &Path) -> bool {
    fn is_named(value: &Value) -> bool {
        match value {
            Value::Array(all) => all.iter().any(is_named),
            Value::Object(fields) => {
                let here = fields.get("command").is_some_and(|_| !CommandLine::of(value).is_some_and(|line| line.is_ralphs()));
                here || fields.values().any(is_named)
            }
            _ => false,
        }
    }
    match files::read(file, MOST_SETTINGS) {
        Ok(bytes) => parse_tolerant::<Value>(&bytes).map_or(true, |value| is_named(&value)),
        Err(e) => !files::is_missing(&e),
    }
}

fn version(path: &Path) -> Option<Remark> {
    let said = said_version(path);
    let shown = path.display();
    match said.as_deref().and_then(Version::said_in) {
        Some(version) if version < Version::MESSAGE_SINCE => {
            Some(Remark::new(Weight::Refusal, format!("Claude Code {version} ({shown}) is too old: `claude update`")))
        }
        Some(_) => None,
        None => {
            let said = said.map_or_else(|| "did not answer".to_owned(), |said| format!("said {:?}", opening(&said, 100)));
            Some(Remark::new(
                Weight::Refusal,
                format!("`{shown} --version` {said}: reinstall Claude Code, or name another program with --agent-cmd"),
            ))
        }
    }
}

/// Modes in which no session gets anywhere.
fn impossible(mode: Option<&str>) -> Option<Remark> {
    let text = match mode? {
        "plan" => "permission mode \"plan\" lets the agent change nothing: `ralph run --permission-mode acceptEdits`",
        "bypassPermissions" if process::is_root() && !env::is_sandbox() => {
            "Claude Code does not start as root in permission mode \"bypassPermissions\": run it as another user, or, in a container that you can lose, with IS_SANDBOX=1 in the environment"
        }
        _ => return None,
    };
    Some(Remark::new(Weight::Refusal, text))
}

/// A mode in which nothing holds the agent back, where nothing around it does either.
fn unguarded(mode: Option<&str>, is_container: bool) -> Option<Remark> {
    (mode == Some("bypassPermissions") && !is_container).then(|| {
        let text = "permission mode \"bypassPermissions\" outside a container: the agent may run any command and change or delete any file that you can, and no one is asked. \
                    `--permission-mode acceptEdits` with rules under permissions.allow is safer; so is a container";
        Remark::new(Weight::Warning, text)
    })
}

/// The tools that every session will miss: in a session without a person, whatever would be asked for is denied.
fn denied(permissions: &Permissions, rules: &[String]) -> Option<Remark> {
    let mode = permissions
        .mode
        .as_deref()
        .map_or_else(|| "the client's own permission mode".to_owned(), |mode| format!("permission mode \"{mode}\""));
    let missing: Vec<&str> = [Fate::Asked, Fate::Denied].into_iter().flat_map(|fate| permissions.of_fate(fate)).collect();
    let edits = missing.iter().any(|tool| matches!(*tool, "Edit" | "Write"));
    if missing.is_empty() || (!edits && permissions.has_command_rules()) {
        return None;
    }
    let for_edits = if edits { "`ralph run --permission-mode acceptEdits` lets it change files; " } else { "" };
    // Where commands are asked for, the client still runs some that it knows to be harmless.
    let is_asked = |tool: &str| permissions.of_fate(Fate::Asked).into_iter().any(|asked| asked == tool);
    let named: Vec<&str> = missing.iter().map(|tool| if *tool == "Bash" && is_asked(tool) { "most Bash commands" } else { tool }).collect();
    let rules = if rules.is_empty() { "rules".to_owned() } else { rules.join(", ") };
    let text = format!(
        "in {mode} {} will be denied, because there is no one to ask: {for_edits}{rules} under permissions.allow in .claude/settings.local.json would let it run commands",
        named.join(", ")
    );
    Some(Remark::new(Weight::Warning, text))
}

/// The rules that would allow the commands of the gates, where none does, as they are written in settings.
fn rules_of_gates(project: &Project, verify: &[String], permissions: &Permissions) -> Vec<String> {
    let lines: Vec<String> = gate_lines(project).into_iter().chain(verify.iter().cloned()).collect();
    permissions.missing_rules(&lines).into_iter().take(5).map(|rule| format!("\"{rule}\"")).collect()
}

/// Gate commands that the agent may not run to check its own work. Ralph measures them all the same.
fn unproven_by_itself(rules: &[String]) -> Option<Remark> {
    (!rules.is_empty()).then(|| {
        let text = format!(
            "the agent cannot run the gates by itself before it stops; these rules under permissions.allow in .claude/settings.local.json would let it: {}",
            rules.join(", ")
        );
        Remark::new(Weight::Hint, text)
    })
}

/// The lines of the gates that a loop here has to pass.
fn gate_lines(project: &Project) -> Vec<String> {
    let loops: Vec<_> = loops::all(project).into_iter().filter_map(|found| found.parsed.ok()).collect();
    let gates: Vec<Gate> = match &loops[..] {
        [] => declared::of_project(project).gates,
        all => all.iter().flat_map(|file| declared::of_loop(project, file).gates).collect(),
    };
    gates.iter().filter_map(Gate::line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository that one does not know can name programs that an agent runs by itself.
    #[test]
    fn t1_programs_that_a_project_names_for_another_agent_are_told() {
        let scratch = crate::sys::temp_dir::Scratch::create("ralph-preflight-", false).unwrap();
        let project = Project::at(scratch.path());
        let told = |program: &str| loaded_unasked(&project, program, "It").is_some();
        assert!(!told("gemini") && !told("opencode"));
        std::fs::create_dir(scratch.path().join(".gemini")).unwrap();
        let settings = |text: &str| files::write_whole(&scratch.path().join(".gemini/settings.json"), text.as_bytes()).unwrap();
        for (text, is_told) in [
            (r#"{"theme": "dark"}"#, false),
            (r#"{"hooks": {"AfterAgent": [{"hooks": [{"type": "command", "command": "ralph hook gemini"}]}]}}"#, false),
            (r#"{"hooks": {"BeforeAgent": [{"hooks": [{"type": "command", "command": "./evil.sh"}]}]}}"#, true),
            (r#"{"mcpServers": {"x": {"command": "node", "args": ["evil.js"]}}}"#, true),
            ("{", true),
        ] {
            settings(text);
            assert_eq!(told("gemini"), is_told, "{text}");
        }
        assert!(!told("qwen"));
        files::write_whole(&scratch.path().join("opencode.json"), br#"{"mcp": {"x": {"type": "local", "command": ["node", "evil.js"]}}}"#)
            .unwrap();
        assert!(told("opencode"));
    }

    #[test]
    fn u4_no_permissions_and_no_container_is_worth_a_warning() {
        let told = |mode, is_container| unguarded(mode, is_container).map(|remark| (remark.weight, remark.text.contains("any command")));
        assert_eq!(told(Some("bypassPermissions"), false), Some((Weight::Warning, true)));
        assert_eq!(told(Some("bypassPermissions"), true), None);
        assert_eq!(told(Some("acceptEdits"), false), None);
        assert_eq!(told(None, false), None);
    }
}
