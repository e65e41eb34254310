//! The lander: brings what was proven onto the fleet's branch, one job at a time, and runs the gates again on exactly what lands. It works in the fleet's own
//! repository and in a slot of its own; the person's files, index and checked-out branch are never touched, and nothing is forced.

use std::{
    collections::BTreeMap,
    fs,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use ralph_core::gate::list::List;
use ralph_engine::sys::{clock, command::Task, files};

use crate::{
    board::{Board, Card},
    child,
    fleet::{Fleet, Held},
    gates, git,
    hub::Pushed,
    job_rules::{MOST_RETURNS, Outcome},
    merge::{self, Merged, Whose},
    problem::{Problem, Result},
    pull_requests,
    records::{Spec, State, Wish},
    seat::{self, Seat},
    settings::{self, Land, Place},
    slot::Slot,
};

/// How long it rests, unless something happens in this process.
const REST: Duration = Duration::from_millis(200);

/// How often a landing begins anew because the branch moved meanwhile.
const MOST_RACES: usize = 50;

/// How long a problem that is nobody's fault rests before the next try, at first; each time it is twice as long.
const PATIENCE: Duration = Duration::from_secs(3);

/// And at most, unless a branch moves.
const LONGEST_PATIENCE: Duration = Duration::from_mins(10);

/// How long all gates together may take.
const GATES: Duration = Duration::from_hours(4);

/// How often it is asked what became of pull requests, and looked for jobs on the target.
const ASK_EVERY: Duration = Duration::from_mins(1);

/// The line in a commit's message that says which job it is.
const TRAILER: &str = "Ralph-Job";

/// What the gates say about a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Holds,
    /// It failed, and held when it was tried again.
    Flaky(String),
    Fails(String),
}

/// Lands until the fleet is over. One process of a machine lands for a fleet at a time; the next one takes over when it ends.
pub fn work(fleet: &Fleet, name: String, is_over: &dyn Fn() -> bool) {
    let mut told = false;
    while !is_over() && !fleet.drains() {
        let taken = seat::lock(&fleet.place.root().join("lander.lock")).and_then(|lock| Ok(lock.zip(Some(Seat::of_lander()?))));
        match taken {
            Ok(Some((_lock, seat))) => {
                let slot = Slot::take(&fleet.place, &fleet.settings, seat, "lander");
                let (board, trouble) = (fleet.board(), fleet.place.told(Place::LANDING));
                return Lander { fleet, name, slot, board, trouble, rest: None, asked: None, looked: None, known: Known::default() }
                    .work(is_over);
            }
            Ok(None) if !told => anstream::eprintln!("note: another process lands for this fleet already: this one only works"),
            Err(problem) if !told => anstream::eprintln!("error: nothing lands: {problem}"),
            Ok(None) | Err(_) => {}
        }
        told = true;
        fleet.has_asked.store(true, Ordering::Relaxed);
        thread::sleep(PATIENCE);
    }
}

struct Lander<'f> {
    fleet: &'f Fleet,
    name: String,
    slot: Slot,
    board: Board,
    /// Why nothing lands now.
    trouble: Option<String>,
    /// The last landing failed, and it was nobody's fault.
    rest: Option<Rest>,
    /// When GitHub was asked about open pull requests.
    asked: Option<Instant>,
    /// When the target was searched for jobs that are there already.
    looked: Option<Instant>,
    known: Known,
}

/// What was found out about commits, which never changes.
#[derive(Default)]
struct Known {
    /// The target when its jobs were read, and the jobs on it, with their commits.
    tip: String,
    jobs: BTreeMap<String, String>,
    /// A commit of the person's branch, and one of the target that has it.
    base: Option<(String, String)>,
    /// Whether the list is in this commit of the person's branch.
    tracked: Option<(String, bool)>,
}

/// A pause: gates that fail without any job would fail again, and they cost time.
struct Rest {
    /// The person's branch and the target then.
    tips: [Option<String>; 2],
    since: Instant,
    length: Duration,
    /// When it was looked whether they moved.
    looked: Instant,
}

impl Lander<'_> {
    fn work(&mut self, is_over: &dyn Fn() -> bool) {
        if self.fleet.settings.land != Land::None {
            // While the first agents work there is time to fill the slot; if that fails, the landing says why.
            let hub = &self.fleet.hub;
            let _ = hub.start().and_then(|tip| self.slot.check_out(hub, &tip, "ralph/lander"));
        }
        loop {
            let rung = self.fleet.bell.rung();
            if is_over() || self.fleet.drains() {
                return;
            }
            let stepped = self.step();
            self.fleet.has_asked.store(true, Ordering::Relaxed);
            match stepped {
                Ok(true) => self.tell(None),
                Ok(false) => self.fleet.bell.wait(rung, REST),
                Err(problem) => {
                    self.tell(Some(problem.0));
                    thread::sleep(PATIENCE);
                }
            }
        }
    }

    /// Leaves word of what keeps landing from going on, for the screen.
    fn tell(&mut self, trouble: Option<String>) {
        if self.trouble != trouble {
            self.fleet.place.tell(Place::LANDING, trouble.clone());
        }
        self.trouble = trouble;
    }

    fn step(&mut self) -> Result<bool> {
        self.board.refresh(&*self.fleet.store)?;
        self.fleet.give_back_forgotten(&self.name, &self.board)?;
        if self.fleet.settings.land == Land::None {
            return Ok(false);
        }
        if self.fleet.settings.land == Land::Pr && self.ask_about_pull_requests()? {
            return Ok(true);
        }
        self.find_on_target()?;
        let next = self.board.to_land(&*self.fleet.store, self.fleet.settings.review);
        let Some((id, card)) = next.map(|(id, card)| (id.to_owned(), card.clone())) else { return Ok(false) };
        if card.job.returns < MOST_RETURNS && self.fleet.is_last_try_under_way(&self.board, &id, clock::now()) {
            return Ok(false);
        }
        if self.rests()? {
            return Ok(false);
        }
        let Some(mut held) = self.fleet.claim(&self.name, &id, &card)? else { return Ok(true) };
        match self.land(&mut held, &card) {
            Ok(outcome) => {
                self.rest = None;
                self.end(&mut held, &card.spec, outcome)?;
                Ok(true)
            }
            Err(problem) => {
                // Nobody's fault: the job stays proven.
                self.fleet.end(&mut held, Outcome::GivenBack { why: problem.to_string() })?;
                self.rest_after_a_failure()?;
                Err(problem)
            }
        }
    }

    /// Ends a landing. Should this process end before that is written down, both are done again.
    fn end(&mut self, held: &mut Held, spec: &Spec, outcome: Outcome) -> Result<()> {
        let has_landed = matches!(outcome, Outcome::Landed { .. });
        if has_landed {
            self.mark_untracked(spec)?;
        }
        self.fleet.end(held, outcome)?;
        Ok(())
    }

    fn tips(&self) -> Result<[Option<String>; 2]> {
        Ok([self.fleet.hub.base_tip().ok(), self.fleet.hub.target_tip()?])
    }

    fn rest_after_a_failure(&mut self) -> Result<()> {
        let (tips, now) = (self.tips()?, Instant::now());
        let before = self.rest.take().filter(|rest| rest.tips == tips);
        let length = before.map_or(PATIENCE, |rest| (rest.length * 2).min(LONGEST_PATIENCE));
        self.rest = Some(Rest { tips, since: now, length, looked: now });
        Ok(())
    }

    /// Whether nothing is tried now, because it failed a moment ago and nothing has moved since.
    fn rests(&mut self) -> Result<bool> {
        let Some(rest) = &mut self.rest else { return Ok(false) };
        if rest.looked.elapsed() < PATIENCE {
            return Ok(true);
        }
        rest.looked = Instant::now();
        if rest.since.elapsed() >= rest.length {
            return Ok(false);
        }
        self.fleet.hub.fetch_person()?;
        let now = self.tips()?;
        Ok(self.rest.as_ref().is_some_and(|rest| rest.tips == now))
    }

    /// Jobs that are on the target although nobody has written that down: a lander pushed them and was not heard of again, and then they were sent back or stopped.
    fn find_on_target(&mut self) -> Result<()> {
        if self.looked.is_some_and(|looked| looked.elapsed() < ASK_EVERY) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        self.read_landed()?;
        for (id, card) in self.board.open() {
            if let Some(commit) = self.known.jobs.get(id) {
                self.fleet.found_on_target(id, card, commit)?;
            }
        }
        Ok(())
    }

    fn land(&mut self, held: &mut Held, card: &Card) -> Result<Outcome> {
        let Some(work) = held.job.commit.clone() else { return Ok(Outcome::SentBack { why: "there is no commit".to_owned() }) };
        for _ in 0..MOST_RACES {
            self.fleet.hub.fetch_person()?;
            self.fleet.hub.fetch_job(&held.id)?;
            self.read_landed()?;
            if let Some(commit) = self.known.jobs.get(&held.id).cloned() {
                return Ok(Outcome::Landed { commit });
            }
            let Some(target) = self.with_base()? else { continue };
            let (tree, updates) = match merge::merge(&self.fleet.hub.git, &target, &work, Whose::Job, &self.fleet.settings)? {
                Merged::Tree { tree, locks } => (tree, locks),
                Merged::Conflicts(files) => {
                    return Ok(Outcome::SentBack { why: format!("it conflicts with what landed meanwhile, in {}", files.join(", ")) });
                }
                Merged::ForAPerson(why) => return Ok(Outcome::NeedsPerson { why }),
            };
            let tree = self.with_mark(&target, &tree, &card.spec)?;
            if let Some(why) = self.not_updated(&tree, &updates)? {
                return Ok(Outcome::SentBack { why });
            }
            let tree = match self.with_updated_locks(&target, tree, &updates)? {
                Ok(tree) => tree,
                Err(why) => return Ok(Outcome::SentBack { why }),
            };
            let commit = self.commit(&target, &work, &tree, held, &card.spec)?;
            match self.try_out(&commit, &card.spec)? {
                Verdict::Holds => {}
                Verdict::Flaky(gate) => self.fleet.note(&held.id, &held.job, "flaky", &gate),
                Verdict::Fails(why) => {
                    // A red target is nobody's fault.
                    if let Verdict::Fails(red) = self.try_out(&target, &card.spec_of_fleet())? {
                        return Err(Problem::new(format!("{} fails without this job: {red}", self.fleet.hub.target)));
                    }
                    return Ok(Outcome::SentBack { why });
                }
            }
            if !crate::change::is_mine(&*self.fleet.store, &held.id, &held.claim)? {
                return Err(Problem::new("another lander has it"));
            }
            // Gates take their time, and a person may have decided otherwise meanwhile.
            match self.fleet.want(Some(&held.id))?.wish {
                Wish::Run => {}
                Wish::Cancel => return Ok(Outcome::Cancelled),
                Wish::Pause => return Ok(Outcome::GivenBack { why: "a person paused it".to_owned() }),
            }
            if self.fleet.settings.land == Land::Pr {
                return pull_requests::open(self.fleet, held, &card.spec, &commit);
            }
            match self.fleet.hub.push(&commit, &self.fleet.settings.target)? {
                Pushed::Done => {
                    self.has_landed(&held.id, &target, &commit);
                    return Ok(Outcome::Landed { commit });
                }
                Pushed::Raced => {}
                Pushed::WantsSignature => return Ok(Outcome::NeedsPerson { why: self.unsigned(&work) }),
            }
        }
        Err(Problem::new(format!("{} is pushed to all the time", self.fleet.settings.target)))
    }

    /// Looks, now and then, which pull requests were merged or closed. `true`: one was.
    fn ask_about_pull_requests(&mut self) -> Result<bool> {
        if self.asked.is_some_and(|asked| asked.elapsed() < ASK_EVERY) {
            return Ok(false);
        }
        let open: Vec<(String, Card)> =
            self.board.open().filter(|(_, card)| card.pull_request().is_some()).map(|(id, card)| (id.to_owned(), card.clone())).collect();
        for (id, card) in &open {
            let Some(opened) = pull_requests::of(&card.job) else { continue };
            let Some(outcome) = pull_requests::look(self.fleet, &opened)? else { continue };
            if let Some(mut held) = self.fleet.claim(&self.name, id, card)? {
                self.end(&mut held, &card.spec, outcome)?;
            }
            return Ok(true);
        }
        self.asked = Some(Instant::now());
        Ok(false)
    }

    /// Reads which jobs are on the target, with their commits, whether or not their landers lived to say so. Only what is new there since the last time.
    fn read_landed(&mut self) -> Result<()> {
        let hub = &self.fleet.hub;
        let tip = hub.target_tip()?.unwrap_or_default();
        if tip == self.known.tip {
            return Ok(());
        }
        self.known.jobs = if tip.is_empty() {
            BTreeMap::new()
        } else if let Some(mut new) = self.landed_since(&self.known.tip, &tip)? {
            new.append(&mut self.known.jobs);
            new
        } else {
            self.landed_since("", &tip)?.unwrap_or_default()
        };
        self.known.tip = tip;
        Ok(())
    }

    /// The jobs between two commits of the target; `None`: the first one is not in the other's line.
    fn landed_since(&self, before: &str, tip: &str) -> Result<Option<BTreeMap<String, String>>> {
        let format = format!("--format=%H %P%x09%(trailers:key={TRAILER},valueonly,separator=%x20)");
        let but = if before.is_empty() { String::new() } else { format!("^{before}") };
        let mut args = vec!["log", "--first-parent", "-n", "20000", &format, tip];
        args.extend((!but.is_empty()).then_some(&*but));
        let ran = self.fleet.hub.git.ran(&args, b"")?;
        let log = ran.text();
        let first_parent = log.lines().last().and_then(|line| line.split(['\t', ' ']).nth(1)).unwrap_or_default();
        if ran.code != Some(0) || (!before.is_empty() && first_parent != before) {
            return if before.is_empty() { Err(Problem::new(format!("git log: {}", git::last_words(&ran)))) } else { Ok(None) };
        }
        let job = |line: &str| {
            let (commits, trailer) = line.split_once('\t')?;
            let id = trailer.trim().strip_prefix(&self.fleet.settings.id)?.strip_prefix('/')?;
            Some((id.to_owned(), commits.split(' ').next()?.to_owned()))
        };
        Ok(Some(log.lines().filter_map(job).collect()))
    }

    /// A job's commit was pushed onto the target: what was known of the one is known of the other.
    fn has_landed(&mut self, id: &str, target: &str, commit: &str) {
        let known = &mut self.known;
        if known.tip == target {
            known.jobs.insert(id.to_owned(), commit.to_owned());
            commit.clone_into(&mut known.tip);
        }
        if let Some((_, of)) = known.base.as_mut().filter(|(_, of)| of == target) {
            commit.clone_into(of);
        }
    }

    /// The target with everything that the person committed meanwhile, proven. `None`: it moved, look again.
    fn with_base(&mut self) -> Result<Option<String>> {
        let hub = &self.fleet.hub;
        let base = hub.base_tip()?;
        let Some(target) = hub.target_tip()? else { return Ok(Some(base)) };
        let both = Some((base.clone(), target.clone()));
        if self.known.base == both || hub.git.is_ancestor(&base, &target)? {
            self.known.base = both;
            return Ok(Some(target));
        }
        if hub.git.is_ancestor(&target, &base)? {
            return Ok(Some(base));
        }
        let tree = match merge::merge(&hub.git, &target, &base, Whose::Person, &self.fleet.settings)? {
            Merged::Tree { tree, locks } if locks.is_empty() => tree,
            Merged::Tree { locks: files, .. } | Merged::Conflicts(files) => {
                return Err(Problem::new(format!(
                    "{} and {} conflict in {}: merge them, and landing goes on",
                    hub.base,
                    hub.target,
                    files.join(", ")
                )));
            }
            Merged::ForAPerson(why) => return Err(Problem::new(why)),
        };
        let message = format!("Merge {} into {}", hub.base, hub.target);
        let commit = hub.git.word(&["commit-tree", &tree, "-p", &target, "-p", &base, "-m", &message])?;
        if let Verdict::Fails(why) = self.try_out(&commit, &Spec::default())? {
            return Err(Problem::new(format!("{} with what you committed on {} fails: {why}", hub.target, hub.base)));
        }
        match hub.push(&commit, &hub.target)? {
            Pushed::Done => Ok(Some(commit)),
            Pushed::Raced => Ok(None),
            Pushed::WantsSignature => Err(Problem::new(self.unsigned(&base))),
        }
    }

    fn unsigned(&self, work: &str) -> String {
        let hub = &self.fleet.hub;
        format!(
            "{} takes only signed commits, and a fleet has no key to sign with: merge {work} from {} by hand",
            hub.target,
            hub.git.folder.display()
        )
    }

    /// The list of the target with this item marked: no branch has a word in it.
    fn with_mark(&mut self, target: &str, tree: &str, spec: &Spec) -> Result<String> {
        let (git, Some(path)) = (&self.fleet.hub.git, &self.fleet.settings.list) else { return Ok(tree.to_owned()) };
        let Some(bytes) = git.file(target, path)? else { return Ok(tree.to_owned()) };
        git.with_file(tree, target, path, &marked(&bytes, spec)?)
    }

    /// A list that git does not know is marked where it is, under its lock.
    fn mark_untracked(&mut self, spec: &Spec) -> Result<()> {
        let settings = &self.fleet.settings;
        let Some(list) = &settings.list else { return Ok(()) };
        if !settings.repository.join(list).is_file() {
            return Ok(());
        }
        let base = self.fleet.hub.base_tip()?;
        let tracked = match self.known.tracked.take() {
            Some((of, tracked)) if of == base => tracked,
            _ => self.fleet.hub.git.file(&base, list)?.is_some(),
        };
        self.known.tracked = Some((base, tracked));
        if tracked {
            return Ok(());
        }
        let path = settings.repository.join(list);
        // `ralph item` locks the folder, too, so that no mark is lost. Where folders cannot be locked, the write in one step has to do.
        let folder = path.parent().and_then(|folder| fs::File::open(folder).ok());
        let _ = folder.as_ref().map(fs::File::lock);
        let bytes = files::read(&path, ralph_core::gate::list::MAX_BYTES).map_err(Problem::when(path.display()))?;
        files::write_whole(&path, &marked(&bytes, spec)?).map_err(Problem::when(path.display()))
    }

    /// Why a conflict in a lock file is for an agent after all: its tool would obey settings that a branch brought.
    fn not_updated(&self, tree: &str, locks: &[String]) -> Result<Option<String>> {
        for lock in locks {
            let foreign = merge::foreign_settings(&self.fleet.hub.git, &self.fleet.hub.base_tip()?, tree, lock)?;
            if let Some(foreign) = foreign {
                return Ok(Some(format!(
                    "it conflicts with what landed meanwhile, in {lock}; {foreign} has changed, so it is not made anew here"
                )));
            }
        }
        Ok(None)
    }

    /// Lock files that conflict: the target's version, brought up to date by its own tool; or why that cannot be done.
    fn with_updated_locks(&self, target: &str, mut tree: String, locks: &[String]) -> Result<std::result::Result<String, String>> {
        if locks.is_empty() {
            return Ok(Ok(tree));
        }
        let git = &self.fleet.hub.git;
        for lock in locks {
            let bytes = git.file(target, lock)?.unwrap_or_default();
            tree = git.with_file(&tree, target, lock, &bytes)?;
        }
        let commit = git.word(&["commit-tree", &tree, "-p", target, "-m", "Lock files"])?;
        self.slot.check_out(&self.fleet.hub, &commit, "ralph/lander")?;
        for lock in locks {
            if let Some(why) = merge::update_lock(&self.slot.folder, lock, self.slot.vars()) {
                return Ok(Err(format!("it conflicts with what landed meanwhile, in {lock}, and {why}")));
            }
            let bytes = fs::read(self.slot.folder.join(lock)).map_err(Problem::when(lock))?;
            tree = git.with_file(&tree, target, lock, &bytes)?;
        }
        Ok(Ok(tree))
    }

    fn commit(&self, target: &str, work: &str, tree: &str, held: &Held, spec: &Spec) -> Result<String> {
        let title = spec.task.lines().next().unwrap_or_default();
        let subject = spec.item.as_ref().map_or_else(|| title.to_owned(), |item| format!("{item}: {title}"));
        let subject: String = subject.chars().filter(|c| !c.is_control()).take(100).collect();
        let message = format!("{subject}\n\n{TRAILER}: {}/{}\n", self.fleet.settings.id, held.id);
        let mut args = vec!["commit-tree", tree, "-p", target];
        if !self.fleet.settings.squash {
            args.extend(["-p", work]);
        }
        args.extend(["-m", &message]);
        self.fleet.hub.git.word(&args)
    }

    /// Runs the gates on a commit's files; a failure is tried once more.
    fn try_out(&self, commit: &str, spec: &Spec) -> Result<Verdict> {
        let gates = gates::where_it_lands(&gates::of_job(&self.fleet.settings, spec)?)?;
        if gates::count(&gates) == 0 {
            return Ok(Verdict::Holds);
        }
        let file = self.fleet.place.job("lander")?.join("gates.toml");
        settings::write(&file, gates.as_bytes())?;
        let Some(first) = self.fails(commit, &file, true)? else { return Ok(Verdict::Holds) };
        Ok(if self.fails(commit, &file, false)?.is_none() { Verdict::Flaky(first) } else { Verdict::Fails(first) })
    }

    /// What fails on a commit's files, in `[fleet] setup` or in the gates. `known`: what is known of these very files counts.
    fn fails(&self, commit: &str, file: &std::path::Path, known: bool) -> Result<Option<String>> {
        self.slot.check_out(&self.fleet.hub, commit, "ralph/lander")?;
        match self.slot.set_up(&|| self.fleet.ends_now()) {
            Ok(()) => self.gate(file, known),
            Err(problem) if problem.is_passing() => Err(problem),
            Err(problem) => Ok(Some(problem.0)),
        }
    }

    /// Runs the gates once; the result says what fails.
    fn gate(&self, file: &std::path::Path, known: bool) -> Result<Option<String>> {
        let file = file.display().to_string();
        let mut args: Vec<std::ffi::OsString> = ["gate", "--json", "--gates", &file].map(Into::into).to_vec();
        args.extend(known.then(|| "--cached".into()));
        let task = Task {
            program: child::ralph()?.into(),
            args,
            folder: &self.slot.folder,
            vars: self.slot.vars(),
            hidden: ["CLAUDE_PROJECT_DIR", "RALPH_LOOP_DIR", "RALPH_RUN"].map(Into::into).to_vec(),
            input: Vec::new(),
            limit: GATES,
            most_output: 8 << 20,
        };
        let ran = task
            .run_until(&|| self.fleet.ends_now())
            .map_err(|_| Problem::passing("`ralph gate` did not end, or this process was told to"))?;
        match ran.code {
            Some(0) => Ok(None),
            Some(1) => Ok(Some(failing(&ran.stdout).unwrap_or_else(|| ran.stderr.trim().to_owned()))),
            _ => Err(Problem::new(format!("the gates could not be run: {}", ran.stderr.trim()))),
        }
    }
}

impl Card {
    /// The gates that all jobs share.
    fn spec_of_fleet(&self) -> Spec {
        Spec { verify: Vec::new(), ..self.spec.clone() }
    }

    pub fn is_waiting_for_review(&self) -> bool {
        self.job.state == State::Proven && self.want.review.as_ref().is_none_or(|review| Some(&review.commit) != self.job.commit.as_ref())
    }
}

fn marked(bytes: &[u8], spec: &Spec) -> Result<Vec<u8>> {
    let told = |problem: ralph_core::text::Problem| Problem::new(format!("the list cannot be marked: {problem}"));
    let list = List::parse(bytes).map_err(told)?;
    match spec.item.as_deref().and_then(|item| list.find(item)) {
        Some(at) if !list.items[at].passes => list.with_done(bytes, at).map_err(told),
        _ => Ok(bytes.to_vec()),
    }
}

/// The findings that fail, for the agent.
fn failing(json: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(json).ok()?;
    let findings = value.get("findings")?.as_array()?;
    let text = |finding: &serde_json::Value, key: &str| finding.get(key).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    let told: Vec<String> = findings
        .iter()
        .filter(|finding| text(finding, "verdict") != "pass" && finding.get("skipped").is_none())
        .map(|finding| {
            format!("gate \"{}\" fails on the merged files: {}\n{}", text(finding, "gate"), text(finding, "what"), text(finding, "detail"))
                .trim()
                .to_owned()
        })
        .collect();
    (!told.is_empty()).then(|| told.join("\n"))
}
