//! Steering: a person's notes for the agent. They are in the loop's state until a prompt has told them.

use ralph_core::journal::{Event, Note, Record};
use serde::Serialize;

use crate::{
    ops::{Asker, Refusal, choose, open},
    store::project::Project,
    sys::clock,
};

#[derive(Debug)]
pub struct Left {
    /// The loop.
    pub id: String,
    pub note: u64,
    /// The loop is paused: the note is told after `ralph resume`.
    pub paused: bool,
    /// How many wait now.
    pub waiting: usize,
}

/// Leaves a note for the agent of a loop that has not ended.
pub fn leave(project: &Project, name: Option<&str>, text: &str, asker: &Asker) -> Result<Left, Refusal> {
    let text =
        Note::kept(text).ok_or_else(|| Refusal::Because("there is nothing in the note: say what the agent should know".to_owned()))?;
    let length = text.chars().count();
    if length > Note::MAX_CHARS {
        return Err(Refusal::Because(format!(
            "the note has {length} characters, and {} is the most: put it into a file, and name the file in the note",
            Note::MAX_CHARS
        )));
    }
    let (locked, mut l) = open(project, choose(project, name, asker.session.as_deref())?)?;
    if l.state.notes.len() >= Note::MAX_WAITING {
        return Err(Refusal::Because(format!(
            "{} notes wait already, and more are no steering: `ralph steer --list` shows them, `ralph steer --clear` takes them back",
            Note::MAX_WAITING
        )));
    }
    l.state.notes_left = l.state.notes_left.saturating_add(1);
    let id = l.state.notes_left;
    l.state.notes.push(Note { id, text: text.clone(), told_in: None });
    let event = Event::Steered { by: asker.actor(), id, note: text };
    locked.record(&mut l, clock::now(), asker.session.as_deref(), event)?;
    let waiting = l.state.notes.iter().filter(|note| note.told_in.is_none()).count();
    Ok(Left { paused: !l.file.active, note: id, waiting, id: l.id })
}

/// Takes back every note that has not been told, and returns their numbers with the loop's id.
pub fn clear(project: &Project, name: Option<&str>, asker: &Asker) -> Result<(String, Vec<u64>), Refusal> {
    let (locked, mut l) = open(project, choose(project, name, asker.session.as_deref())?)?;
    let numbers: Vec<u64> = l.state.notes.iter().filter(|note| note.told_in.is_none()).map(|note| note.id).collect();
    for id in &numbers {
        l.state.notes.retain(|note| note.id != *id);
        // No note is ever empty: this is how the journal says that one was taken back.
        let event = Event::Steered { by: asker.actor(), id: *id, note: String::new() };
        locked.record(&mut l, clock::now(), asker.session.as_deref(), event)?;
    }
    Ok((l.id, numbers))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    Waiting,
    Told,
    TakenBack,
    /// The loop was started again before it was told.
    Dropped,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Story {
    pub id: u64,
    pub text: String,
    pub left_at: String,
    pub fate: Fate,
    /// The iteration that got it.
    pub told_in: Option<u64>,
}

impl Story {
    /// All notes of a journal, in the order in which they were left.
    pub fn all(journal: &[Record]) -> Vec<Story> {
        let mut all: Vec<Story> = Vec::new();
        for record in journal {
            match &record.event {
                Event::Steered { id, note, .. } if note.is_empty() => {
                    all.iter_mut().rev().find(|story| story.id == *id).into_iter().for_each(|story| story.fate = Fate::TakenBack);
                }
                Event::Steered { id, note, .. } => {
                    all.push(Story { id: *id, text: note.clone(), left_at: record.at.clone(), fate: Fate::Waiting, told_in: None });
                }
                _ => {}
            }
            // A loop that is started again numbers its notes from 1 again: the last one of a number is meant.
            for told in record.state.notes.iter().filter(|note| note.told_in.is_some()) {
                if let Some(story) = all.iter_mut().rev().find(|story| story.id == told.id) {
                    (story.fate, story.told_in) = (Fate::Told, told.told_in);
                }
            }
        }
        let kept = journal.last().map(|record| record.state.notes.as_slice()).unwrap_or_default();
        for story in all.iter_mut().filter(|story| story.fate == Fate::Waiting && !kept.iter().any(|note| note.id == story.id)) {
            story.fate = Fate::Dropped;
        }
        all
    }
}
