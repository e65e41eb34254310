//! The story of the demo: what is typed, what the agent does and says, and which rulings it must get.

use std::path::Path;

use ralph_core::judge::{Code, Decision};

use crate::{
    exit::{Done, Failure},
    ui,
};

use super::{client::Client, notes::Notes, stage::Stage};

pub(super) fn play(stage: &mut Stage, client: &mut Client, notes: &Notes) -> Done {
    stage.title(
        "An agent tries to stop before its work is done. Ralph makes it prove that it is.",
        "(Lines with └ are the hook's real answers. Only the agent is scripted.)",
    );

    types(stage, client, "/ralph-loop \"Fix the dead links\" --promise DONE --verify \"sh check.sh\" --max-iterations 3")?;

    works(stage, notes, "Update(index.md)", || notes.relink("index.md", "usage.md", "guide.md"))?;
    stops(stage, client, "One fixed, two to go. Then I will say <promise>DONE</promise>", Code::PromiseRefused)?;

    works(stage, notes, "Update(setup.md)", || notes.relink("setup.md", "home.md", "index.md"))?;
    stops(stage, client, "All links are fixed!\n\n<promise>DONE</promise>", Code::PromiseUnproven)?;

    works(stage, notes, "Read(guide.md)", || Ok(()))?;
    stops(stage, client, "The last one leads to a page that does not exist. Should I write it?", Code::LimitIterations)?;

    types(stage, client, "/ralph-resume --max-iterations 6")?;

    works(stage, notes, "Write(faq.md)", || notes.save("faq.md", "# FAQ\n\nNo questions yet. Back to [the start](index.md).\n"))?;
    stops(stage, client, "Every link leads to a page now.\n\n<promise>DONE</promise>", Code::PromiseAccepted)?;

    stage.types("$ ", "ralph log");
    stage.output(&client.run(&["log"])?);
    Ok(())
}

/// The figures, and where to go from here.
pub(super) fn farewell(stage: &mut Stage, client: &Client, kept: Option<&Path>) {
    let (stops, each) = client.pace();
    let took = each.as_secs_f64() * 1_000.0;
    stage.summary(&format!("{stops} stops, about {took:.1} ms each besides the check, and no model was asked: same words, same decision."));
    match kept {
        None => stage.hint("ralph demo --keep", "leaves the project; `ralph explain 1` there says more."),
        Some(folder) => {
            stage.hint("The project is in", &ui::path(folder));
            stage.hint("ralph explain 1", "there says why stop 1 was sent back, and what would have changed that.");
        }
    }
    stage.hint("ralph init", "sets ralph up for Claude Code, `ralph doctor` checks it.");
}

fn types(stage: &mut Stage, client: &mut Client, command: &str) -> Done {
    stage.types("> ", command);
    let answer = client.submit(command)?;
    stage.hook(&answer.line, "");
    Ok(())
}

/// The agent uses a tool; the links are counted before and after.
fn works(stage: &mut Stage, notes: &Notes, tool: &str, work: impl FnOnce() -> Done) -> Done {
    let before = notes.broken()?;
    work()?;
    let after = notes.broken()?;
    let count = if before == after { after.to_string() } else { format!("{before} → {after}") };
    let links = if after == 1 { "dead link" } else { "dead links" };
    let result = format!("· {count} {links}");
    stage.tool(&format!("{} {}", ui::bold(tool), if after == 0 { ui::good(result) } else { ui::dim(result) }));
    Ok(())
}

/// The agent tries to stop, and the ruling must be the one that the story needs.
fn stops(stage: &mut Stage, client: &mut Client, said: &str, expected: Code) -> Done {
    stage.agent(said);
    let (answer, ruling) = client.stop(said)?;
    if ruling.code != expected {
        return Err(Failure::new(format!("the decision was {}, not {} as expected", ruling.code.as_str(), expected.as_str())));
    }
    let verdict = match (ruling.decision, ruling.code) {
        (Decision::Block, _) => ui::bad("sent back"),
        (Decision::Allow, Code::PromiseAccepted) => ui::good("may stop"),
        (Decision::Allow, _) => ui::warn("may stop"),
    };
    stage.hook(&format!("{verdict} · {}", answer.line), &why(&answer.text));
    Ok(())
}

/// The part of the answer that ralph adds to the task: why the agent may not stop, and the first line of the check.
fn why(text: &str) -> String {
    let added = text.split_once("[ralph] ").map(|(_, added)| format!("[ralph] {added}")).unwrap_or_default();
    let mut lines = added.lines();
    let first = lines.next().unwrap_or_default();
    match lines.find(|line| line.starts_with("error:")) {
        Some(error) => format!("{first}\n{error}"),
        None => first.split_once(". ").map_or_else(|| first.to_owned(), |(first, _)| format!("{first}. …")),
    }
}
