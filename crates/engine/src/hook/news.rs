//! Notifications about a loop in the client's own session.
//!
//! The client waits for the end of a hook's process, not only for its answer, so a webhook that takes its time would hold the session. A process of ralph's own
//! sends them: both clients leave it alone when the hook has ended, in print mode, too (measured). It lives for as long as notifications may take.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use ralph_core::{
    judge::{Code, Reason, Ruling},
    money, text,
    text::time,
};

use crate::{
    hosts,
    notify::{self, Kind, Ways},
    run::events::End,
    store::{
        hook_log::{self, Entry},
        project::Project,
        trouble,
    },
    sys::process,
    view,
};

/// The first argument of that process, after `hook`.
const SENDS: &str = "send-news";

/// A longer line is cut anyway.
const LONGEST_LINE: usize = 2_000;

/// Something worth a notification.
pub(super) struct News {
    pub(super) kind: Kind,
    /// In a word.
    pub(super) how: &'static str,
    /// In a sentence.
    pub(super) line: String,
}

impl News {
    pub(super) fn of(end: End, line: impl Into<String>) -> Option<Self> {
        Some(News { kind: end.news()?, how: end.as_str(), line: line.into() })
    }

    /// What a ruling on a stop is worth. `was_parked`: the person heard of that when it began.
    pub(super) fn of_ruling(ruling: &Ruling, line: Option<&str>, was_parked: bool) -> Option<Self> {
        let end = match (End::of(ruling)?, ruling.code) {
            (End::Parked, _) if was_parked => return None,
            // The person did it, and knows.
            (_, Code::HostInterrupted | Code::PersonStop) => return None,
            (_, Code::FeaturesPerSession) => End::Enough,
            (end, _) => end,
        };
        News::of(end, line.unwrap_or(ruling.code.as_str()))
    }
}

/// News of a loop that is to be sent.
pub(super) struct NewsDue {
    project: Project,
    loop_id: String,
    news: News,
}

impl NewsDue {
    pub(super) fn of(project: Project, loop_id: String, news: News) -> Self {
        NewsDue { project, loop_id, news }
    }

    /// Starts the process that sends them, if the person wants any.
    pub(super) fn send(&self) {
        let (ways, left_out) = Ways::of_session(&self.project);
        if ways.is_empty() && left_out.is_empty() {
            return;
        }
        let News { kind, how, line } = &self.news;
        let words = [OsStr::new("hook"), SENDS.as_ref(), self.project.root().as_os_str(), self.loop_id.as_ref(), kind.as_str().as_ref()];
        let line = text::opening(line, LONGEST_LINE);
        if let Err(e) = process::leave_self(&[&words[..], &[OsStr::new(how)]].concat(), line.as_bytes()) {
            unsent(&self.project, &self.loop_id, &[format!("the process that sends them cannot be started: {e}")]);
        }
    }
}

/// The process that sends them: `ralph hook send-news ROOT LOOP KIND HOW`, with the sentence as its input. `false`: these arguments, after `hook`, are others.
pub fn send(args: &[OsString], line: impl FnOnce() -> Option<String>) -> bool {
    let is_it = args.first().is_some_and(|first| first == SENDS);
    if let ([_, root, loop_id, kind, how], true) = (args, is_it)
        && !hosts::is_in_the_agents_shell()
        && let Some(line) = line()
    {
        tell([root, loop_id, kind, how], &line);
    }
    is_it
}

fn tell([root, loop_id, kind, how]: [&OsString; 4], line: &str) {
    let (Some(loop_id), Some(how)) = (loop_id.to_str(), how.to_str()) else { return };
    let Some(kind) = Kind::ALL.into_iter().find(|known| *kind == known.as_str()) else { return };
    let project = Project::at(Path::new(root));
    let Some(view) = view::live(&project).into_iter().chain(view::ended(&project)).find(|view| view.id == loop_id) else { return };
    let (ways, mut failures) = Ways::of_session(&project);
    let news = notify::News {
        loop_id,
        name: &view.name,
        folder: project.root(),
        kind,
        how,
        line,
        iteration: view.iteration,
        rounds: view.iteration,
        usd_micros: view.spent_usd.map_or(0, money::of_dollars),
        until: view.waits.as_ref().and_then(|waits| time::parse(waits.until.as_deref()?)),
        next: None,
    };
    failures.extend(news.tell(&ways));
    if !failures.is_empty() {
        unsent(&project, loop_id, &failures);
    }
}

/// A notification that failed leaves a line in the log.
fn unsent(project: &Project, loop_id: &str, failures: &[String]) {
    let cause = failures.join("; ");
    let code = Reason::NEWS_UNSENT;
    let entry = Entry { trigger: "news", decision: "allow", code: code.as_str(), loop_id, error: Some(&cause), ..Entry::default() };
    hook_log::write(project, project.is_in_use(), &entry);
    trouble::note(project, "news", code, &cause);
}
