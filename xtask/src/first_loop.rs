//! One loop from start to end through the real binary, with an agent that only says its lines: what a newcomer sees first.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{Result, Verdict, cargo};

/// Play one loop against the built hook, with no agent and no account
#[derive(clap::Args)]
pub(crate) struct Args {}

/// What the agent says each time it tries to stop.
const LINES: [&str; 4] = [
    "I looked around: hello.txt is not there yet.",
    "I will say <promise>DONE</promise> when the file is written.",
    "I wrote hello.txt. You asked for `<promise>DONE</promise>`, but I have not read it back yet.",
    "hello.txt is there and says hello.\n\n<promise>DONE</promise>",
];

pub(crate) fn run(_args: &Args) -> Result<Verdict> {
    let ralph = cargo::release_binary(cargo::Flags::Ours)?;
    let folder = tempfile::tempdir()?;
    let project = folder.path();
    fs::create_dir(project.join(".claude"))?;

    println!("A project in a temporary folder, and a loop in it:\n");
    command(
        &ralph,
        project,
        &["start", "Write hello.txt with the word hello in it", "--completion-promise", "DONE", "--max-iterations", "10"],
    )?;
    println!("\nThe agent works, and each time that it tries to stop, the hook is asked:\n");
    let mut complete = false;
    for (n, said) in LINES.iter().enumerate() {
        println!("  agent  {}", said.replace('\n', "\n         "));
        let answer = stop(&ralph, project, n, said)?;
        complete = answer.get("decision").is_none();
        println!("  ralph  {}\n", in_words(&answer));
    }
    println!("What happened, and why the last stop was ruled as it was:\n");
    command(&ralph, project, &["log"])?;
    println!();
    command(&ralph, project, &["explain"])?;
    Ok(Verdict::when(complete))
}

/// Runs a command as a person would, and shows it.
fn command(ralph: &Path, project: &Path, args: &[&str]) -> Result<()> {
    let quoted: Vec<String> = args.iter().map(|a| if a.contains(' ') { format!("\"{a}\"") } else { (*a).to_owned() }).collect();
    println!("$ ralph {}", quoted.join(" "));
    let status = Command::new(ralph).args(args).current_dir(project).env_remove("CLAUDE_CODE_SESSION_ID").status()?;
    if status.success() { Ok(()) } else { Err(format!("ralph {} failed", quoted.join(" ")).into()) }
}

/// One stop, as Claude Code reports it.
fn stop(ralph: &Path, project: &Path, n: usize, said: &str) -> Result<Value> {
    let event = json!({
        "hook_event_name": "Stop", "session_id": "first-loop", "cwd": project, "prompt_id": "1", "stop_hook_active": n > 0, "last_assistant_message": said,
    });
    let mut hook = Command::new(ralph);
    hook.args(["hook", "claude"]).current_dir(project).env_clear().env("CLAUDE_PROJECT_DIR", project);
    let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(event.to_string().as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.stdout.is_empty() { Ok(json!({})) } else { Ok(serde_json::from_slice(&output.stdout)?) }
}

fn in_words(answer: &Value) -> String {
    let text = |field: &str| answer[field].as_str().unwrap_or_default().replace('\n', "\n         ");
    match answer["decision"].as_str() {
        Some("block") => format!("sent back: {}\n         {}", text("reason"), text("systemMessage")),
        _ => format!("may stop. {}", text("systemMessage")),
    }
}
