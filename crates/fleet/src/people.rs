//! What people want: they write tasks and wishes, never a job's state.

use ralph_engine::sys::clock;

use crate::{
    board::{Board, Card},
    change,
    problem::{Problem, Result},
    records::{Review, State, VERSION, WANT, WANT_ALL, Want, Wish, key},
    signing::Pen,
    store::Store,
    tasks,
};

/// A job by its id, or by the id of its item.
pub fn find<'b>(board: &'b Board, name: &str) -> Result<(&'b str, &'b Card)> {
    let by_id = board.cards().find(|(id, _)| *id == name);
    let found = by_id.or_else(|| board.cards().find(|(_, card)| card.spec.item.as_deref() == Some(name)));
    found.ok_or_else(|| Problem::new(format!("there is no job {name}: `ralph fleet` lists them")))
}

fn change_want(store: &dyn Store, id: Option<&str>, change: impl Fn(&mut Want)) -> Result<()> {
    let key = id.map_or_else(|| WANT_ALL.to_owned(), |id| key(WANT, id));
    let changed = change::shared::<Want>(store, &key, |mut want| {
        want.version = VERSION;
        change(&mut want);
        Some(want)
    })?;
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
pub fn wish(store: &dyn Store, id: Option<&str>, wish: Wish) -> Result<()> {
    change_want(store, id, |want| want.wish = wish)
}

/// Has a worker end after its iteration; `None`: all that are there now.
pub fn drain(store: &dyn Store, worker: Option<&str>) -> Result<()> {
    change_want(store, None, |want| match worker {
        Some(name) => want.drained.push(name.to_owned()),
        None => want.drains += 1,
    })
}

pub fn steer(store: &dyn Store, id: &str, note: &str) -> Result<()> {
    change_want(store, Some(id), |want| want.notes.push(note.trim().to_owned()))
}

/// Lets another worker take it: its own does not answer, or a person has seen to what was wrong.
pub fn release(store: &dyn Store, id: &str, card: &Card) -> Result<()> {
    if !card.job.is_held() && card.job.state != State::NeedsPerson {
        return Err(Problem::new(format!("{id} is with nobody: nothing to release")));
    }
    change_want(store, Some(id), |want| want.release = Some(card.job.token))
}

/// Says what becomes of proven work: it lands, or goes back with these words.
pub fn review(store: &dyn Store, id: &str, card: &Card, back: Option<&str>) -> Result<()> {
    let (State::Proven, Some(commit)) = (card.job.state, &card.job.commit) else {
        return Err(Problem::new(format!("{id} is not proven yet: nothing to look at")));
    };
    let review = Review { commit: commit.clone(), back: back.map(str::to_owned) };
    change_want(store, Some(id), move |want| want.review = Some(review.clone()))
}
