//! Tasks: the items of a list, or what a person adds by hand.

use std::collections::BTreeMap;

use ralph_core::gate::list::{Item, List};

use crate::{
    job_rules::wrong_dependencies,
    problem::{Problem, Result},
    records::{SPEC, Spec, VERSION, key},
    settings::word,
    signing::Pen,
    store::{Put, Store},
};

/// The open items of a list as tasks; an item that is done already is landed for those that wait for it, so nobody waits.
pub fn of_list(bytes: &[u8]) -> Result<Vec<Spec>> {
    let list = List::parse(bytes).map_err(|problem| Problem::new(problem.to_string()))?;
    let mut ids: BTreeMap<&str, String> = BTreeMap::new();
    // Of all items, so that one has the same id when others are done.
    for item in &list.items {
        let mut id = word(&item.id);
        while ids.values().any(|taken| *taken == id) {
            id.push_str("-2");
        }
        ids.insert(&item.id, id);
    }
    // What is done already holds nobody up.
    let open = |id: &str| {
        let item = &list.items[list.find(id)?];
        list.open().any(|open| open.id == item.id).then(|| ids.get(item.id.as_str()).cloned()).flatten()
    };
    let specs: Vec<Spec> = list.open().zip(0..).map(|(item, number)| of_item(item, number, &ids, &open)).collect();
    match wrong_dependencies(&specs).first() {
        Some(wrong) => Err(Problem::new(wrong.clone())),
        None => Ok(specs),
    }
}

/// A list may say 1.5. What is equal here has the order of the list, which is in order of priority itself.
#[expect(clippy::cast_possible_truncation, reason = "a priority beyond that is as late as can be")]
fn rank(priority: &str) -> Option<i64> {
    priority.trim().parse::<f64>().ok().filter(|rank| rank.is_finite()).map(|rank| rank.floor() as i64)
}

fn of_item(item: &Item, number: u64, ids: &BTreeMap<&str, String>, open: &dyn Fn(&str) -> Option<String>) -> Spec {
    let mut task = item.title.trim().to_owned();
    for step in &item.steps {
        task.push_str("\n- ");
        task.push_str(step.trim());
    }
    Spec {
        version: VERSION,
        id: ids[item.id.as_str()].clone(),
        task: if task.trim().is_empty() { item.id.clone() } else { task },
        item: Some(item.id.clone()),
        number,
        priority: item.priority.as_deref().and_then(rank),
        depends_on: item.depends_on.iter().filter_map(|on| open(on)).collect(),
        optional: item.optional,
        pool: item.pool.as_deref().map(word),
        agent: item.agent.clone(),
        model: item.model.clone(),
        verify: item.verify.clone(),
        ..Spec::default()
    }
}

/// A task that a person gave in words; its id comes from its first words.
pub fn of_words(task: &str, number: u64) -> Spec {
    let words: Vec<&str> = task.split_whitespace().take(5).collect();
    Spec { version: VERSION, id: word(&words.join(" ")), task: task.trim().to_owned(), number, ..Spec::default() }
}

/// Writes the tasks that are new; those that are there stay as they are. The result says how many were.
pub fn add(store: &dyn Store, pen: &Pen, specs: &[Spec]) -> Result<usize> {
    let mut added = 0;
    for spec in specs {
        let key = key(SPEC, &spec.id);
        if let Put::Stored(_) = store.put_if(&key, &pen.bytes(&key, spec)?, 0)? {
            added += 1;
        }
    }
    Ok(added)
}

/// Writes one task under a free id, and gives that back.
pub fn add_one(store: &dyn Store, pen: &Pen, mut spec: Spec) -> Result<String> {
    let first = spec.id.clone();
    for n in 2.. {
        let key = key(SPEC, &spec.id);
        if let Put::Stored(_) = store.put_if(&key, &pen.bytes(&key, &spec)?, 0)? {
            break;
        }
        spec.id = format!("{first}-{n}");
    }
    Ok(spec.id)
}
