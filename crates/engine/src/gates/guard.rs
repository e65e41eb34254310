//! The guard's eyes: what the work looks like now, and what it looked like when the loop began, kept in the user's state folder.

mod scripts;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use ralph_core::{
    gate::{
        Check, Finding, Gate, GuardPolicy, Kind, Origin, Verdict,
        guard::{Asked, Facts, Item, Source},
        list as feature_list,
    },
    text::opening,
};

use crate::{
    gates::{
        Context, baseline,
        declared::Declared,
        features, forge,
        tree::{self, Tree},
    },
    store::{
        Error, journal,
        loops::{self, LoopOnDisk},
        project::Project,
    },
    sys::{digest, files},
};

/// The longest time that looking for suspicions may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// In a larger file tests are not looked for.
const MAX_SOURCE: usize = 1 << 20;

/// Nor in more files than this.
const MOST_SOURCES: usize = 20_000;

/// With more to compare than this nothing is compared.
const MAX_FACTS: usize = 16 << 20;

/// So many files are kept of the beginnings of loops; of those that live, all.
const KEPT: usize = 200;

const ACCEPT: &str = "look at what changed (`ralph diff`), then `ralph gate --accept` says that it is right as it is";

/// The tests of so many trees are remembered.
const TREES: usize = 8;

/// Notes what the work looks like, once for each loop. Returns whether that is known now.
pub(crate) fn note_start(project: &Project, loop_id: &str, declared: &Declared) -> bool {
    if project.state_file(&path(loop_id)).is_some_and(|path| path.exists()) {
        return true;
    }
    // With the guard off, too: an ending after which tests are missing is never told as a plain one.
    write(project, loop_id, &look(project, declared, None, None)).is_ok()
}

/// Another loop begins that is called like a former one: what that one began with is no measure for it.
pub(crate) fn forget(project: &Project, loop_id: &str) {
    project.delete(&path(loop_id));
    baseline::forget(project, loop_id);
    forge::forget_subject(project, loop_id);
}

/// A person says that it is right as it is: from now on this is what it is compared with.
pub fn accept(project: &Project, loop_id: &str, declared: &Declared) -> Result<(), Error> {
    baseline::accept_counts(project, loop_id);
    write(project, loop_id, &look(project, declared, None, None))
}

/// A person has read a file of settings and trusts it: the gates that it declares now are what later ones are compared with. Everything else stays noted
/// as it was, the scripts that its gates run above all: no person has been shown those.
pub(crate) fn accept_settings(project: &Project, loop_id: &str, declared: &Declared, file: &str) -> Result<(), Error> {
    let Some(mut before) = read(project, loop_id) else { return Ok(()) };
    let is_own = |gate: &&Gate| gate.origin == Origin::File(file.to_owned());
    let own: Vec<Gate> = declared.gates.iter().filter(is_own).cloned().collect();
    before.gates.retain(|gate| gate.file.as_deref() != Some(file));
    before.gates.extend(own.iter().map(Asked::of));
    for (path, digest) in scripts::of(project, &own).digests.into_iter().filter(|(_, digest)| !digest.is_empty()) {
        if path == file {
            before.files.insert(path, digest);
        } else {
            before.files.entry(path).or_insert(digest);
        }
    }
    before.guard = before.guard.stricter(declared.guard);
    write(project, loop_id, &before)
}

/// The gates of a file of settings that are gone or ask for less than when the loop began, one sentence each.
pub(crate) fn weaker_settings(project: &Project, loop_id: &str, declared: &Declared, file: &str) -> Vec<String> {
    let Some(mut before) = read(project, loop_id) else { return Vec::new() };
    before.gates.retain(|gate| gate.file.as_deref() == Some(file));
    // A gate that has moved to another file still asks.
    Asked::weakened(&before.gates, &declared.gates.iter().map(Asked::of).collect::<Vec<_>>())
}

/// The facts that a loop began with, as far as they were noted. Read once for each stop: it knows every test.
pub struct Start {
    facts: Option<Facts>,
    /// They were noted, and are gone: there is nothing to compare with.
    are_lost: bool,
    loop_id: String,
}

impl Start {
    pub fn of(project: &Project, loop_id: &str) -> Self {
        let facts = read(project, loop_id);
        let is_it = |found: &LoopOnDisk| found.id() == loop_id;
        let noted = || loops::all(project).iter().any(|found| is_it(found) && journal::live_state(project, found).noted);
        Start { are_lost: facts.is_none() && noted(), facts, loop_id: loop_id.to_owned() }
    }

    /// Signs that the proof was made easier since, one sentence each.
    pub fn suspicions(&self, project: &Project, declared: &Declared) -> Vec<String> {
        let Some(before) = &self.facts else { return Vec::new() };
        Facts::suspicions(before, &look(project, declared, Some(before), None))
    }

    /// Whether the guard keeps the loop from ending, as far as files tell.
    pub fn blocks(&self, project: &Project, declared: &Declared) -> bool {
        let Some(before) = &self.facts else { return false };
        match self.policy(declared) {
            GuardPolicy::Off | GuardPolicy::Warn => false,
            GuardPolicy::Tests => !Facts::about_tests(before, &look(project, declared, Some(before), None)).is_empty(),
            GuardPolicy::Block => !self.suspicions(project, declared).is_empty(),
        }
    }

    /// Gates that the loop began with and that are not declared any more, whatever the guard's policy is: a gate that is not there proves nothing.
    pub fn gone(&self, declared: &Declared) -> Vec<Finding> {
        let finding = |name: &str, what: String| Finding {
            needs: Some(if self.are_lost { ACCEPT } else { "put it back, or `ralph gate --accept` says that it is right so" }.to_owned()),
            ..Finding::new(name, Kind::Config, Verdict::Unknown, what)
        };
        let now: Vec<Asked> = declared.gates.iter().map(Asked::of).collect();
        match &self.facts {
            // Settings that cannot be read say nothing about what is gone.
            _ if !declared.problems.is_empty() => Vec::new(),
            Some(before) => {
                let what = |gate: &Asked| format!("the gate \"{}\", which the loop began with, is not declared any more", gate.name);
                let gone = Asked::gone(&before.gates, &now).into_iter().map(|gate| finding(&gate.name, what(gate)));
                gone.chain(weaker(&before.gates, &now).into_iter().map(|(name, what)| finding(&name, what))).collect()
            }
            None if self.are_lost => {
                vec![finding("guard", "what the loop began with is lost, so nothing tells whether the proof was made easier".to_owned())]
            }
            None if now.is_empty() => {
                vec![finding("gates", "the loop had something to prove, and nothing is declared any more".to_owned())]
            }
            None => Vec::new(),
        }
    }

    /// How strict the guard is: as strict as when the loop began, or stricter. The agent that it watches must not switch it off.
    pub fn policy(&self, declared: &Declared) -> GuardPolicy {
        self.facts.as_ref().map_or(declared.guard, |before| before.guard.stricter(declared.guard))
    }

    /// Signs that the proof was weakened. Where they may block, they are a finding of their own. `ctx`: the measurement that they belong to.
    pub fn weigh(&self, project: &Project, declared: &Declared, ctx: Option<&Context<'_>>, findings: &mut Vec<Finding>) -> Vec<String> {
        let policy = self.policy(declared);
        let mut counts = baseline::fewer_tests(project, &self.loop_id, findings);
        counts.extend(baseline::silent(project, &self.loop_id, &declared.gates, findings));
        // Who switched it off is told about missing tests once: at the end.
        if policy == GuardPolicy::Off && findings.iter().any(|f| f.verdict != Verdict::Pass) {
            return Vec::new();
        }
        let (mut tests, mut rest) = match &self.facts {
            None => (Vec::new(), Vec::new()),
            Some(before) => {
                let now = look(project, declared, Some(before), ctx);
                (Facts::about_tests(before, &now), Facts::about_the_rest(before, &now))
            }
        };
        tests.extend(counts);
        if policy == GuardPolicy::Off {
            rest.clear();
        }
        let what = match policy {
            GuardPolicy::Tests if !tests.is_empty() => Some("tests are gone or skipped that were there when the loop began"),
            GuardPolicy::Block if !tests.is_empty() || !rest.is_empty() => Some("the proof itself has changed since the loop began"),
            _ => None,
        };
        if let Some(what) = what {
            let detail = "Undo it. If it is right as it is, only a person can say so: `ralph gate --accept`.";
            findings.push(Finding::new("guard", Kind::Guard, Verdict::Fail, what).with_detail(detail));
        }
        Facts::bounded(tests.into_iter().chain(rest).collect())
    }
}

/// Gates that ask for less than when the loop began. A person who trusts changed settings, or accepts them, changes what they are compared with.
fn weaker(before: &[Asked], now: &[Asked]) -> Vec<(String, String)> {
    let there = |gate: &&Asked| now.iter().any(|other| other.name == gate.name && other.kind == gate.kind);
    let one = |gate: &Asked| Asked::weakened(std::slice::from_ref(gate), now).into_iter().map(|what| (gate.name.clone(), what)).next();
    before.iter().filter(there).filter_map(one).collect()
}

fn path(loop_id: &str) -> String {
    format!("baseline/{loop_id}.json")
}

fn read(project: &Project, loop_id: &str) -> Option<Facts> {
    project.load(&path(loop_id))
}

fn write(project: &Project, loop_id: &str, facts: &Facts) -> Result<(), Error> {
    let path = project.make_state_file(&path(loop_id))?;
    let json = |facts: &Facts| serde_json::to_vec(facts).map_err(|e| Error::io("write", &path)(io::Error::from(e)));
    let mut bytes = json(facts)?;
    if bytes.len() > MAX_FACTS {
        bytes = json(&Facts { sources: None, ..facts.clone() })?;
    }
    files::replace_private(&path, &bytes).map_err(Error::io("write", &path))?;
    let live: Vec<String> = loops::all(project).iter().map(LoopOnDisk::id).collect();
    let is_of_a_live_loop = |name: &str| live.iter().any(|id| name.strip_prefix(id.as_str()).is_some_and(|rest| rest.starts_with('.')));
    files::prune_others(&path, KEPT, &is_of_a_live_loop);
    Ok(())
}

/// The facts about the work now. A fact that cannot be seen now is as it was `before`: nothing is concluded from it.
fn look(project: &Project, declared: &Declared, before: Option<&Facts>, ctx: Option<&Context<'_>>) -> Facts {
    let scripts = scripts::of(project, &declared.gates);
    let (sources, unseen) = match sources(project, before, ctx) {
        Ok((sources, unread)) => (Some(sources), unread),
        Err(why) => (None, vec![why]),
    };
    let mut facts = Facts {
        sources,
        unseen,
        gates: declared.gates.iter().map(Asked::of).collect(),
        files: scripts.digests,
        runners: scripts.runners,
        items: Some(items(project, declared)),
        guard: declared.guard,
    };
    match before {
        // Settings that cannot be read say nothing about gates, and are said to be broken elsewhere.
        Some(before) if !declared.problems.is_empty() => {
            facts.gates.clone_from(&before.gates);
            facts.guard = before.guard;
        }
        Some(_) => {}
        None => facts.files.retain(|_, digest| !digest.is_empty()),
    }
    facts
}

/// The tests in all files that hold some, and which of those that held some could not be read; or why they could not all be seen. On a tree with the same
/// fingerprint they are the same, and no file is read again.
fn sources(
    project: &Project,
    before: Option<&Facts>,
    ctx: Option<&Context<'_>>,
) -> Result<(BTreeMap<String, Source>, Vec<String>), String> {
    let fingerprint = ctx.filter(|ctx| ctx.tree == project.root()).and_then(Context::known_fingerprint);
    let path = fingerprint.map(|fingerprint| format!("tests/{}-{fingerprint}", env!("CARGO_PKG_VERSION")));
    if let Some(known) = path.as_ref().and_then(|path| project.load(path)) {
        return Ok((known, Vec::new()));
    }
    let (found, unread) = read_sources(project, before, ctx)?;
    if let Some(path) = path.filter(|_| unread.is_empty()) {
        project.save_one_of(&path, &found, TREES);
    }
    Ok((found, unread))
}

fn read_sources(
    project: &Project,
    before: Option<&Facts>,
    ctx: Option<&Context<'_>>,
) -> Result<(BTreeMap<String, Source>, Vec<String>), String> {
    let until = Instant::now() + PATIENCE;
    let walked = || tree::walked(project.root(), until.saturating_duration_since(Instant::now()));
    let look = || Tree::of(project.root(), PATIENCE / 2).or_else(walked).map(Arc::new);
    let tree = ctx.and_then(Context::files).or_else(look).ok_or("the project's files could not be listed")?;
    let known = before.and_then(|before| before.sources.as_ref());
    let (mut found, mut unread) = (BTreeMap::new(), Vec::new());
    for (n, path) in tree.plain_files().filter(|path| Source::may_hold_tests(path)).enumerate() {
        if n >= MOST_SOURCES {
            return Err(format!("more than {MOST_SOURCES} files may hold tests"));
        }
        if Instant::now() > until {
            return Err(format!("looking at them takes longer than {} seconds", PATIENCE.as_secs()));
        }
        let source = match files::read(&project.root().join(path), MAX_SOURCE) {
            Ok(bytes) => Source::read(path, &String::from_utf8_lossy(&bytes)),
            Err(e) => {
                let held = known.and_then(|known| known.get(path)).cloned();
                unread.extend(held.as_ref().map(|_| format!("{} cannot be read: {e}", opening(path, 120))));
                held
            }
        };
        found.extend(source.map(|source| (path.to_owned(), source)));
    }
    Ok((found, unread))
}

/// The items of all lists that can be read; the gate of one that cannot says so itself.
fn items(project: &Project, declared: &Declared) -> Vec<Item> {
    let mut all = Vec::new();
    for gate in &declared.gates {
        let Check::Features(list) = &gate.check else { continue };
        let Ok(bytes) = features::bytes(project, project.root(), &list.path) else { continue };
        let items = list.list(&bytes).map(|list| list.items).unwrap_or_default();
        all.extend(items.iter().map(|item| asked_of(&list.path, item)));
    }
    all
}

fn asked_of(list: &str, item: &feature_list::Item) -> Item {
    let id = if item.is_by_place() { &item.title } else { &item.id };
    let mut criteria = serde_json::json!([item.title, item.steps, item.verify]).to_string();
    // One that becomes optional asks for less.
    if item.optional {
        criteria.push_str("optional");
    }
    Item { list: list.to_owned(), id: id.clone(), criteria: digest::of(criteria.as_bytes()) }
}
