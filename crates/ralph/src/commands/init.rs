//! `ralph init`: have Claude Code call ralph.

use ralph_core::judge::brakes;
use ralph_engine::{
    hosts::claude::registration::{BLOCK_CAP, DENY_EDITS},
    setup::{
        init::{self, Wish},
        places::{Places, Scope},
        record::Records,
        survey::Survey,
    },
    store::project::Project,
};

use crate::{
    commands::{
        count,
        setup::{self, Scopes},
    },
    exit::Done,
    ui,
};

/// Register the hook with Claude Code, and add the slash commands
///
/// Changes one settings file, keeping its formatting, order and comments, and adds /ralph-loop, /ralph, /cancel-ralph, /ralph-status,
/// /ralph-pause and /ralph-resume to the commands beside it. Shows what it changes; a second time changes nothing; `ralph uninstall` undoes it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph init                   for you, in all projects (~/.claude)
  ralph init --local           for you, in this project (.claude/settings.local.json)
  ralph init --project         for everyone who works in this project (.claude/settings.json)
  ralph init --dry-run         only show what would change
  ralph init --block-cap 0     also lift the client's cap on stops that are sent back
  ralph init --deny-edits      also keep agents from editing ralph's own files (.ralph)

The cap: Claude Code ends a turn, as if it had succeeded, when 8 stops in a row were sent back without any tool call between them.
Ralph pauses the loop one iteration before that. With the cap lifted (0), a loop pauses after 25 such iterations (--idle-rounds of `ralph start`).")]
pub(crate) struct Args {
    #[command(flatten)]
    scopes: Scopes,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Set the client's cap on stops in a row that are sent back without a tool call; 0 lifts it
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    block_cap: Option<u64>,
    /// Also keep agents from editing ralph's own files: a deny rule for .ralph/** in the client's permissions
    #[arg(long)]
    deny_edits: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let _alone = Records::alone();
    let scope = args.scopes.one().unwrap_or(Scope::User);
    let places = Places::of(project);
    let records = Records::of_user();
    let survey = Survey::take(&places);
    let wish = Wish { scope, command: init::own_command(scope), block_cap: args.block_cap, deny_edits: args.deny_edits };
    let plan = init::plan(&places, &survey, &records, &wish)?;
    let changed = setup::carry_out(&plan, &records, args.dry_run)?;
    if args.dry_run {
        ui::line(if changed { "Nothing was changed: this was a dry run." } else { "Nothing would change." });
        return Ok(());
    }
    let done = match (plan.registers, plan.unread, changed) {
        (false, _, _) => "The commands are there",
        (true, true, _) => "Written, but not yet read by the client,",
        (true, false, true) => "Registered",
        (true, false, false) => "Already registered",
    };
    ui::paragraph(format!("{} {}", if plan.unread { ui::warn(done) } else { ui::good(done) }, of_scope(scope, project)), 0);
    offer_the_cap(&survey, args);
    offer_the_rule(&survey, args);
    let next =
        format!("Next: {}, then {} in Claude Code.", ui::bold("ralph doctor"), ui::bold("/ralph-loop TASK --completion-promise DONE"));
    ui::paragraph(next, 0);
    Ok(())
}

fn of_scope(scope: Scope, project: &Project) -> String {
    match scope {
        Scope::User => "for you, in all projects. Sessions that run take it up within seconds.".to_owned(),
        Scope::Project => {
            format!("for everyone who works in {}: commit .claude/settings.json and .claude/commands.", ui::path(project.root()))
        }
        Scope::Local => format!("for you, in {}.", ui::path(project.root())),
    }
}

/// So are its permissions. Ralph does not depend on the rule: what an agent changes there is noticed.
fn offer_the_rule(survey: &Survey, args: &Args) {
    if args.deny_edits || survey.lists(&["permissions", "deny"]).iter().any(|rule| rule == DENY_EDITS) {
        return;
    }
    let why = "An agent that may edit files can edit ralph's own, in .ralph; ralph notices and goes by its own copy.";
    ui::paragraph(ui::dim(format!("{why} `ralph init --deny-edits` keeps it from trying (a deny rule, {DENY_EDITS}).")), 0);
}

/// The cap is the user's: it is explained, and changed only when asked for.
fn offer_the_cap(survey: &Survey, args: &Args) {
    if args.block_cap.is_some() || brakes::block_cap(survey.block_cap().as_deref()).is_none() {
        return;
    }
    let why = "Claude Code ends a turn after 8 stops in a row that were sent back without any tool call; ralph pauses the loop one iteration before.";
    ui::paragraph(ui::dim(format!("{why} `ralph init --block-cap 0` lifts that cap ({BLOCK_CAP}=0 in the same settings file).")), 0);
}
