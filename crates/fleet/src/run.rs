//! `ralph fleet run`: workers and a lander in one process, until everything has landed or waits for a person.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use ralph_core::money;
use ralph_engine::{
    store::project::Project,
    sys::{env, files, random, signals},
};

use crate::{
    board::{Board, Card},
    change,
    fleet::Fleet,
    gates,
    git::{Git, Identity},
    lander,
    problem::{Problem, Result},
    pull_requests,
    records::{LEDGER, Ledger, State, VERSION},
    seat::Seat,
    sessions,
    settings::{Land, Place, Settings, word},
    signing::{Pen, Signers},
    slot::Slot,
    store::{Store, nats},
    tasks,
    tidy::Tidy,
    worker::Worker,
};

/// What a person asks for.
#[derive(Debug, Default)]
pub struct Request {
    pub list: Option<String>,
    pub name: Option<String>,
    pub base: Option<String>,
    pub target: Option<String>,
    pub verify: Vec<String>,
    /// How long each of them may run, and of an item's own.
    pub deadline: Option<String>,
    /// 0: no limit.
    pub usd: f64,
    pub run: Vec<String>,
    pub land: Land,
    pub review: bool,
    pub squash: bool,
    pub queue: Queue,
    pub remote: Option<String>,
    /// Whose tasks are run, beside our own.
    pub signers: Vec<String>,
}

/// Where the records are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Queue {
    /// In a folder of this machine.
    #[default]
    Dir,
    /// On a NATS server, with this lease.
    Nats(String, Duration),
}

impl Queue {
    pub fn of(url: Option<&str>, lease: Duration) -> Result<Self> {
        match url {
            None => Ok(Queue::Dir),
            Some(url) if url.starts_with("nats://") || url.starts_with("tls://") => Ok(Queue::Nats(url.to_owned(), lease)),
            Some(url) => Err(Problem::new(format!("{url} is no queue: give nats://HOST:PORT or tls://HOST:PORT"))),
        }
    }

    pub fn place(&self, repository: &Path, name: &str) -> Result<Place> {
        match self {
            Queue::Dir => Place::of(repository, name),
            Queue::Nats(url, _) => Place::of_queue(url, name),
        }
    }

    pub fn open(&self, place: &Place, name: &str) -> Result<Arc<dyn Store>> {
        Ok(match self {
            Queue::Dir => Arc::new(place.open()?),
            Queue::Nats(url, lease) => {
                let access = nats::Access::from_env(env::of_nats);
                let server = nats::Nats::open(nats::Settings { access, lease: *lease, ..nats::Settings::new(url, &word(name)) })?;
                if let Some(advice) = server.advice() {
                    anstream::eprintln!("note: {advice}");
                }
                Arc::new(server)
            }
        })
    }
}

impl Queue {
    /// What writes tasks for this queue: over a server they are signed with the key that the server knows.
    pub fn pen(&self, name: &str) -> Result<Pen> {
        match self {
            Queue::Dir => Ok(Pen::default()),
            Queue::Nats(..) => Pen::with(&word(name), nats::Access::from_env(env::of_nats).nkey.as_deref()),
        }
    }
}

/// A fleet that is ready to work, and what a person should know before.
pub struct Ready {
    pub fleet: Fleet,
    pub added: usize,
    pub told: Vec<String>,
}

/// The top folder of the repository around a folder.
pub fn repository(around: &Path) -> Result<std::path::PathBuf> {
    let top = Git::at(around).word(&["rev-parse", "--show-toplevel"]);
    let top = top.map_err(|_| Problem::new(format!("{} is in no git repository: a fleet works on one", around.display())))?;
    Ok(top.into())
}

/// Makes or opens the fleet, and gives it the tasks of its list.
pub fn prepare(around: &Path, request: &Request) -> Result<Ready> {
    let repository = repository(around)?;
    let git = Git::at(&repository);
    let base = match &request.base {
        Some(base) => base.clone(),
        None => git
            .word(&["symbolic-ref", "--short", "HEAD"])
            .map_err(|_| Problem::new("no branch is checked out: say with --base which one the work begins from"))?,
    };
    if git.commit(&format!("refs/heads/{base}"))?.is_none() {
        return Err(Problem::new(format!("the branch {base} has no commit yet: a fleet needs one to begin from")));
    }
    let list = request.list.as_ref().map(|list| relative(&repository, around, list)).transpose()?;
    let name = request.name.clone().unwrap_or_else(|| list.as_deref().map_or_else(|| "tasks".to_owned(), stem));
    let place = request.queue.place(&repository, &name)?;
    if request.queue != Queue::Dir && request.remote.is_none() {
        return Err(Problem::new(
            "with --queue the machines need a repository that all of them can fetch from and push to: say which with --remote",
        ));
    }
    if request.land == Land::Pr {
        pull_requests::check(&repository, request.remote.as_deref())?;
    }
    let project = Project::at(&repository);
    let of_project = gates::of_project(&project)?;
    let all = gates::with_commands(&of_project.gates, &request.verify, request.deadline.as_deref())?;
    let settings = Settings {
        version: VERSION,
        id: place.id.clone(),
        identity: Identity::of(&repository),
        remote: request.remote.clone(),
        target: request.target.clone().unwrap_or_else(|| format!("ralph/{}", word(&name))),
        repository,
        list,
        base,
        run: request.run.clone(),
        gates: all,
        deadline: request.deadline.clone(),
        land: request.land,
        review: request.review,
        squash: request.squash,
        slots: of_project.slots,
        ..Settings::default()
    };
    if settings.target == settings.base {
        return Err(Problem::new(format!("{} is your own branch: work lands on another one", settings.base)));
    }
    begin(place, settings, request, &name, &of_project.left_out)
}

fn begin(place: Place, settings: Settings, request: &Request, name: &str, left_out: &[String]) -> Result<Ready> {
    let mut told: Vec<String> = left_out.iter().map(|gate| format!("the gate {gate} is not for single jobs, and is left out")).collect();
    if gates::count(&settings.gates) == 0 {
        told.push("there is no gate: nothing proves the work but the agents' word. Add --verify \"…\", or gates in ralph.toml".to_owned());
    }
    let specs = match &settings.list {
        Some(list) => {
            let path = settings.repository.join(list);
            let bytes = files::read(&path, ralph_core::gate::list::MAX_BYTES).map_err(Problem::when(format!("{list} cannot be read")))?;
            let specs = tasks::of_list(&bytes).map_err(|problem| Problem::new(format!("{list}: {problem}")))?;
            sessions::refuse_unknown_agents(list, &specs)?;
            gates::refuse_untrusted(&Project::at(&settings.repository), list, &specs, &settings.run)?;
            specs
        }
        None => Vec::new(),
    };
    let store = request.queue.open(&place, name)?;
    let pen = request.queue.pen(name)?;
    let own = pen.public().filter(|_| !request.signers.is_empty());
    let signers = Signers::of(&word(name), request.signers.iter().cloned().chain(own).collect())?;
    settings.write(&*store, &pen)?;
    let limit_micros = money::of_reported(request.usd);
    change::shared::<Ledger>(&*store, LEDGER, |ledger| Some(Ledger { version: VERSION, limit_micros, ..ledger }))?;
    let added = tasks::add(&*store, &pen, &specs)?;
    let fleet = Fleet::open(place, settings, store, signers)?;
    fleet.hub.fetch_person()?;
    Ok(Ready { fleet, added, told })
}

fn stem(list: &str) -> String {
    Path::new(list).file_stem().map_or_else(|| "list".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// A file as git names it.
fn relative(repository: &Path, around: &Path, file: &str) -> Result<String> {
    let real = around.join(file).canonicalize().map_err(Problem::when(format!("{file} cannot be read")))?;
    let top = repository.canonicalize().map_err(Problem::when("the repository cannot be read"))?;
    let inside = real.strip_prefix(&top).map_err(|_| Problem::new(format!("{file} is not in this repository")))?;
    Ok(inside.to_string_lossy().replace('\\', "/"))
}

/// How a fleet's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Everything has landed.
    Landed,
    /// The rest waits for a person.
    NeedsPerson,
    /// The money is spent.
    Broke,
    /// A person had its workers end.
    Drained,
    /// A person or the system ended it.
    Interrupted,
}

/// Who works in this process.
#[derive(Debug, Clone)]
pub struct Crew {
    pub workers: usize,
    pub pools: Vec<String>,
    /// It lands, too.
    pub lands: bool,
    /// It ends when nothing is left to do. Otherwise it works until it is told to end.
    pub ends: bool,
}

/// Works until there is nothing left to do. `look` is called again and again, with what is known.
pub fn work(fleet: &Fleet, crew: &Crew, look: &mut dyn FnMut(&Board)) -> Result<End> {
    fleet.told.get_or_init(signals::Told::listen);
    let (over, working) = (AtomicBool::new(false), AtomicUsize::new(crew.workers));
    let is_over = || over.load(Ordering::Relaxed);
    let mut holds = Vec::new();
    let own = random::uuid();
    let mut named = |kind: &str| -> Result<String> {
        let name = format!("{kind}-{}", &own[..8]);
        holds.push(fleet.store.hold(&name)?);
        Ok(name)
    };
    let names: Vec<String> = (1..=crew.workers).map(|n| named(&format!("w{n}"))).collect::<Result<_>>()?;
    let of_lander = named("lander")?;
    let seats = Seat::of_workers(crew.workers)?;
    thread::scope(|scope| {
        for (name, seat) in names.into_iter().zip(seats) {
            let (folder, pools) = (seat.number.to_string(), crew.pools.clone());
            let slot = Slot::take(&fleet.place, &fleet.settings, seat, &folder);
            let working = &working;
            scope.spawn(move || {
                Worker { fleet, name, slot, pools, board: fleet.board(), drains: None }.work(&is_over);
                working.fetch_sub(1, Ordering::Relaxed);
                fleet.bell.ring();
            });
        }
        if crew.lands {
            scope.spawn(move || lander::work(fleet, of_lander, &is_over));
        }
        let ended = watch(fleet, crew, &working, look);
        over.store(true, Ordering::Relaxed);
        fleet.bell.ring();
        ended
    })
}

/// How often is looked what other processes did.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks on until there is nothing left to do.
fn watch(fleet: &Fleet, crew: &Crew, working: &AtomicUsize, look: &mut dyn FnMut(&Board)) -> Result<End> {
    let (mut board, mut tidy) = (fleet.board(), Tidy::default());
    loop {
        let rung = fleet.bell.rung();
        // A store that cannot be asked now is asked again.
        let _ = board.refresh(&*fleet.store);
        look(&board);
        tidy.look(fleet, &board, false);
        if fleet.drains() {
            anstream::eprintln!("no job is begun any more; what runs finishes its iteration, and a second Ctrl-C or SIGTERM ends it now");
            return Ok(End::Interrupted);
        }
        if crew.workers > 0 && working.load(Ordering::Relaxed) == 0 {
            return Ok(End::Drained);
        }
        if let Some(end) = end_of(fleet, &board).filter(|_| crew.ends && fleet.has_asked.load(Ordering::Relaxed)) {
            tidy.look(fleet, &board, true);
            return Ok(end);
        }
        fleet.bell.wait(rung, LOOK_EVERY);
    }
}

fn end_of(fleet: &Fleet, board: &Board) -> Option<End> {
    let is_broke = fleet.is_broke.load(Ordering::Relaxed);
    let mut end = End::Landed;
    for (_, card) in board.cards() {
        let this = match card.job.state {
            State::Landed | State::Cancelled => continue,
            // A person has said what becomes of it, and a worker will see that.
            _ if card.left_alone().is_none() && card.job.wished(&card.want, 0).is_some() => return None,
            // The list is complete without it.
            State::NeedsPerson if card.spec.optional => continue,
            _ if card.left_alone().is_some() => End::NeedsPerson,
            State::NeedsPerson => End::NeedsPerson,
            State::Proven if fleet.settings.land == Land::None || card.pull_request().is_some() => continue,
            State::Proven if fleet.settings.review && card.is_waiting_for_review() => End::NeedsPerson,
            State::Waits if is_stuck(fleet, board, card, 0) => End::NeedsPerson,
            State::Waits if is_broke => End::Broke,
            _ => return None,
        };
        end = if end == End::Broke || this == End::Broke { End::Broke } else { this };
    }
    Some(end)
}

/// Whether it waits for a job that will not land by itself.
fn is_stuck(fleet: &Fleet, board: &Board, card: &Card, depth: usize) -> bool {
    let Settings { land, review, .. } = fleet.settings;
    let rests = |other: &Card| match other.job.state {
        State::NeedsPerson | State::Cancelled => true,
        State::Proven => land == Land::None || other.pull_request().is_some() || (review && other.is_waiting_for_review()),
        State::Waits => is_stuck(fleet, board, other, depth + 1),
        _ => false,
    };
    depth < 100 && board.waits_for(card).any(|id| board.card(id).is_none_or(rests))
}
