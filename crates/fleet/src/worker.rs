//! A worker: takes one job at a time, works on it in its slot iteration by iteration, and writes down where it stands after each.

use std::{
    cell::Cell,
    fs,
    path::PathBuf,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use ralph_core::{money, text::time::Millis};
use ralph_engine::{
    ops::bundle,
    sys::{clock, disk, secrets},
};

use crate::{
    board::Board,
    change,
    child::{self, Iteration},
    fleet::{Fleet, Held},
    gates,
    job_rules::{Brought, MOST_RETURNS, Money, Outcome},
    problem::{Problem, Result, tells_of_a_full_disk},
    records::{self, ACCOUNT, Account, Found, Job, Spec, State, VERSION, WANT, Want, Wish, key},
    sessions,
    settings::{self, Place},
    slot::Slot,
};

/// How long a worker without work rests, unless something happens in this process.
const REST: Duration = Duration::from_millis(200);

/// How often a person's wishes are looked at while an agent works.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a session may cost before anything is known of its job, in millionths of a dollar.
const FIRST_SESSION: u64 = 5_000_000;

/// With less no session is begun.
const LEAST: u64 = 50_000;

/// Less space than this on the disk, in bytes: no job is taken.
const LEAST_DISK: u64 = 1 << 30;

/// The words with which an agent says that it is done.
const PROMISE: &str = "DONE";

/// What the agent of a job that came back is told first.
const CAME_BACK: &str = "You have worked on this before:";

/// Fields of a job's record: the tokens that its loop has used, and the number of its last iteration.
const LOOP_TOKENS: &str = "loop_tokens";
const LOOP_ITERATION: &str = "loop_iteration";

/// How long a job rests after a failure of the store or the disk.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Worker<'f> {
    pub fleet: &'f Fleet,
    pub name: String,
    pub slot: Slot,
    pub pools: Vec<String>,
    pub board: Board,
    /// How often all workers had been told to end when this one began.
    pub drains: Option<u64>,
}

impl Worker<'_> {
    /// Works until the fleet has no more for it.
    pub fn work(&mut self, is_over: &dyn Fn() -> bool) {
        loop {
            let rung = self.fleet.bell.rung();
            if self.fleet.drains() || is_over() || self.is_drained(&self.board.want) {
                return;
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => self.fleet.bell.wait(rung, REST),
                Err(problem) => {
                    eprintln_once(&problem);
                    thread::sleep(PATIENCE);
                }
            }
        }
    }

    /// Whether a person told this worker to end.
    fn is_drained(&self, want: &Want) -> bool {
        let is_its = |name: &String| *name == self.name || self.name.strip_suffix(name.as_str()).is_some_and(|head| head.ends_with('-'));
        self.drains.is_some_and(|before| want.drains > before) || want.drained.iter().any(is_its)
    }

    /// Takes a job and works on it. `false`: there is none.
    fn step(&mut self) -> Result<bool> {
        self.board.refresh(&*self.fleet.store)?;
        self.drains.get_or_insert(self.board.want.drains);
        if self.is_drained(&self.board.want) {
            return Ok(true);
        }
        self.fleet.give_back_forgotten(&self.name, &self.board)?;
        let now = clock::now();
        for (id, card) in self.board.open() {
            self.fleet.wished(id, card, now)?;
        }
        if self.is_short_of_disk()? {
            return Ok(false);
        }
        let mut found = None;
        for (id, card) in self.board.to_run(&*self.fleet.store, &self.pools, now) {
            let has_to_wait = card.job.returns >= MOST_RETURNS && self.fleet.is_last_try_under_way(&self.board, id, now);
            if !has_to_wait && !self.account(&card.spec)?.is_used_up(now) {
                found = Some((id.to_owned(), card.clone()));
                break;
            }
        }
        let Some((id, card)) = found else { return Ok(false) };
        if !self.has_money()? {
            return Ok(false);
        }
        let Some(mut held) = self.fleet.claim(&self.name, &id, &card)? else { return Ok(true) };
        self.slot.begin(format!("{}/{id}", self.fleet.place.id), card.job.state == State::Runs);
        let outcome = match self.job(&mut held, &card.spec) {
            Ok(outcome) => outcome,
            // What may pass is no reason to ask a person.
            Err(problem) if problem.is_passing() => {
                self.fleet.end(&mut held, Outcome::GivenBack { why: problem.to_string() })?;
                return Err(problem);
            }
            // What stands in the way here would stand there for the next worker, too.
            Err(problem) => Some(Outcome::NeedsPerson { why: problem.to_string() }),
        };
        if let Some(outcome) = outcome {
            self.fleet.end(&mut held, outcome)?;
        }
        Ok(true)
    }

    /// Whether the disk of the records or of the slots has too little space for a job; the screen says so.
    fn is_short_of_disk(&self) -> Result<bool> {
        let place = &self.fleet.place;
        settings::make(&self.slot.folder)?;
        let is_short = |folder: &&std::path::Path| disk::free(folder).is_some_and(|free| free < LEAST_DISK);
        let short = [place.root(), &self.slot.folder].into_iter().find(is_short);
        place.tell(
            Place::WORK,
            short.map(|folder| {
                let gb = disk::in_gb(disk::free(folder).unwrap_or(0));
                format!("{gb:.1} GB are free on the disk of {}, and a job needs {:.0}", folder.display(), disk::in_gb(LEAST_DISK))
            }),
        );
        Ok(short.is_some())
    }

    /// Whether there is money for a session. What other jobs have set aside may come back; what is spent is not.
    fn has_money(&self) -> Result<bool> {
        let money = self.fleet.money(LEAST)?;
        self.fleet.is_broke.store(money == Money::Spent, Ordering::Relaxed);
        Ok(money == Money::Left)
    }

    fn account(&self, spec: &Spec) -> Result<Account> {
        let entry = self.fleet.store.get(&key(ACCOUNT, &self.account_of(spec)))?;
        Ok(match entry.map(|entry| records::read(&entry.value)) {
            Some(Found::Known(account)) => account,
            _ => Account::default(),
        })
    }

    /// The name of the account that a job's sessions use: its agent's.
    fn account_of(&self, spec: &Spec) -> String {
        let of_fleet = || self.fleet.settings.run.iter().skip_while(|arg| *arg != "--agent").nth(1).cloned();
        settings::word(&spec.agent.clone().or_else(of_fleet).unwrap_or_else(|| "claude".to_owned()))
    }

    /// Works on a job. `None`: it is another's by now.
    fn job(&self, held: &mut Held, spec: &Spec) -> Result<Option<Outcome>> {
        self.prepare(held, spec)?;
        let mut last_cost = 0;
        loop {
            let want = self.fleet.want(Some(&held.id))?;
            if let Some(outcome) = self.stops(&want)? {
                return Ok(Some(outcome));
            }
            let told = self.tell(&want.notes, held.job.notes_told)?;
            let Some(reserved) = self.fleet.reserve(held, FIRST_SESSION.max(last_cost * 2), LEAST)? else {
                let is_set_aside = self.fleet.money(LEAST)? != Money::Spent;
                let why = if is_set_aside { "what is left of the money is set aside for other jobs" } else { "the fleet's money is spent" };
                return Ok(Some(Outcome::GivenBack { why: why.to_owned() }));
            };
            let (iteration, lost) = match self.iteration(held, spec, reserved) {
                Ok(ran) => ran,
                Err(problem) => {
                    // It did not begin.
                    self.fleet.settle(held, 0)?;
                    return Err(problem);
                }
            };
            // Each session has a limit of its own, so this counts it alone. What began and never said what it cost may have cost all that it had.
            let cost = if iteration.is_cut_off() { reserved } else { money::of_reported(iteration.spent_usd) };
            last_cost = cost;
            self.fleet.settle(held, cost)?;
            if lost {
                return Ok(None);
            }
            if iteration.how.is_empty() {
                return Ok(Some(self.without_a_word(&spec.id, &iteration)?));
            }
            let Some(brought) = self.bring_patiently(held, &iteration, told, cost)? else {
                return Ok(Some(Outcome::GivenBack { why: "it ended before its work could be saved".to_owned() }));
            };
            let after = held.job.after(brought, clock::now());
            // An iteration that nobody ruled on is none.
            let is_one = iteration.rounds > 0;
            let job = if is_one {
                after
            } else {
                Job { iterations: held.job.iterations, claims: held.job.claims, back: held.job.back.clone(), ..after }
            };
            if !self.fleet.write(held, &job)? {
                return Ok(None);
            }
            if is_one {
                self.fleet.note(&held.id, &held.job, "iteration", &iteration.line);
            }
            if let Some(outcome) = self.what_follows(spec, &iteration)? {
                return Ok(Some(outcome));
            }
        }
    }

    /// Why no further iteration is begun.
    fn stops(&self, want: &Want) -> Result<Option<Outcome>> {
        let given_back = |why: &str| Some(Outcome::GivenBack { why: why.to_owned() });
        let all = self.fleet.want(None)?;
        Ok(match want.wish {
            Wish::Cancel => Some(Outcome::Cancelled),
            Wish::Pause => given_back("a person paused it"),
            Wish::Run if all.wish != Wish::Run => given_back("a person paused the fleet"),
            Wish::Run if self.fleet.drains() || self.is_drained(&all) => given_back("its worker ended"),
            Wish::Run => None,
        })
    }

    /// Puts the job's files into the slot, and its loop, if it has one already.
    fn prepare(&self, held: &mut Held, spec: &Spec) -> Result<()> {
        let hub = &self.fleet.hub;
        hub.fetch_person()?;
        hub.fetch_job(&held.id)?;
        let commit = held.job.commit.clone().map_or_else(|| hub.start(), Ok)?;
        // A remote that takes nothing is found before a session costs money, not after it.
        hub.send_start(&held.id, held.claim.token, &commit)?;
        self.slot.check_out(hub, &commit, &format!("ralph/{}", held.id))?;
        let folder = self.fleet.place.job(&held.id)?;
        let gates = gates::in_a_slot(&gates::of_job(&self.fleet.settings, spec)?)?;
        settings::write(&folder.join("gates.toml"), gates.as_bytes())?;
        if let Some(snapshot) = held.job.rest.get("snapshot").and_then(|value| value.as_str()) {
            self.restore(snapshot)?;
        }
        if let (Some(bundle), None) = (&held.job.bundle, &held.job.back) {
            let bytes = hub.blob(bundle)?;
            if is_loop_of(spec, &bytes)? {
                let file = folder.join("loop.bundle");
                settings::write(&file, &bytes)?;
                // Without trust: how it is run is for this fleet's settings to say.
                self.ralph(&["bundle", "import", "--replace", &file.display().to_string()])?;
            } else {
                self.fleet.note(&held.id, &held.job, "anew", "its task is another one now, so its loop begins anew, with its commits");
                held.job.bundle = None;
            }
        }
        self.slot.set_up(&|| self.fleet.ends_now())?;
        let mut prompt = prompt(spec);
        if let Some(why) = &held.job.back {
            prompt.push_str(&self.begin_merge(why)?);
        }
        settings::write(&folder.join("prompt.md"), prompt.as_bytes())
    }

    /// Puts back what was not committed.
    fn restore(&self, snapshot: &str) -> Result<()> {
        let git = self.slot.git()?;
        let from = self.fleet.hub.git.folder.display().to_string();
        git.run(&["fetch", "--quiet", "--no-tags", &from, snapshot])?;
        git.run(&["restore", "--source", snapshot, "--worktree", "--", "."])?;
        Ok(())
    }

    /// What came back: what landed meanwhile is merged in, as far as it goes. The result is what the agent is told about it.
    fn begin_merge(&self, why: &str) -> Result<String> {
        let target = self.fleet.hub.start()?;
        let conflicts = self.slot.begin_merge(&self.fleet.hub, &target)?;
        let mut told = format!("\n{CAME_BACK} your commits are on this branch. The work came back, because: {why}\n");
        told.push_str("What others landed meanwhile has been merged into your branch. ");
        let next = match conflicts.as_slice() {
            [] => "See to it, and commit.\n".to_owned(),
            files => format!("The merge is not finished: resolve the conflicts in {}, and commit it.\n", files.join(", ")),
        };
        Ok(told + &next)
    }

    /// Gives the agent the notes that it has not been told. The result is how many it knows then.
    fn tell(&self, notes: &[String], told: usize) -> Result<usize> {
        if !self.slot.folder.join(".ralph").is_dir() {
            return Ok(told);
        }
        for note in notes.iter().skip(told) {
            self.ralph(&["steer", note])?;
        }
        Ok(notes.len().max(told))
    }

    /// Runs `ralph` in the slot.
    fn ralph(&self, args: &[&str]) -> Result<()> {
        let task = ralph_engine::sys::command::Task {
            program: child::ralph()?.into(),
            args: args.iter().map(Into::into).collect(),
            folder: &self.slot.folder,
            vars: self.slot.vars(),
            hidden: Vec::new(),
            input: Vec::new(),
            limit: Duration::from_mins(2),
            most_output: 64 << 10,
        };
        match task.run() {
            Ok(ran) if ran.code == Some(0) => Ok(()),
            Ok(ran) => Err(Problem::new(format!("ralph {}: {}", args[0], ran.stderr.trim()))),
            Err(_) => Err(Problem::new(format!("ralph {} did not end", args[0]))),
        }
    }

    /// One iteration, and whether the job was lost meanwhile.
    fn iteration(&self, held: &Held, spec: &Spec, reserved: u64) -> Result<(Iteration, bool)> {
        let folder = self.fleet.place.job(&held.id)?;
        let args = self.args(held, spec, &folder, reserved);
        let live = folder.join("live");
        let looked = Cell::new(Instant::now());
        let (lost, cancelled) = (Cell::new(false), Cell::new(false));
        let iteration = child::Run {
            slot: &self.slot,
            args,
            log: &folder.join("events.jsonl"),
            live: &|words| {
                let _ = settings::write(&live, secrets::mask(words).as_bytes());
            },
            cancelled: &|| {
                if looked.get().elapsed() >= LOOK_EVERY {
                    looked.set(Instant::now());
                    // A store that cannot be asked now is asked again: the next write decides.
                    lost.set(lost.get() || change::is_mine(&*self.fleet.store, &held.id, &held.claim).is_ok_and(|mine| !mine));
                    let want = self.now_wanted(&held.id);
                    cancelled.set(cancelled.get() || want.wish == Wish::Cancel || want.release == Some(held.claim.token));
                }
                lost.get() || cancelled.get() || self.fleet.ends_now()
            },
        }
        .run()?;
        let _ = fs::remove_file(&live);
        Ok((iteration, lost.get()))
    }

    fn args(&self, held: &Held, spec: &Spec, folder: &std::path::Path, reserved: u64) -> Vec<String> {
        let mut args: Vec<String> = ["run", "--once", "--no-wait", "--json", "--until-eof"].map(str::to_owned).to_vec();
        let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
        let goes_on = held.job.bundle.is_some() && held.job.back.is_none();
        if goes_on {
            add(&["--continue", "--again"]);
        } else {
            add(&["--prompt-file", &folder.join("prompt.md").display().to_string(), "--promise", PROMISE, "--name", &held.id]);
        }
        add(&["--gates", &folder.join("gates.toml").display().to_string()]);
        add(&["--usd", &format!("{:.2}", money::in_dollars(reserved))]);
        for (flag, value) in [("--agent", &spec.agent), ("--model", &spec.model)] {
            if let Some(value) = value {
                add(&[flag, value]);
            }
        }
        let is_its_own = |flag: &str| match flag {
            "--agent" | "--agent-cmd" | "--acp-cmd" => spec.agent.is_some(),
            "--model" => spec.model.is_some(),
            _ => false,
        };
        let released_at = held.job.is_renewed.then(|| count(&held.job, LOOP_ITERATION));
        for (flag, value) in self.fleet.settings.run.chunks_exact(2).map(|pair| (&*pair[0], &*pair[1])) {
            let value = if goes_on { sessions::again(flag, value, released_at) } else { Some(value.to_owned()) };
            if let Some(value) = value.filter(|_| !is_its_own(flag)) {
                add(&[flag, &value]);
            }
        }
        args
    }

    /// Saves what an iteration brought, as soon as there is space for it: the next job in this slot would clear it away. `None`: a person wants it no more, or it is another's.
    fn bring_patiently(&self, held: &mut Held, iteration: &Iteration, told: usize, cost: u64) -> Result<Option<Brought>> {
        loop {
            match self.bring(held, iteration, told, cost) {
                Err(problem) if problem.is_passing() => {
                    let is_lost = change::is_mine(&*self.fleet.store, &held.id, &held.claim).is_ok_and(|mine| !mine);
                    if is_lost || self.fleet.ends_now() || self.now_wanted(&held.id).wish == Wish::Cancel {
                        return Ok(None);
                    }
                    self.fleet.place.tell(Place::WORK, Some(format!("what the agent of {} did cannot be saved: {problem}", held.id)));
                    eprintln_once(&problem);
                    thread::sleep(PATIENCE);
                }
                brought => return brought.map(Some),
            }
        }
    }

    /// Saves what an iteration brought: commits and files in the fleet's repository, the loop as a file.
    fn bring(&self, held: &mut Held, iteration: &Iteration, told: usize, cost: u64) -> Result<Brought> {
        let (hub, token) = (&self.fleet.hub, held.claim.token);
        self.slot.git()?;
        let commit = hub.fetch_slot(&self.slot.folder, &held.id, token)?;
        let is_dirty = !self.slot.uncommitted()?.is_empty();
        let name = iteration.snapshot.as_ref().filter(|_| is_dirty);
        let snapshot = match name.map(|name| hub.fetch_snapshot(&self.slot.folder, name, &held.id, token)) {
            Some(Err(problem)) if problem.is_passing() => return Err(problem),
            fetched => fetched.and_then(Result::ok),
        };
        match snapshot {
            Some(commit) => held.job.rest.insert("snapshot".to_owned(), commit.into()),
            None => held.job.rest.remove("snapshot"),
        };
        // A loop that is complete is not gone on with: what comes back begins anew, with its commits.
        let goes_on = iteration.how != "complete" || iteration.doubtful;
        let bundle = if goes_on { Some(self.keep_loop(held)?) } else { None };
        hub.send_job(&held.id, token)?;
        let is_its_first = held.job.back.is_some() || held.job.bundle.is_none();
        let before = if is_its_first { 0 } else { count(&held.job, LOOP_TOKENS) };
        let tokens = iteration.total_tokens.saturating_sub(before);
        held.job.rest.insert(LOOP_TOKENS.to_owned(), iteration.total_tokens.into());
        if iteration.number > 0 {
            held.job.rest.insert(LOOP_ITERATION.to_owned(), iteration.number.into());
        }
        Ok(Brought { commit: Some(commit), bundle, usd_micros: cost, tokens, notes_told: told })
    }

    /// Saves the loop in the slot; the result names it.
    fn keep_loop(&self, held: &Held) -> Result<String> {
        let file: PathBuf = self.fleet.place.job(&held.id)?.join("loop.bundle");
        self.ralph(&["bundle", "export", &file.display().to_string()])?;
        let bytes = fs::read(&file).map_err(Problem::when(file.display()))?;
        self.fleet.hub.keep_loop(&bytes, &held.id, held.claim.token)
    }

    /// What becomes of a job whose `ralph run` did not tell its end.
    fn without_a_word(&self, id: &str, iteration: &Iteration) -> Result<Outcome> {
        let why = iteration.stderr.clone();
        Ok(match why.as_str() {
            _ if self.fleet.want(Some(id))?.wish == Wish::Cancel => Outcome::Cancelled,
            _ if self.fleet.drains() => Outcome::GivenBack { why: "its worker ended".to_owned() },
            told if tells_of_a_full_disk(told) => Outcome::GivenBack { why },
            // It refused to begin, and would again.
            told if !told.is_empty() && !iteration.is_cut_off() => Outcome::NeedsPerson { why },
            _ => Outcome::Failed { why: format!("`ralph run` ended without a word. {why}").trim_end().to_owned() },
        })
    }

    /// What an iteration's ending means for its job. `None`: it goes on.
    fn what_follows(&self, spec: &Spec, iteration: &Iteration) -> Result<Option<Outcome>> {
        let why = iteration.line.clone();
        Ok(match iteration.how.as_str() {
            "complete" if iteration.doubtful => {
                Some(Outcome::NeedsPerson { why: format!("it says that it is done, but its proof was weakened: {why}") })
            }
            "complete" => Some(Outcome::Proven),
            "enough" => None,
            "parked" => {
                let until = iteration.until_ms.unwrap_or_else(|| clock::now() + 60_000);
                if iteration.is_used_up {
                    self.park_account(spec, until)?;
                }
                Some(Outcome::Parked { until, why })
            }
            "interrupted" | "paused" | "cancelled" if self.fleet.want(Some(&spec.id))?.wish == Wish::Cancel => Some(Outcome::Cancelled),
            "interrupted" | "paused" if self.fleet.drains() => Some(Outcome::GivenBack { why: "its worker ended".to_owned() }),
            _ => Some(Outcome::NeedsPerson { why }),
        })
    }

    /// What a person wants of a job, as far as the store says it now.
    fn now_wanted(&self, id: &str) -> Want {
        let key = key(WANT, id);
        self.fleet.signers.want(&key, self.fleet.store.get(&key).ok().flatten().as_ref().map(|entry| &*entry.value))
    }

    /// A quota that one job found used up is used up for all.
    fn park_account(&self, spec: &Spec, until: Millis) -> Result<()> {
        change::shared::<Account>(&*self.fleet.store, &key(ACCOUNT, &self.account_of(spec)), |account| {
            Some(Account { version: VERSION, until: Some(until), ..account })
        })?;
        Ok(())
    }
}

/// How far the loop of a job is.
fn count(job: &Job, what: &str) -> u64 {
    job.rest.get(what).and_then(serde_json::Value::as_u64).unwrap_or(0)
}

fn prompt(spec: &Spec) -> String {
    format!(
        "{}\n\nYou work in a clone of the repository that is yours alone. Commit everything that belongs to this task on the current branch, with messages that say why. Do not push, and do not mark the task in a list: that is done when your work lands.\n",
        spec.task.trim()
    )
}

/// Whether the loop of a bundle works on this task. What a server or another machine put into its place would be an agent's prompt.
fn is_loop_of(spec: &Spec, bundle: &[u8]) -> Result<bool> {
    let prompts = bundle::prompts(bundle).map_err(Problem::when("the loop"))?;
    let wanted = prompt(spec);
    let is_it = |prompt: &String| match prompt.trim_start().strip_prefix(wanted.trim()) {
        // What is told of work that came back is no part of the task.
        Some(rest) => rest.trim().is_empty() || rest.trim_start().starts_with(CAME_BACK),
        None => false,
    };
    Ok(!prompts.is_empty() && prompts.iter().all(is_it))
}

/// Tells a problem, unless it was told just before.
fn eprintln_once(problem: &Problem) {
    use std::sync::Mutex;
    static LAST: Mutex<String> = Mutex::new(String::new());
    let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if *last != problem.0 {
        anstream::eprintln!("error: {problem}");
        last.clone_from(&problem.0);
    }
}
