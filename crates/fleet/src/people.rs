//! What people want: they write tasks and wishes, never a job's state.

use ralph_engine::sys::clock;
use serde::Deserialize;

use crate::{
    board::{Board, Card},
    change,
    problem::{Problem, Result},
    records::{Review, State, VERSION, WANT, WANT_ALL, Want, Wish, key},
    signing::Pen,
    store::Store,
    tasks,
};

/// What a person can ask for, on the command line and on the page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "act", deny_unknown_fields)]
pub enum Act {
    Add {
        text: String,
    },
    Steer {
        job: String,
        text: String,
    },
    /// Without a job: all.
    Pause {
        job: Option<String>,
    },
    Resume {
        job: Option<String>,
    },
    /// Without a worker: all that are there now.
    Drain {
        worker: Option<String>,
    },
    Cancel {
        job: String,
    },
    Release {
        job: String,
    },
    Land {
        job: String,
    },
    Back {
        job: String,
        text: String,
    },
}

impl Act {
    /// Does it, and says what comes of it.
    pub fn run(&self, store: &dyn Store, pen: &Pen, board: &Board) -> Result<String> {
        let id = |name: &str| find(board, name).map(|(id, _)| id.to_owned());
        let any = |name: Option<&String>| name.map(|name| id(name)).transpose();
        Ok(match self {
            Act::Add { text } => format!("{} is added; `ralph fleet run` works on it", add(store, pen, text)?),
            Act::Steer { job, text } => {
                steer(store, pen, &id(job)?, text)?;
                format!("{job} hears it before its next iteration")
            }
            Act::Pause { job } => {
                wish(store, pen, any(job.as_ref())?.as_deref(), Wish::Pause)?;
                "paused: what runs finishes its iteration; `ralph fleet resume` goes on".to_owned()
            }
            Act::Resume { job } => {
                wish(store, pen, any(job.as_ref())?.as_deref(), Wish::Run)?;
                "goes on".to_owned()
            }
            Act::Drain { worker } => {
                drain(store, pen, worker.as_deref())?;
                format!(
                    "{} after the iteration",
                    worker.as_ref().map_or_else(|| "all workers end".to_owned(), |name| format!("{name} ends"))
                )
            }
            Act::Cancel { job } => {
                wish(store, pen, Some(&id(job)?), Wish::Cancel)?;
                format!("{job} is cancelled")
            }
            Act::Release { job } => {
                let (id, card) = find(board, job)?;
                release(store, pen, id, card)?;
                format!("{job} can be taken again")
            }
            Act::Land { job } => {
                let (id, card) = find(board, job)?;
                review(store, pen, id, card, None)?;
                format!("{job} lands next")
            }
            Act::Back { job, text } => {
                let (id, card) = find(board, job)?;
                review(store, pen, id, card, Some(text))?;
                format!("{job} goes back to its agent")
            }
        })
    }
}

/// A job by its id, or by the id of its item.
pub fn find<'b>(board: &'b Board, name: &str) -> Result<(&'b str, &'b Card)> {
    let by_id = board.cards().find(|(id, _)| *id == name);
    let found = by_id.or_else(|| board.cards().find(|(_, card)| card.spec.item.as_deref() == Some(name)));
    found.ok_or_else(|| Problem::new(format!("there is no job {name}: `ralph fleet` lists them")))
}

fn change_want(store: &dyn Store, pen: &Pen, id: Option<&str>, change: impl Fn(&mut Want)) -> Result<()> {
    let key = id.map_or_else(|| WANT_ALL.to_owned(), |id| key(WANT, id));
    let mut unsigned = None;
    let changed = change::shared::<Want>(store, &key, |mut want| {
        want.version = VERSION;
        change(&mut want);
        pen.signed(&key, &want).map_err(|problem| unsigned = Some(problem)).ok()
    })?;
    if let Some(problem) = unsigned {
        return Err(problem);
    }
    match changed {
        change::Changed::Done(..) => Ok(()),
        change::Changed::Refused(why) => Err(Problem::new(why)),
    }
}

pub fn add(store: &dyn Store, pen: &Pen, task: &str) -> Result<String> {
    if task.trim().is_empty() {
        return Err(Problem::new("a task needs words"));
    }
    tasks::add_one(store, pen, tasks::of_words(task, u64::try_from(clock::now()).unwrap_or(0)))
}

/// Sets the wish about one job, or about all.
pub fn wish(store: &dyn Store, pen: &Pen, id: Option<&str>, wish: Wish) -> Result<()> {
    change_want(store, pen, id, |want| want.wish = wish)
}

/// Has a worker end after its iteration; `None`: all that are there now.
pub fn drain(store: &dyn Store, pen: &Pen, worker: Option<&str>) -> Result<()> {
    change_want(store, pen, None, |want| match worker {
        Some(name) => want.drained.push(name.to_owned()),
        None => want.drains += 1,
    })
}

pub fn steer(store: &dyn Store, pen: &Pen, id: &str, note: &str) -> Result<()> {
    if note.trim().is_empty() {
        return Err(Problem::new("a note needs words"));
    }
    change_want(store, pen, Some(id), |want| want.notes.push(note.trim().to_owned()))
}

/// Lets another worker take it: its own does not answer, or a person has seen to what was wrong.
pub fn release(store: &dyn Store, pen: &Pen, id: &str, card: &Card) -> Result<()> {
    if !card.job.is_held() && card.job.state != State::NeedsPerson {
        return Err(Problem::new(format!("{id} is not held by a worker, so there is nothing to release")));
    }
    change_want(store, pen, Some(id), |want| want.release = Some(card.job.token))
}

/// Says what becomes of proven work: it lands, or goes back with these words.
pub fn review(store: &dyn Store, pen: &Pen, id: &str, card: &Card, back: Option<&str>) -> Result<()> {
    let (State::Proven, Some(commit)) = (card.job.state, &card.job.commit) else {
        return Err(Problem::new(format!("{id} is not proven yet: nothing to look at")));
    };
    let review = Review { commit: commit.clone(), back: back.map(str::to_owned) };
    change_want(store, pen, Some(id), move |want| want.review = Some(review.clone()))
}
