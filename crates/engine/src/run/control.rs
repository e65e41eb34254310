//! What people want of a run while it works: signals, and what was done to the loop from elsewhere.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    run::agent::Wish,
    store::{
        loops::{self, LoopOnDisk},
        project::Project,
    },
    sys::signals::Told,
};

/// How often the loop's file is looked at while a session works.
const LOOK: Duration = Duration::from_millis(500);

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    Nothing,
    /// The end after this round.
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
    /// The last look did not find the loop.
    missing: Arc<AtomicBool>,
    /// The loop was taken away.
    gone: Arc<AtomicBool>,
    looked: Arc<Mutex<Option<Instant>>>,
}

impl Control {
    pub(super) fn new(signals: Told, project: &Project, found: &LoopOnDisk) -> Self {
        Control {
            signals,
            project: project.clone(),
            found: found.clone(),
            missing: Arc::default(),
            gone: Arc::default(),
            looked: Arc::default(),
        }
    }

    /// What was asked for by signals.
    pub(super) fn asked(&self) -> Asked {
        match self.signals.interrupts() {
            _ if self.signals.ended() => Asked::End,
            0 => Asked::Nothing,
            1 => Asked::Finish,
            _ => Asked::End,
        }
    }

    /// Whether the loop was cancelled, or its file deleted; looked at now and then.
    pub(super) fn is_gone(&self) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_none_or(|at| at.elapsed() >= LOOK) {
            *looked = Some(Instant::now());
            // Editors and git take a file away for a moment: it is gone when two looks say so.
            let was_missing = self.missing.swap(self.is_missing(), Ordering::Relaxed);
            self.gone.store(was_missing && self.missing.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.gone.load(Ordering::Relaxed)
    }

    /// The list of a feature folder is the agent's, who may put it away for a while; that folder's loop is gone when its status says so.
    fn is_missing(&self) -> bool {
        match loops::reread(&self.project, self.found.clone()) {
            Ok(None) if self.found.is_folder() => loops::of_folder(&self.project).is_some(),
            Ok(None) => true,
            Ok(Some(found)) => found.parsed.is_ok() && found.id() != self.found.id(),
            Err(_) => false,
        }
    }

    /// For a session that works.
    pub(super) fn wish(&self) -> Wish {
        if self.asked() == Asked::End || self.is_gone() { Wish::End } else { Wish::GoOn }
    }
}
