//! `ralph doctor --notify`, also called `ralph notify`: try the notifications, before a night depends on them.

use ralph_engine::{
    notify::{Kind, News, Ways},
    store::project::Project,
};
use serde_json::json;

use crate::{
    exit::{Done, Failure},
    ui,
};

/// Send a test notification; now `ralph doctor --notify`
///
/// It goes wherever `[notify]` in ralph.toml and `RALPH_NOTIFY` say, and to what is named here. Exit code 1 if it could not be sent somewhere.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph notify
  ralph notify desktop terminal
  ralph notify https://example.org/hook 'cmd:echo \"$RALPH_TITLE\" >> ~/news'")]
pub(crate) struct Args {
    /// desktop, terminal, an address that gets JSON by POST, or cmd:LINE for the shell
    #[arg(value_name = "WHERE")]
    pub(super) ways: Vec<String>,
    /// For programs: JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let (ways, mut untold) = Ways::of_run(project, &args.ways).map_err(Failure::usage)?;
    if ways.is_empty() && untold.is_empty() {
        return Err(Failure::usage(
            "no notification is set up: name one here, in RALPH_NOTIFY, or under [notify] in ralph.toml (desktop, terminal, an address, cmd:LINE)",
        ));
    }
    let news = News {
        loop_id: "test",
        name: "main",
        folder: project.root(),
        kind: Kind::Ended,
        how: "test",
        line: "Ralph: this is a test. News of a run looks like this.",
        iteration: 1,
        rounds: 1,
        usd_micros: 0,
        until: None,
        next: Some("ralph run"),
    };
    untold.extend(news.tell(&ways));
    let count = usize::from(ways.desktop) + usize::from(ways.terminal) + ways.commands.len() + ways.webhooks.len();
    if args.json {
        ui::json(&json!({ "asked": count, "untold": untold }));
    } else {
        for sentence in &untold {
            ui::warning(sentence);
        }
    }
    if !untold.is_empty() {
        return Err(Failure::reported());
    }
    if !args.json {
        let sent = if count == 1 { "one notification".to_owned() } else { format!("{count} notifications") };
        ui::line(format!("Sent {sent}."));
    }
    Ok(())
}
