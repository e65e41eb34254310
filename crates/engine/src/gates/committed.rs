//! The `committed` gate: nothing in the working tree is uncommitted, but for ralph's own files and the lists that it marks.

use std::path::Path;

use ralph_core::{
    gate::{Check, Finding, Gate, Verdict},
    text::clean,
};

use crate::{
    gates::Context,
    git::{Problem, Repository, Uncommitted},
    store::project::Project,
};

/// More names do not help.
const SHOWN: usize = 10;

/// The files that ralph and its hooks write, from the project's root; a folder ends with `/`.
const OWN: [&str; 3] = [".ralph/", ".claude/ralph-loop", ".claude/data/ralph-loops/"];

pub(super) fn measure(gate: &Gate, gates: &[Gate], ctx: &Context<'_>) -> Finding {
    match look(ctx) {
        Ok(Some((below, left))) => finding(gate, left.without(|path| is_own(path, &below, gates))),
        Ok(None) => gate.finding(Verdict::Unknown, "there is no git repository here, so nothing can be committed"),
        Err(problem) => gate.finding(Verdict::Unknown, format!("what is committed could not be checked: {problem}")),
    }
}

fn look(ctx: &Context<'_>) -> Result<Option<(String, Uncommitted)>, Problem> {
    let Some(repository) = Repository::of(&Project::at(ctx.tree), ctx.time_left())? else { return Ok(None) };
    let below = repository.below.to_string_lossy().into_owned();
    Ok(Some((below, repository.uncommitted()?)))
}

/// Whether a file, named from the top of the working tree, is ralph's own or a list.
fn is_own(path: &str, below: &str, gates: &[Gate]) -> bool {
    let Ok(path) = Path::new(path).strip_prefix(below) else { return false };
    let is_list = |gate: &Gate| matches!(&gate.check, Check::Features(list) if Path::new(&list.path) == path);
    let path_text = path.to_string_lossy();
    OWN.iter().any(|own| path_text.starts_with(own)) || gates.iter().any(is_list)
}

fn finding(gate: &Gate, left: Uncommitted) -> Finding {
    let names = |files: &[String]| {
        let more = files.len().saturating_sub(SHOWN);
        let mut names: Vec<String> = files.iter().take(SHOWN).map(|file| clean(file)).collect();
        if more > 0 {
            names.push(format!("and {more} more"));
        }
        names.join(", ")
    };
    let fails = |what: String, detail: &str| gate.finding(Verdict::Fail, what).with_detail(detail.to_owned());
    match left {
        Uncommitted { files, .. } if !files.is_empty() => {
            let count = if files.len() == 1 { "1 file is".to_owned() } else { format!("{} files are", files.len()) };
            fails(format!("{count} not committed: {}", names(&files)), "Commit what belongs to the work, and remove what does not.")
        }
        Uncommitted { hidden, .. } if !hidden.is_empty() => fails(
            format!("git was told not to look at {}", names(&hidden)),
            "Undo that with `git update-index --no-assume-unchanged --no-skip-worktree FILE`, and commit what has changed.",
        ),
        Uncommitted { begun: Some(what), .. } => {
            fails(format!("{what} was begun and is not finished"), "Finish it, so that it is committed.")
        }
        Uncommitted { unclear, .. } if !unclear.is_empty() => gate.finding(
            Verdict::Unknown,
            format!("could not check {}: only a filter of the repository could, and ralph does not run it", names(&unclear)),
        ),
        _ => gate.finding(Verdict::Pass, "everything is committed"),
    }
}
