//! The items of a project's lists: finding them, and marking one as done once its own commands pass.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use ralph_core::{
    gate::{
        Features, Finding, Verdict,
        list::{Item, List, MAX_BYTES},
    },
    text::{clean, nearest, opening},
};

use crate::{
    gates::{Context, Watch, declared, features},
    hosts,
    ops::Refusal,
    store::{Error, loops, project::Project, project_lock::Locked},
    sys::{
        exchange::{self, Swapped},
        files,
        lock::Lock,
    },
    view,
};

/// Attempts at a list that others write at the same moment.
const ATTEMPTS: usize = 20;

/// How long to wait for others that mark their items: each takes some milliseconds, and more on a slow disk.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long the project's lock is held while another one is waited for.
const BRIEFLY: Duration = Duration::from_millis(500);

/// The longest time for the commands of one item.
const LONGEST: Duration = Duration::from_hours(24);

/// How many ids are listed in an error.
const TOLD_IDS: usize = 10;

/// A list as it was read.
#[derive(Debug)]
pub struct Listed {
    /// Relative to the project's root, if it lies there.
    pub path: String,
    pub list: List,
    /// The one item that the loop is about.
    item: Option<String>,
    file: PathBuf,
    bytes: Vec<u8>,
}

impl Listed {
    /// The lists that are meant, and what is wrong with those that cannot be read: the named one, those of the loops and of `ralph.toml`, else the one that
    /// exists.
    pub fn all(project: &Project, named: Option<&Path>, session: Option<&str>) -> Result<(Vec<Listed>, Vec<String>), Refusal> {
        let wanted = match named {
            Some(path) => vec![a_list_of(project, path, session)?],
            None => declared_lists(project, session),
        };
        if wanted.is_empty() {
            return Err(Refusal::Because(
            "there is no list of items here: neither a loop nor ralph.toml names one, and there is no feature_list.json and no prd.json. Name it with --list FILE"
                .to_owned(),
        ));
        }
        let (read, broken): (Vec<_>, Vec<_>) = wanted.iter().map(|list| Listed::read(project, list)).partition(Result::is_ok);
        let broken: Vec<String> = broken.into_iter().filter_map(Result::err).collect();
        let read: Vec<Listed> = read.into_iter().flatten().collect();
        if read.is_empty() { Err(Refusal::Because(broken.join("; "))) } else { Ok((read, broken)) }
    }

    /// The one list that holds an item, and its place there; upper and lower case may differ.
    pub fn find(lists: &[Listed], id: &str) -> Result<(usize, usize), Refusal> {
        let holders = |is_meant: &dyn Fn(&str) -> bool| -> Vec<(usize, usize)> {
            let of_list = |(n, listed): (usize, &Listed)| {
                let items = listed.list.items.iter().enumerate();
                items.filter(|(_, item)| is_meant(&item.id)).map(|(place, _)| (n, place)).collect::<Vec<_>>()
            };
            lists.iter().enumerate().flat_map(of_list).collect()
        };
        let mut found = holders(&|known| known == id);
        if found.is_empty() {
            found = holders(&|known| known.to_lowercase() == id.to_lowercase());
        }
        match found[..] {
            [] => Err(unknown(lists, id)),
            [one] => Ok(one),
            [(one, _), (other, _), ..] if one == other => {
                let ids: Vec<String> = found.iter().map(|(n, place)| clean(&lists[*n].list.items[*place].id)).collect();
                Err(Refusal::Because(format!("\"{}\" can be {}", opening(id, 64), ids.join(" or "))))
            }
            _ => {
                let paths: Vec<String> = found.iter().map(|(n, _)| clean(&lists[*n].path)).collect();
                Err(Refusal::Because(format!("\"{}\" is in {}: say which with --list FILE", opening(id, 64), paths.join(" and "))))
            }
        }
    }

    fn read(project: &Project, wanted: &Features) -> Result<Self, String> {
        let path = &wanted.path;
        let shown = clean(path);
        // A link leads to the file that is changed; the link itself stays.
        let cannot =
            |e: io::Error| if files::is_missing(&e) { format!("{shown} is not there") } else { format!("cannot read {shown}: {e}") };
        let file = features::locate(project, project.root(), path).map_err(cannot)?;
        let bytes = files::read(&file, MAX_BYTES).map_err(cannot)?;
        let list = List::parse(&bytes).map_err(|problem| format!("{shown} cannot be read: {}", clean(&problem.to_string())))?;
        Ok(Listed { path: path.clone(), list, item: wanted.item.clone(), file, bytes })
    }

    fn read_again(&self, project: &Project) -> Result<Self, String> {
        Self::read(project, &Features { item: self.item.clone(), ..Features::of(&self.path) })
    }

    /// The item to work on next.
    pub fn next(&self) -> Option<&Item> {
        match &self.item {
            None => self.list.next(),
            Some(name) => self.list.held(name).map(|at| &self.list.items[at]).filter(|item| item.is_open()),
        }
    }
}

/// The list that somebody names. An agent may mark what it may not edit, so for it that is one that is declared, or a plain file of the project's.
fn a_list_of(project: &Project, path: &Path, session: Option<&str>) -> Result<Features, Refusal> {
    let list = Features::of(from_root(project, path));
    let real = |path: &str| project.root().join(path).canonicalize().ok();
    let is_declared =
        || declared_lists(project, session).iter().any(|known| real(&known.path).is_some_and(|file| Some(file) == real(&list.path)));
    let is_hidden = |file: PathBuf| {
        let root = project.root().canonicalize().unwrap_or_default();
        file.strip_prefix(root).map_or(true, |inside| inside.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b".")))
    };
    if hosts::of_an_agent().is_some() && real(&list.path).is_some_and(is_hidden) && !is_declared() {
        let shown = clean(&list.path);
        return Err(Refusal::Because(format!(
            "{shown} is no list of this loop or of ralph.toml: an agent may mark those, and plain files of the project"
        )));
    }
    Ok(list)
}

/// A path relative to the current folder, as gates name it.
fn from_root(project: &Project, path: &Path) -> String {
    let here = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = if here.exists() { here } else { project.root().join(path) };
    found.strip_prefix(project.root()).unwrap_or(&found).display().to_string()
}

fn declared_lists(project: &Project, session: Option<&str>) -> Vec<Features> {
    let mut all = loops::all(project);
    // The asking session's own loop first.
    all.sort_by_key(|found| session.is_none() || view::owner(project, found).as_deref() != session);
    let of_loops = all.iter().filter_map(|found| found.parsed.as_ref().ok()).map(|file| declared::of_loop(project, file));
    let mut lists: Vec<Features> = Vec::new();
    for declared in of_loops.chain([declared::of_project(project)]) {
        for list in declared.features() {
            if !lists.iter().any(|known| known.path == list.path) {
                lists.push(list.clone());
            }
        }
    }
    if lists.is_empty() { features::find(project).map(Features::of).into_iter().collect() } else { lists }
}

/// The lasting name of the item that a new loop is to be about.
pub(super) fn lasting_name(project: &Project, id: &str) -> Result<String, Refusal> {
    let paths = declared::lists(project);
    let [path] = &paths[..] else {
        let lists = if paths.is_empty() { "no list".to_owned() } else { clean(&paths.join(" and ")) };
        return Err(Refusal::Because(format!("--item needs one list of work, and there is {lists}")));
    };
    let listed = [Listed::read(project, &Features::of(path)).map_err(Refusal::Because)?];
    let (_, place) = Listed::find(&listed, id)?;
    let name = listed[0].list.lasting_name(place).map(str::to_owned);
    name.ok_or_else(|| {
        Refusal::Because(format!("nothing but its place tells {} from other items of {}: give it an id", clean(id), clean(path)))
    })
}

/// An item after it was marked as done.
#[derive(Debug)]
pub struct Marked {
    pub id: String,
    pub list: String,
    /// It was marked before.
    pub already: bool,
    /// How many commands of its own passed.
    pub passed: usize,
}

/// Marks an item as done, if its own commands pass.
pub fn done(project: &Project, lists: &mut [Listed], id: &str, watch: Arc<dyn Watch>) -> Result<Marked, Refusal> {
    let (holder, place) = Listed::find(lists, id)?;
    let listed = &mut lists[holder];
    let item = listed.list.items[place].clone();
    let ctx = Context { watch, keeps: hosts::of_an_agent().is_none(), ..Context::new(project, "item", LONGEST) };
    if let Some(finding) = features::prove(&listed.path, &item, &ctx).filter(|f| f.verdict != Verdict::Pass) {
        return Err(refuted(&item, &finding));
    }
    if item.is_open() {
        mark(project, listed, &item.id)?;
    }
    Ok(Marked { already: !item.is_open(), id: item.id, list: listed.path.clone(), passed: item.verify.len() })
}

/// Why an item is not marked: its commands do not pass.
fn refuted(item: &Item, finding: &Finding) -> Refusal {
    let id = clean(&item.id);
    let mut text = match (&finding.needs, finding.verdict) {
        (Some(needs), _) => format!("{id} is not marked: {}. Only a person can change that: {needs}", finding.what),
        (None, Verdict::Fail) => format!("{id} is not done: {}", finding.what),
        (None, _) => format!("{id} is not marked, because it could not be proven: {}", finding.what),
    };
    if !finding.detail.is_empty() {
        text = format!("{text}\n{}", finding.detail);
    }
    if let Some(log) = &finding.log {
        text = format!("{text}\nThe whole output: {log}");
    }
    Refusal::Because(text)
}

/// Changes the one value in the list, and no other byte. The project's lock and the folder's keep other ralph processes from the list (which may be outside
/// of the project, and shared by worktrees) and from its backup.
fn mark(project: &Project, listed: &mut Listed, id: &str) -> Result<(), Refusal> {
    let shown = clean(&listed.path);
    let folder = listed.file.parent().unwrap_or(&listed.file);
    let until = Instant::now() + PATIENCE;
    let (_own, _alone) = loop {
        let own = patiently(project)?;
        // Briefly, because a hook does not wait for the project's lock for long. Where folders cannot be locked at all, that one has to do.
        match Lock::of_folder(folder, BRIEFLY) {
            Ok(Some(folder)) => break (own, Some(folder)),
            Err(_) => break (own, None),
            Ok(None) if Instant::now() < until => {}
            Ok(None) => {
                return Err(Refusal::Because(format!("{} is not marked: another process has locked the folder of {shown}", clean(id))));
            }
        }
    };
    let backup = project.folder("backup")?.join(listed.file.file_name().unwrap_or_default());
    for _ in 0..ATTEMPTS {
        *listed = listed.read_again(project).map_err(Refusal::Because)?;
        let index = listed.list.find(id).ok_or_else(|| Refusal::Because(format!("{} is no longer in {shown}", clean(id))))?;
        if !listed.list.items[index].is_open() {
            return Ok(());
        }
        let new = listed.list.with_done(&listed.bytes, index).map_err(|problem| {
            Refusal::Because(format!("{} cannot be marked as done in {shown}: {}", clean(id), clean(&problem.to_string())))
        })?;
        match exchange::swap_keeping(&listed.file, &backup, &listed.bytes, &new).map_err(Error::io("write", &listed.file))? {
            Swapped::Gone => return Err(Refusal::Because(format!("{shown} is gone"))),
            Swapped::Done => {
                *listed = listed.read_again(project).map_err(Refusal::Because)?;
                return Ok(());
            }
            // An editor or an agent is writing: give them the time to finish.
            Swapped::Changed => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    Err(Error::Restless { path: listed.path.clone() }.into())
}

/// The project's lock, for which many may wait at once.
fn patiently(project: &Project) -> Result<Locked<'_>, Error> {
    let until = Instant::now() + PATIENCE;
    loop {
        match Locked::acquire(project) {
            Err(Error::Busy) if Instant::now() < until => {}
            other => return other,
        }
    }
}

fn unknown(lists: &[Listed], id: &str) -> Refusal {
    let ids = || lists.iter().flat_map(|l| l.list.items.iter());
    // Another number is another item, and no misspelling.
    let number = |id: &str| id.chars().filter(char::is_ascii_digit).collect::<String>();
    let candidates = ids().map(|item| item.id.as_str()).filter(|known| number(known) == number(id));
    let near = nearest(id, candidates).map(|near| format!(" Did you mean {}?", clean(near))).unwrap_or_default();
    let open: Vec<String> = ids().filter(|item| item.is_open()).map(|item| clean(&item.id)).collect();
    let more = if open.len() > TOLD_IDS { format!(" and {} more", open.len() - TOLD_IDS) } else { String::new() };
    let rest = match open.len() {
        0 => " Nothing is open.".to_owned(),
        n => format!(" Open: {}{more}.", open[..n.min(TOLD_IDS)].join(", ")),
    };
    let paths: Vec<String> = lists.iter().map(|l| clean(&l.path)).collect();
    Refusal::Because(format!("there is no item \"{}\" in {}.{near}{rest}", opening(id, 64), paths.join(" or ")))
}
