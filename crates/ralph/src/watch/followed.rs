//! One loop that is looked at: its journal, folded as it grows, and its agent, listened to.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use ralph_core::{
    history::History,
    journal::{Event, Record},
    judge::{Code, Decision, Evidence, Next, Ruling},
    messages::{self, Reader, gate_messages},
    text::{
        opening,
        time::{self, Millis},
    },
};
use ralph_engine::{
    store::project::Project,
    sys::follow_file::{Follower, Seen},
    view::{
        Carrier, View,
        activity::{Doing, Source, Used},
    },
};

use crate::{
    agent_names::Who,
    journal_lines::{of_event, when},
    run_wording::of_claim,
};

/// How much of a journal is read before keys are looked at again.
const PIECE: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_millis(40);

/// A longer line of a journal is passed over.
const LONGEST_LINE: usize = 16 << 20;

/// How many lines of the log are kept; `ralph log` has all of them.
pub(super) const LOG: usize = 5_000;
const RULINGS: usize = 100;
const WORDS: usize = 400;

pub(super) struct Followed {
    pub(super) project: Project,
    pub(super) id: String,
    journal: Follower,
    /// Names the agents of its stops.
    who: Who,
    pub(super) history: History,
    pub(super) rulings: VecDeque<Ruled>,
    pub(super) log: VecDeque<Logged>,
    /// How many older lines of the log are not kept.
    pub(super) forgotten: u64,
    /// There is more to read at once.
    pub(super) is_behind: bool,
    pub(super) doing: Option<Doing>,
}

pub(super) struct Ruled {
    pub(super) at: Millis,
    pub(super) stop: u64,
    pub(super) code: Code,
    pub(super) sent_back: bool,
    pub(super) words: String,
}

pub(super) struct Logged {
    pub(super) at: String,
    pub(super) words: String,
    pub(super) is_trouble: bool,
}

impl Followed {
    pub(super) fn new(project: &Project, view: &View) -> Self {
        Followed {
            project: project.clone(),
            id: view.id.clone(),
            journal: Follower::new(&view.journal, LONGEST_LINE),
            who: Who::default(),
            history: History::default(),
            rulings: VecDeque::new(),
            log: VecDeque::new(),
            forgotten: 0,
            is_behind: true,
            doing: None,
        }
    }

    pub(super) fn is_of(&self, view: &View) -> bool {
        self.id == view.id && self.project.root() == view.project
    }

    /// Reads what the journal has more than at the last look, for some moments at most.
    pub(super) fn read_on(&mut self) {
        let begun = Instant::now();
        loop {
            let mut lines = Vec::new();
            let look = self.journal.look(PIECE, |seen| {
                if let Seen::Line(line) = seen {
                    lines.push(line.to_vec());
                }
            });
            if look.anew {
                self.begin_anew();
            }
            for line in &lines {
                self.take(line);
            }
            self.is_behind = look.more;
            if !look.more || begun.elapsed() > PATIENCE {
                return;
            }
        }
    }

    /// Another journal has taken its place, or none.
    fn begin_anew(&mut self) {
        (self.history, self.who, self.forgotten) = (History::default(), Who::default(), 0);
        self.rulings.clear();
        self.log.clear();
    }

    fn take(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let Ok(record) = serde_json::from_slice::<Record>(line) else {
            self.history.unreadable += 1;
            let words = "(a line that cannot be read)".to_owned();
            return self.log(Logged { at: String::new(), words, is_trouble: true });
        };
        let who = self.who.take(&record);
        if let Event::Stop { evidence, ruling, .. } = &record.event {
            let at = time::parse(&record.at).or(self.history.last).unwrap_or(0);
            let sent_back = ruling.decision == Decision::Block;
            let by = who.as_deref().map(|who| format!("{who}: ")).unwrap_or_default();
            let words = opening(&format!("{by}{}", in_words(evidence, ruling)), WORDS);
            push(&mut self.rulings, Ruled { at, stop: record.state.stops, code: ruling.code, sent_back, words }, RULINGS);
        }
        let is_trouble = matches!(record.event, Event::Broke { .. } | Event::Error { .. } | Event::Corrupt { .. });
        self.log(Logged { at: when(&record.at), words: opening(&of_event(&record, who.as_deref()), WORDS), is_trouble });
        self.history.take(record);
    }

    fn log(&mut self, line: Logged) {
        self.forgotten += u64::from(push(&mut self.log, line, LOG));
    }

    /// Listens to the agent that works on it, if it can be found. `seek`: looking for a transcript is worth its while now.
    pub(super) fn listen(&mut self, view: &View, seek: bool) {
        if self.is_behind {
            return;
        }
        let working = self.history.working.as_ref().filter(|_| view.carrier == Carrier::Runner);
        let source = match (working, view.carrier) {
            (Some(working), _) => Source::of_log(&self.project, &working.agent, &working.log),
            (None, Carrier::Session) if seek || self.doing.is_none() => view.session.as_deref().and_then(Source::of_session),
            _ => None,
        };
        match (&mut self.doing, source) {
            (Some(doing), Some(source)) => doing.turn_to(source),
            (None, Some(source)) => self.doing = Some(Doing::new(source)),
            (_, None) => {}
        }
        if let Some(doing) = &mut self.doing {
            doing.look();
        }
    }

    /// Usage of the session that a run has under way: the journal has it only once the session is over.
    pub(super) fn under_way(&self, view: &View) -> Option<Used> {
        let working = self.history.working.as_ref().filter(|_| view.carrier == Carrier::Runner)?;
        self.doing.as_ref().filter(|doing| doing.path().ends_with(&working.log))?.used()
    }

    /// The files that grow while it is worked on.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        [Some(self.journal.path()), self.doing.as_ref().map(Doing::path)].into_iter().flatten().map(Path::to_owned)
    }
}

/// `true`: another one had to go.
fn push<T>(kept: &mut VecDeque<T>, one: T, most: usize) -> bool {
    let is_full = kept.len() >= most;
    if is_full {
        kept.pop_front();
    }
    kept.push_back(one);
    is_full
}

fn in_words(e: &Evidence, ruling: &Ruling) -> String {
    if let Some(line) = messages::ending(e, ruling, Reader::Terminal) {
        return line;
    }
    let open = gate_messages::in_short(e);
    let why = if open.is_empty() { of_claim(ruling.code).unwrap_or_default() } else { open };
    let what = match ruling.next {
        Next::GoesOn { iteration } => format!("sent back to iteration {iteration}"),
        Next::Parks => "parked".to_owned(),
        Next::Pauses => "paused".to_owned(),
        Next::Stays => "may stop, and nothing changes".to_owned(),
        Next::Ends { ending } => ending.as_str().to_owned(),
    };
    if why.is_empty() { what } else { format!("{what}: {why}") }
}
