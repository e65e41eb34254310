//! `ralph init`: the checks of a project, and have Claude Code call ralph. In a terminal it is a guide, in a script it only registers.

mod agents;
mod checks;
mod guide;
mod plugin;
mod registration;
mod rules;

use std::path::PathBuf;

use clap::ValueHint;
use ralph_core::judge;
use ralph_engine::{
    hosts::claude::registration::DENY_EDITS,
    setup::{
        Plan,
        init::{self, Wish},
        places::{Places, Scope},
        record::Records,
        survey::Survey,
    },
    store::project::Project,
    sys::env,
};

use crate::{
    commands::{
        count,
        setup::{self, Scopes},
    },
    exit::{Done, Failure},
    term::ask,
    ui,
};

/// Set up ralph: the checks of this project, and Claude Code
///
/// In a terminal it shows each step and asks: it finds how the project is tested and writes `ralph.toml` with these checks, which you thereby trust; it
/// lets the agent run exactly these without asking, in .claude/settings.local.json; it registers the hook with Claude Code and adds /ralph-loop, /ralph, /cancel-ralph, /ralph-status, /ralph-pause and /ralph-resume; it has git
/// ignore ralph's own files; and it checks the result.
/// Enter means yes, n skips a step, q ends, ? explains. An existing `ralph.toml` is never changed, settings keep their formatting, order and comments, a second time
/// changes nothing, and `ralph uninstall` takes the registration back. Without a terminal it only registers, unless --yes is given.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph init                   this project's checks, and ralph for you in all projects (~/.claude)
  ralph init --yes             the same without a question, for scripts
  ralph init --dry-run         only show what would change
  ralph init --local           register for you, in this project (.claude/settings.local.json)
  ralph init --project         register for everyone who works in this project (.claude/settings.json)
  ralph init --block-cap 0     also lift the client's cap on stops that are sent back
  ralph init --deny-edits      also keep agents from editing ralph's own files (.ralph)
  ralph init --agent codex     register with another agent: codex, gemini, copilot, qwen, droid, grok, opencode, or all
  ralph init --plugin          write the plugin instead, for `claude plugin marketplace add`

The cap: Claude Code ends a turn, as if it had succeeded, when 8 stops in a row were sent back without any tool call between them.
Ralph pauses the loop one iteration before that. With the cap lifted (0), a loop pauses after 25 such iterations (--idle-iterations of `ralph start`).")]
pub(crate) struct Args {
    #[command(flatten)]
    scopes: Scopes,
    /// Answer every question with yes, but for the one about commands that the repository brings (`ralph trust`)
    #[arg(long, short)]
    yes: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Set the client's cap on stops in a row that are sent back without a tool call; 0 lifts it
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    block_cap: Option<u64>,
    /// Also keep agents from editing ralph's own files: a deny rule for .ralph/** in the client's permissions
    #[arg(long)]
    deny_edits: bool,
    /// Register with other agents instead of Claude Code; `all`: with those that are found on this machine
    #[arg(long, value_name = "NAME", value_parser = agents::names(), conflicts_with_all = ["user", "project", "local", "block_cap", "deny_edits", "plugin"])]
    agent: Vec<String>,
    /// Register nothing, and write the plugin with this program inside into a folder, for machines where `ralph` is not on the PATH of Claude Code
    ///
    /// Without DIR, into ralph's own state folder. Run it again after an update of ralph; it never replaces files that it did not write.
    #[arg(long, value_name = "DIR", num_args = 0..=1, value_hint = ValueHint::DirPath,
          conflicts_with_all = ["user", "project", "local", "dry_run", "block_cap", "deny_edits"])]
    #[expect(clippy::option_option, reason = "not given, given, given with a folder")]
    plugin: Option<Option<PathBuf>>,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    if let Some(folder) = &args.plugin {
        let usual = || env::state_dir().map(|state| state.join("plugin"));
        let folder = folder.clone().or_else(usual).ok_or_else(|| Failure::usage("there is no home folder: say where, --plugin DIR"))?;
        return plugin::write(&folder);
    }
    if !args.agent.is_empty() {
        return agents::run(project, args);
    }
    if args.dry_run {
        dry_run(project, args)
    } else if args.yes || ask::is_possible() {
        guide::run(project, args)
    } else {
        register_only(project, args)
    }
}

impl Args {
    fn scope(&self) -> Scope {
        self.scopes.one().unwrap_or(Scope::User)
    }

    /// The changes that register ralph, and the settings that they start from.
    fn plan(&self, project: &Project, records: &Records) -> Result<(Survey, Plan), Failure> {
        let scope = self.scope();
        let places = Places::of(project);
        let survey = Survey::take(&places);
        let wish = Wish { scope, command: init::own_command(scope), block_cap: self.block_cap, deny_edits: self.deny_edits };
        let plan = init::plan(&places, &survey, records, &wish)?;
        Ok((survey, plan))
    }
}

fn dry_run(project: &Project, args: &Args) -> Done {
    let _alone = Records::alone();
    let records = Records::of_user();
    let (survey, plan) = args.plan(project, &records)?;
    let draft = checks::show_draft(project, &survey);
    let has_draft = draft.is_some();
    let rules = rules::dry_run(project, &records, draft)?;
    let changed = setup::carry_out(&rules, &records, true)? | setup::carry_out(&plan, &records, true)?;
    ui::line(if changed || has_draft { "Nothing was changed: this was a dry run." } else { "Nothing would change." });
    Ok(())
}

/// Without a terminal, for scripts: no question, and nothing but the registration.
fn register_only(project: &Project, args: &Args) -> Done {
    let _alone = Records::alone();
    let records = Records::of_user();
    let (survey, plan) = args.plan(project, &records)?;
    let changed = setup::carry_out(&plan, &records, false)?;
    registration::tell(&plan, changed, args.scope(), project);
    offer_the_cap(&survey, args);
    offer_the_rule(&survey, args);
    checks::offer(project, &survey);
    ui::line(format!("Next: {}", ui::bold("ralph doctor")));
    ui::paragraph(format!("Then, in Claude Code: {}", ui::bold("/ralph-loop TASK --promise DONE")), 6);
    Ok(())
}

/// So are its permissions. Ralph does not depend on the rule: what an agent changes there is noticed.
fn offer_the_rule(survey: &Survey, args: &Args) {
    if args.deny_edits || survey.lists(&["permissions", "deny"]).iter().any(|rule| rule == DENY_EDITS) {
        return;
    }
    ui::paragraph(ui::dim("An agent can edit ralph's own files, which ralph notices: `ralph init --deny-edits` keeps it from trying."), 0);
}

/// The cap is the user's: it is explained, and changed only when asked for.
fn offer_the_cap(survey: &Survey, args: &Args) {
    if args.block_cap.is_some() || judge::block_cap(survey.block_cap().as_deref()).is_none() {
        return;
    }
    ui::paragraph(ui::dim("Claude Code ends a turn after 8 idle stops that were sent back: `ralph init --block-cap 0` lifts that cap."), 0);
}
