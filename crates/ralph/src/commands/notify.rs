//! `ralph doctor --notify`: try the notifications, before a night depends on them.

use ralph_engine::{
    notify::{Kind, News, Ways},
    store::project::Project,
};
use serde_json::json;

use crate::{
    exit::{Done, Failure},
    ui,
};

/// Sends one wherever `[notify]` in ralph.toml and `RALPH_NOTIFY` say, and to these places.
pub(super) fn run(project: &Project, places: &[String], json: bool) -> Done {
    let (ways, mut untold) = Ways::of_run(project, places).map_err(Failure::usage)?;
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
    if json {
        ui::json(&json!({ "asked": count, "untold": untold }));
    } else {
        for sentence in &untold {
            ui::warning(sentence);
        }
    }
    if !untold.is_empty() {
        return Err(Failure::reported());
    }
    if !json {
        let sent = if count == 1 { "one notification".to_owned() } else { format!("{count} notifications") };
        ui::line(format!("Sent {sent}."));
    }
    Ok(())
}
