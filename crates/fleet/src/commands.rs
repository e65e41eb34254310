//! The command line of `ralph fleet`.

use std::{
    io::{IsTerminal as _, Write as _, stdout},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use clap::{CommandFactory, Parser, Subcommand};
use ralph_core::gate::Command;
use ralph_engine::{hosts, sys::env};

use crate::{
    board::Board,
    described,
    fleet::Fleet,
    history, live, metrics,
    people::{self, Act},
    problem::{Problem, Result},
    report,
    run::{self, Crew, End, Queue, Ready, Request},
    screen::{self, Around},
    serve,
    sessions::Sessions,
    settings::{self, Land, Place, Settings},
    signing::{Pen, Signers},
    store::Store,
};

/// Work on a list with several agents at once, and land what is proven
///
/// Each job has a clone of the repository to itself, and the same gates. What is proven lands on a branch of the fleet's own, one job at a time, after the gates
/// have passed again on the merged files. Your files, your index and the branch that you have checked out are never touched.
#[derive(Parser)]
#[command(name = "ralph fleet", bin_name = "ralph fleet", version, disable_help_subcommand = true, max_term_width = 100)]
#[command(after_help = "Examples:
  ralph fleet run feature_list.json --workers 4 --verify \"cargo test\" --usd 60
  ralph fleet                      one screen: waits, runs, proven, landed, needs you
  ralph fleet add \"Fix #123\"       one more task
  ralph fleet report               what happened, and the line that brings the work into your branch")]
struct Cli {
    /// The project's folder
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    folder: Option<PathBuf>,
    /// Which fleet, by its list's name; without it the one that worked last
    #[arg(long, value_name = "NAME", global = true)]
    fleet: Option<String>,
    /// A NATS server with the fleet's records, for several machines: nats://HOST:PORT; `NATS_NKEY`, `NATS_CREDS` and `NATS_CA` say how to get in
    #[arg(long, value_name = "URL", global = true)]
    queue: Option<String>,
    /// After so many seconds of silence the jobs of a machine are taken by others; the same on all machines
    #[arg(long, value_name = "SECONDS", global = true, default_value_t = 60, hide = true)]
    lease: u64,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    Run(Box<RunArgs>),
    /// Work on the jobs of a queue, on this machine, until it is told to end: SIGTERM, Ctrl-C or `ralph fleet drain` finishes the iteration and gives the job back; a second signal ends it now
    Worker {
        /// Agents at once; with --land also 0
        #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=256))]
        slots: u16,
        /// Land what is proven, too: one machine has to, if not the one with `ralph fleet run`
        #[arg(long)]
        land: bool,
        /// Take jobs of this pool, too; may be given several times
        #[arg(long, value_name = "POOL")]
        pool: Vec<String>,
        /// Run only what this public nkey signed (`NATS_NKEY` of the one who began the fleet or added the task); may be given several times
        #[arg(long, value_name = "KEY")]
        signer: Vec<String>,
    },
    /// Add a task in words
    Add {
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Tell an agent something, before its next iteration
    Steer {
        job: String,
        #[arg(required = true)]
        note: Vec<String>,
    },
    /// Begin nothing new; with a job, stop it after its iteration
    Pause {
        job: Option<String>,
    },
    /// Take a pause back
    Resume {
        job: Option<String>,
    },
    /// Have all workers, or this one, end after their iteration: their jobs are given back, and the programs exit with 0
    Drain {
        /// As `ralph fleet status --json` names it, or only the part behind its dash: all slots of one program
        worker: Option<String>,
    },
    /// Cancel a job
    Cancel {
        job: String,
    },
    /// Let another worker take a job whose worker does not answer, or that needed you
    Release {
        job: String,
    },
    /// Land a proven job, with --review
    Land {
        job: String,
    },
    /// Send a proven job back to its agent
    Back {
        job: String,
        #[arg(required = true)]
        why: Vec<String>,
    },
    /// The screen once, or as JSON
    Status {
        /// For programs: JSON
        #[arg(long)]
        json: bool,
    },
    /// What happened, and the line that brings the work into your branch
    Report {
        /// For programs: JSON
        #[arg(long)]
        json: bool,
    },
    /// The figures as Prometheus text
    Metrics,
    Serve(serve::Args),
    /// The commands as JSON, for `ralph completions` and `ralph man`
    #[command(hide = true)]
    Described,
}

/// Work on a list, or on the tasks that were added
///
/// Goes on where it was. Ctrl-C or SIGTERM lets each agent finish its iteration; a second one ends them now. Exit code 0 if everything has landed, or after SIGTERM and
/// `ralph fleet drain`, 12 if something needs a person, 10 if the money is spent, 130 after Ctrl-C or a second signal.
#[derive(clap::Args)]
struct RunArgs {
    /// `feature_list.json`, prd.json, or a Markdown file with check boxes
    list: Option<String>,
    /// Agents at once; with --queue 0 only adds the tasks, for the workers of other machines
    #[arg(long, short = 'w', default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=256))]
    workers: u16,
    /// A command that must pass before a job is proven, and again before it lands; may be given several times
    #[arg(long, value_name = "CMD")]
    verify: Vec<String>,
    /// How long each of these commands, and of an item's own, may run: 90s, 10m, 2h, or seconds [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = |text: &str| Command::parse_deadline(text).map(|_| text.to_owned()))]
    deadline: Option<String>,
    /// Dollars for all jobs together; 0 means no limit
    #[arg(long, default_value_t = 50.0, value_name = "X")]
    usd: f64,
    /// The branch that the work begins from [default: the one that is checked out]
    #[arg(long, value_name = "BRANCH")]
    base: Option<String>,
    /// The branch that it lands on [default: ralph/ and the list's name]
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,
    /// Where proven work goes: the fleet's branch, a pull request each, or nowhere
    #[arg(long, value_enum, default_value_t = Land::Branch)]
    land: Land,
    /// Land only what you have looked at: `ralph fleet land JOB`, or `back JOB \"why\"`
    #[arg(long)]
    review: bool,
    /// One commit for each job, instead of a merge
    #[arg(long)]
    squash: bool,
    /// Take jobs of this pool, too; may be given several times
    #[arg(long, value_name = "POOL")]
    pool: Vec<String>,
    /// With --queue: the repository that all machines fetch from and push to
    #[arg(long, value_name = "URL")]
    remote: Option<String>,
    /// With --queue: run only what this public nkey signed, or your own; may be given several times
    #[arg(long, value_name = "KEY")]
    signer: Vec<String>,
    #[command(flatten)]
    sessions: Sessions,
}

/// Runs the command line; the result is the exit code.
pub fn run() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            let _ = e.print();
            return u8::try_from(e.exit_code()).unwrap_or(2);
        }
    };
    match act(cli) {
        Ok(code) => code,
        Err(problem) => {
            anstream::eprintln!("error: {problem}");
            1
        }
    }
}

fn act(cli: Cli) -> Result<u8> {
    if matches!(cli.what, Some(What::Described)) {
        return Ok(say(&described::of(&Cli::command()).to_string()));
    }
    let around = match cli.folder {
        Some(folder) => folder,
        None => std::env::current_dir().map_err(Problem::when("the current folder"))?,
    };
    let changes = !matches!(cli.what, None | Some(What::Status { .. } | What::Report { .. } | What::Metrics));
    if changes && hosts::of_an_agent().is_some() {
        return Err(Problem::new("this is an agent's shell: only a person commands a fleet"));
    }
    let queue = Queue::of(cli.queue.as_deref(), Duration::from_secs(cli.lease))?;
    match cli.what {
        Some(What::Run(args)) => work(&around, *args, cli.fleet, queue),
        Some(What::Add { task }) => add(&around, &task.join(" "), cli.fleet, &queue),
        Some(What::Worker { slots, pool, signer, land }) => {
            if slots == 0 && !land {
                return Err(Problem::new("a worker without slots does nothing: give --slots 1 or more, or --land"));
            }
            let signers = Signers::of(&settings::word(cli.fleet.as_deref().unwrap_or_default()), signer)?;
            let crew = Crew { workers: usize::from(slots), pools: pool, lands: land, ends: false };
            help_out(&around, &crew, (cli.fleet.as_deref(), signers), &queue)
        }
        what => {
            let (place, settings, store) = open(&around, cli.fleet.as_deref(), &queue, &Signers::default())?;
            let mut board = Board::default();
            board.refresh(&*store)?;
            let pen = queue.pen(cli.fleet.as_deref().unwrap_or_default())?;
            command(what, (&place, &settings), &store, pen, &mut board)
        }
    }
}

/// The fleet that is meant.
fn open(around: &std::path::Path, name: Option<&str>, queue: &Queue, signers: &Signers) -> Result<(Place, Settings, Arc<dyn Store>)> {
    let none = || Problem::new("there is no fleet in this repository: `ralph fleet run LIST` begins one");
    if *queue != Queue::Dir {
        let name = name.ok_or_else(|| Problem::new("with --queue say which fleet is meant: --fleet NAME"))?;
        let place = queue.place(around, name)?;
        let store = queue.open(&place, name)?;
        let settings = Settings::read(&*store, signers)?
            .ok_or_else(|| Problem::new(format!("there is no fleet {name} on that server: `ralph fleet run LIST --queue …` begins one")))?;
        return Ok((place, settings, store));
    }
    let repository = run::repository(around)?;
    let place = match name {
        Some(name) => Some(Place::of(&repository, name)?).filter(|place| place.root().is_dir()),
        None => Place::all_of(&repository).into_iter().next(),
    };
    let place = place.ok_or_else(none)?;
    let store: Arc<dyn Store> = Arc::new(place.open()?);
    let settings = Settings::read(&*store, signers)?.ok_or_else(none)?;
    Ok((place, settings, store))
}

/// A worker for a fleet that was begun elsewhere.
fn help_out(around: &std::path::Path, crew: &Crew, (name, signers): (Option<&str>, Signers), queue: &Queue) -> Result<u8> {
    let (place, mut settings, store) = open(around, name, queue, &signers)?;
    // The folder may be another machine's: what is copied comes from where this worker was started.
    match run::repository(around) {
        Ok(own) if *queue != Queue::Dir => settings.repository = own,
        _ if settings.repository.is_dir() => {}
        own => settings.repository = own.unwrap_or_else(|_| around.to_owned()),
    }
    let fleet = Fleet::open(place, settings, store, signers)?;
    let mut shown = Shown::new(false);
    anstream::println!("{} at work on {}; Ctrl-C or SIGTERM ends it after the iteration", crew.workers, fleet.settings.id);
    run::work(&fleet, crew, &mut |board| shown.look(&fleet, board))?;
    Ok(0)
}

fn command(what: Option<What>, (place, settings): (&Place, &Settings), store: &Arc<dyn Store>, pen: Pen, board: &mut Board) -> Result<u8> {
    let act = match what {
        None => {
            if stdout().is_terminal() && !env::is_dumb_terminal() {
                live::show(place, settings, store, &pen, board)?;
                return Ok(0);
            }
            return Ok(say(&screen::lines(board, &Around::read(&**store, place)?, settings, place, size()).join("\n")));
        }
        Some(What::Status { json: true } | What::Report { json: true }) => return Ok(say(&report::json(board, store, place, settings)?)),
        Some(What::Status { .. }) => {
            return Ok(say(&screen::lines(board, &Around::read(&**store, place)?, settings, place, size()).join("\n")));
        }
        Some(What::Report { .. }) => return Ok(say(&report::text(board, store, place, settings)?)),
        Some(What::Metrics) => return Ok(say(metrics::text(board, &**store, place)?.trim_end())),
        Some(What::Serve(args)) => return serve::run(&args, place, settings, store, pen),
        Some(What::Steer { job, note }) => Act::Steer { job, text: note.join(" ") },
        Some(What::Pause { job }) => Act::Pause { job },
        Some(What::Resume { job }) => Act::Resume { job },
        Some(What::Drain { worker }) => Act::Drain { worker },
        Some(What::Cancel { job }) => Act::Cancel { job },
        Some(What::Release { job }) => Act::Release { job },
        Some(What::Land { job }) => Act::Land { job },
        Some(What::Back { job, why }) => Act::Back { job, text: why.join(" ") },
        Some(What::Run(_) | What::Add { .. } | What::Worker { .. } | What::Described) => return Ok(0),
    };
    Ok(say(&act.run(&**store, &pen, board)?))
}

fn say(text: &str) -> u8 {
    anstream::println!("{text}");
    0
}

fn add(around: &std::path::Path, task: &str, fleet: Option<String>, queue: &Queue) -> Result<u8> {
    let pen = queue.pen(fleet.as_deref().unwrap_or_default())?;
    let store = match open(around, fleet.as_deref(), queue, &Signers::default()) {
        Ok((_, _, store)) => store,
        Err(problem) if *queue != Queue::Dir => return Err(problem),
        // The first task of a repository: its fleet begins with it.
        Err(_) => {
            let request = Request { name: fleet, usd: 50.0, ..Request::default() };
            run::prepare(around, &request)?.fleet.store
        }
    };
    let id = people::add(&*store, &pen, task)?;
    Ok(say(&format!("{id} is added; `ralph fleet run` works on it")))
}

fn work(around: &std::path::Path, args: RunArgs, name: Option<String>, queue: Queue) -> Result<u8> {
    let request = Request {
        run: args.sessions.args(),
        list: args.list,
        name,
        base: args.base,
        target: args.target,
        verify: args.verify,
        deadline: args.deadline,
        usd: args.usd,
        land: args.land,
        review: args.review,
        squash: args.squash,
        queue,
        remote: args.remote,
        signers: args.signer,
    };
    if args.workers == 0 && request.queue == Queue::Dir {
        return Err(Problem::new("--workers 0 only adds tasks for other machines, and there is no --queue that they could take them from"));
    }
    let Ready { fleet, added, told } = run::prepare(around, &request)?;
    for line in told {
        anstream::eprintln!("note: {line}");
    }
    let money = if request.usd > 0.0 { format!("at most ${:.2}", request.usd) } else { "no limit on money".to_owned() };
    anstream::println!("{added} new jobs, {} workers, {money}; proven work lands on {}", args.workers, fleet.settings.target);
    if args.workers == 0 {
        return Ok(say("`ralph fleet worker` works on them, and one of the workers lands with --land"));
    }
    let mut board = fleet.board();
    board.refresh(&*fleet.store)?;
    for pool in board.pools().filter(|pool| !args.pool.iter().any(|own| own == pool)) {
        anstream::eprintln!("note: some jobs are for workers of the pool {pool}: `--pool {pool}` takes them here, too");
    }
    let mut shown = Shown::new(stdout().is_terminal());
    let crew = Crew { workers: usize::from(args.workers), pools: args.pool, lands: true, ends: true };
    let end = run::work(&fleet, &crew, &mut |board| shown.look(&fleet, board))?;
    board.refresh(&*fleet.store)?;
    shown.look(&fleet, &board);
    shown.clear();
    say(&report::text(&board, &fleet.store, &fleet.place, &fleet.settings)?);
    if matches!(end, End::Interrupted | End::Drained) {
        say("\nThe same `ralph fleet run` goes on where it was.");
    }
    Ok(match end {
        End::Landed | End::Drained => 0,
        End::NeedsPerson => 12,
        End::Broke => 10,
        // Each iteration was finished, as after `drain`.
        End::Interrupted if !fleet.is_interrupted() && !fleet.ends_now() => 0,
        End::Interrupted => 130,
    })
}

/// What a run shows: in a terminal the screen, drawn in place; otherwise a line for each thing that happens.
struct Shown {
    lines: usize,
    /// How much of the log.
    told: u64,
    in_place: bool,
    last: Option<std::time::Instant>,
    /// How much of the board had been read when the log was.
    taken: u64,
}

impl Shown {
    fn new(in_place: bool) -> Self {
        Shown { lines: 0, told: 0, in_place, last: None, taken: 0 }
    }

    fn look(&mut self, fleet: &Fleet, board: &Board) {
        if self.in_place && self.last.is_some_and(|last| last.elapsed() < Duration::from_millis(400)) {
            return;
        }
        self.last = Some(std::time::Instant::now());
        if self.in_place {
            let (width, height) = size();
            if let Ok(around) = Around::read(&*fleet.store, &fleet.place) {
                let lines = screen::lines(board, &around, &fleet.settings, &fleet.place, (width, height.saturating_sub(2)));
                self.clear();
                self.lines = lines.len();
                anstream::println!("{}", lines.join("\n"));
            }
            return;
        }
        // What happens is written beside a change of a job.
        if board.taken() == self.taken {
            return;
        }
        self.taken = board.taken();
        for line in history::read_since(&*fleet.store, &mut self.told).unwrap_or_default() {
            anstream::println!("{}", history::told(&line));
        }
    }

    fn clear(&mut self) {
        if self.lines > 0 {
            // Not by way of what leaves out styles: it would leave out this, too.
            let _ = write!(stdout(), "\x1b[{}A\x1b[J", self.lines).and_then(|()| stdout().flush());
            self.lines = 0;
        }
    }
}

fn size() -> (usize, usize) {
    terminal_size::terminal_size().map_or((100, 1000), |(width, height)| (usize::from(width.0), usize::from(height.0)))
}
