//! The wishes of people while a run works: signals, and changes of the loop from elsewhere.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    run::events::{Observer, RunEvent},
    store::{
        Error,
        loops::{self, LoopOnDisk},
        project::Project,
    },
    sys::signals::Told,
};

/// How often the loop's file is looked at while a session works.
const LOOK: Duration = Duration::from_millis(500);

/// A person's wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    Nothing,
    /// The end after this iteration.
    Finish,
    /// The end now.
    End,
}

/// Listens to people.
#[derive(Clone)]
pub(super) struct Control {
    signals: Told,
    project: Project,
    found: LoopOnDisk,
    observer: Arc<dyn Observer>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    looked: Option<Instant>,
    /// The last look did not find the loop.
    is_missing: bool,
    /// The last two did not.
    is_gone: bool,
    /// The observer knows that the run ends after this iteration.
    is_finishing: bool,
    /// The loop was paused at the last look, and the observer knows it.
    is_paused: bool,
    /// No more iterations than this one were asked for.
    is_last: bool,
}

impl Control {
    pub(super) fn new(signals: Told, project: &Project, found: &LoopOnDisk, observer: &Arc<dyn Observer>) -> Self {
        let (project, found, observer) = (project.clone(), found.clone(), Arc::clone(observer));
        Control { signals, project, found, observer, seen: Arc::default() }
    }

    /// The wish that signals express.
    pub(super) fn asked(&self) -> Asked {
        match self.signals.interrupts() {
            _ if self.signals.ended() => Asked::End,
            0 => Asked::Nothing,
            1 => Asked::Finish,
            _ => Asked::End,
        }
    }

    /// An iteration begins; `is_last`: no more than this one were asked for.
    pub(super) fn begins(&self, is_last: bool) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).is_last = is_last;
    }

    /// Whether the session, or what is measured after it, should go on. Asked again and again; the observer is told once that this iteration is the last.
    pub(super) fn is_work_wanted(&self) -> bool {
        let (asked, mut paused) = (self.asked(), None);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = asked == Asked::Finish && !seen.is_finishing;
        seen.is_finishing |= is_news;
        if seen.looked.is_none_or(|at| at.elapsed() >= LOOK) {
            seen.looked = Some(Instant::now());
            let found = loops::reread(&self.project, self.found.clone());
            // Editors and git take a file away for a moment: it is gone when two looks in a row miss it.
            let was_missing = std::mem::replace(&mut seen.is_missing, self.is_missing(&found));
            seen.is_gone = was_missing && seen.is_missing;
            if let Ok(Some(LoopOnDisk { parsed: Ok(file), .. })) = found {
                paused = (file.active == seen.is_paused).then_some(!file.active);
                seen.is_paused = !file.active;
            }
        }
        let (is_gone, is_last) = (seen.is_gone, seen.is_last || asked > Asked::Nothing);
        drop(seen);
        if is_news {
            self.observer.on_event(&RunEvent::Finishing);
        }
        if let Some(paused) = paused {
            self.observer.on_event(&RunEvent::Paused { paused, is_last });
        }
        asked < Asked::End && !is_gone
    }

    /// Whether the loop was cancelled, or its file deleted. The list of a feature folder is the agent's, who may put it away for a while; that folder's loop is
    /// gone when its status says so.
    fn is_missing(&self, found: &Result<Option<LoopOnDisk>, Error>) -> bool {
        match found {
            Ok(None) if self.found.is_folder() => loops::of_folder(&self.project).is_some(),
            Ok(None) => true,
            Ok(Some(found)) => found.parsed.is_ok() && found.id() != self.found.id(),
            Err(_) => false,
        }
    }
}
