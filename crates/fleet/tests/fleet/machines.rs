//! "Machines", each with a home and a clone of its own, on one real server: processes are killed, stopped past their lease, the server is killed and started again.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use ralph_fleet::{
    records::State,
    signing::Signers,
    store::{Store as _, nats},
};
use ralph_testkit::{NatsServer, NatsVersion, Pty};

use crate::{
    bed::{Bed, compact},
    histories,
};

const JOBS: usize = 40;

/// Every job takes two iterations; the second one needs the first one's work, wherever that was done.
const AGENT: &str = "echo \"$(basename \"$HOME\") $(cat .env)\" >> \"$MARKS/env\"; sleep 0.2\nif [ -f \"$task.begun\" ]; then echo x > \"$task.txt\"; say \"$task\"; else echo x > \"$task.begun\"; git add -A; git commit -qm begun; fi\n";

struct Machine<'b> {
    bed: &'b Bed,
    name: &'static str,
    url: String,
    child: Option<Child>,
}

impl<'b> Machine<'b> {
    /// With a home and a clone of its own, and there a file that git does not know.
    fn new(bed: &'b Bed, name: &'static str, url: &str, remote: &str) -> Self {
        let home = bed.root.path().join(name);
        std::fs::create_dir(&home).unwrap();
        bed.git(&["clone", "-q", remote, home.join("clone").to_str().unwrap()]);
        std::fs::write(home.join("clone/.env"), name).unwrap();
        Machine { bed, name, url: url.to_owned(), child: None }
    }

    fn start(&mut self, more: &[&str]) {
        let home = self.bed.root.path().join(self.name);
        let log =
            std::fs::OpenOptions::new().append(true).create(true).open(self.bed.root.path().join(format!("{}.log", self.name))).unwrap();
        let args = [&["worker", "--fleet", "feature_list", "--lease", "5", "--queue", &self.url], more].concat();
        let mut command = self.bed.command(&args);
        command.current_dir(home.join("clone")).env("HOME", home).stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log);
        self.child = Some(command.spawn().unwrap());
    }

    fn signal(&self, name: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn f3_forty_jobs_on_three_machines_land_once_each_under_a_nemesis() {
    let server = match NatsServer::start(NatsVersion::Newest, "") {
        Ok(server) => server,
        Err(skip) => return skip.tell(),
    };
    let names: Vec<String> = (0..JOBS).map(|n| format!("J{n}")).collect();
    let list = compact(&names.iter().map(|name| (name.as_str(), name.as_str())).collect::<Vec<_>>());
    let toml = "[fleet]\ncopy = [\".env\"]\n";
    let bed = Bed::new(&[("feature_list.json", &list), ("ralph.toml", toml), (".gitignore", ".env\n")], AGENT);
    bed.write(".env", "home");
    assert_eq!(bed.ralph(&["trust", "--yes"]).0, 0);
    let remote = bed.root.path().join("remote.git");
    bed.git(&["clone", "-q", "--bare", ".", remote.to_str().unwrap()]);
    let url = server.url();
    // The first one makes the bucket: this one keeps all values of a job.
    drop(nats::Nats::open(nats::Settings { history: 64, ..nats::Settings::new(&url, "feature-list") }).unwrap());
    let mut more = vec!["--workers", "1", "--verify", "true", "--queue", &url, "--lease", "5", "--remote", remote.to_str().unwrap()];
    more.extend(["--fleet", "feature_list"]);
    let mut run = bed.start("feature_list.json", &more);
    bed.until("the fleet", || bed.log().contains("new jobs"));
    let mut machines = ["two", "three"].map(|name| Machine::new(&bed, name, &url, remote.to_str().unwrap()));
    for machine in &mut machines {
        machine.start(&["--slots", "2"]);
    }
    let landed = || git_log(&remote).lines().filter(|line| !line.is_empty()).count();
    for round in 1..=3 {
        bed.until("landings", || landed() >= round * 6 || run_ended(&remote));
        machines[0].kill();
        machines[1].signal("STOP");
        // The lander, with whatever it was about to say.
        run.kill().unwrap();
        run.wait().unwrap();
        server.kill();
        thread::sleep(Duration::from_millis(500));
        server.restart();
        run = bed.start("feature_list.json", &more);
        machines[0].start(&["--slots", "2"]);
        // Longer than a lease.
        thread::sleep(Duration::from_secs(6));
        machines[1].signal("CONT");
    }
    let mut code = run.wait().unwrap().code();
    // Whose workers died three times in a row is a person's case, who lets it be tried again.
    let at = ["--queue", &url, "--fleet", "feature_list"];
    for _ in 0..3 {
        let (_, status) = bed.fleet(&[&["status", "--json"][..], &at].concat());
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        let waiting = status["jobs"].as_array().unwrap().iter().filter(|job| job["state"] == "needs-person");
        for job in waiting {
            assert!(job["why"].as_str().unwrap().contains("workers in a row"), "{job}");
            assert_eq!(bed.fleet(&[&["release", job["id"].as_str().unwrap()][..], &at].concat()).0, 0);
        }
        if code == Some(0) {
            break;
        }
        code = bed.start("feature_list.json", &more).wait().unwrap().code();
    }
    for machine in &machines {
        machine.signal("TERM");
    }
    for machine in &mut machines {
        assert!(machine.child.as_mut().unwrap().wait().unwrap().success());
    }
    assert_eq!(code, Some(0), "{}", bed.log());
    no_stale_write(&server.url());
    let seen = std::fs::read_to_string(bed.marks().join("env")).unwrap();
    let seen: std::collections::BTreeSet<&str> = seen.lines().collect();
    assert_eq!(seen, ["home home", "two two", "three three"].into(), "each machine has its own files");
    let log = git_log(&remote);
    let mut jobs: Vec<&str> = log.lines().filter(|line| !line.is_empty()).collect();
    jobs.sort_unstable();
    let count = jobs.len();
    jobs.dedup();
    assert_eq!((jobs.len(), count), (JOBS, JOBS), "each one once: {log}");
    let shown = Command::new("git").current_dir(&remote).args(["show", "ralph/feature-list:feature_list.json"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&shown.stdout), list.replace("false", "true"));
}

fn git_log(remote: &std::path::Path) -> String {
    let args = ["log", "--first-parent", "--format=%(trailers:key=Ralph-Job,valueonly)", "ralph/feature-list"];
    let output = Command::new("git").current_dir(remote).args(args).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn run_ended(remote: &std::path::Path) -> bool {
    git_log(remote).lines().filter(|line| !line.is_empty()).count() >= JOBS
}

/// The server took each write from the job's holder at that time, and each job landed once.
fn no_stale_write(url: &str) {
    let histories = histories::of_jobs(url, "feature-list");
    histories::check(&histories, JOBS, |_| None);
    for (id, values) in histories {
        let last = values.last().unwrap();
        assert!(last.state == State::Landed && last.iterations >= 2, "{id}: {last:?}");
    }
}

/// Two machines land at the same time: the push of the slower one is refused, without force, and it tries its work again on what landed meanwhile.
#[test]
fn f4_landers_of_two_machines_land_each_job_once() {
    let server = match NatsServer::start(NatsVersion::Newest, "") {
        Ok(server) => server,
        Err(skip) => return skip.tell(),
    };
    let list = compact(&[("A", "alpha"), ("B", "beta")]);
    let bed = Bed::new(&[("feature_list.json", &list)], "echo x > \"$task.txt\"; say x\n");
    let remote = bed.root.path().join("remote.git");
    bed.git(&["clone", "-q", "--bare", ".", remote.to_str().unwrap()]);
    // Both landers are in their gates at the same time once.
    bed.write_outside(
        "gate.sh",
        "case \"$PWD\" in */lander) ;; *) exit;; esac\necho \"$(basename \"$HOME\") $(ls *.txt | xargs)\" >> \"$MARKS/tried\"\ntouch \"$MARKS/at-$(basename \"$HOME\")\"\n\
         n=0; while [ ! -e \"$MARKS/at-two\" ] || [ ! -e \"$MARKS/at-three\" ]; do n=$((n+1)); [ $n -gt 1000 ] && exit 1; sleep 0.1; done\n",
    );
    let gate = format!("sh '{}'", bed.root.path().join("gate.sh").display());
    let (url, remote) = (server.url(), remote.to_str().unwrap());
    let at = ["--queue", &url, "--fleet", "feature_list", "--remote", remote, "--workers", "0", "--verify", &gate];
    let (code, said) = bed.run("feature_list.json", &at);
    assert_eq!(code, 0, "{said}");
    let mut machines = ["two", "three"].map(|name| Machine::new(&bed, name, &url, remote));
    for machine in &mut machines {
        machine.start(&["--slots", "1", "--land"]);
    }
    let landed = || git_log(Path::new(remote)).lines().filter(|line| !line.is_empty()).count();
    bed.until("both landings", || landed() == 2);
    for machine in &mut machines {
        machine.signal("TERM");
        assert!(machine.child.as_mut().unwrap().wait().unwrap().success());
    }
    let tried = std::fs::read_to_string(bed.marks().join("tried")).unwrap();
    let mut tried: Vec<&str> = tried.lines().collect();
    tried.sort_unstable();
    // Each its own job, and one of them again, with the other's work.
    assert_eq!(tried.len(), 3, "{tried:?}");
    let again: Vec<_> = tried.iter().filter(|line| line.ends_with(" alpha.txt beta.txt")).collect();
    assert_eq!(again.len(), 1, "{tried:?}");
    let show = |name: &str| Command::new("git").current_dir(remote).args(["show", &format!("ralph/feature-list:{name}")]).output().unwrap();
    assert!(["alpha.txt", "beta.txt"].iter().all(|name| show(name).status.success()));
    assert_eq!(String::from_utf8_lossy(&show("feature_list.json").stdout), list.replace("false", "true"));
}

/// Why a landing waits stands beside its job, on every machine that looks.
#[test]
fn f6_another_machine_sees_why_landing_waits() {
    let server = match NatsServer::start(NatsVersion::Newest, "") {
        Ok(server) => server,
        Err(skip) => return skip.tell(),
    };
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > \"$task.txt\"; say x\n");
    let remote = bed.root.path().join("remote.git");
    bed.git(&["clone", "-q", "--bare", ".", remote.to_str().unwrap()]);
    let (url, gate) = (server.url(), "case \"$PWD\" in */lander) echo red; exit 1;; esac");
    let at = ["--queue", &url, "--fleet", "feature_list", "--remote", remote.to_str().unwrap(), "--workers", "1", "--verify", gate];
    let mut run = bed.start("feature_list.json", &at);
    let elsewhere = Machine::new(&bed, "elsewhere", &url, remote.to_str().unwrap());
    let home = bed.root.path().join(elsewhere.name);
    let look = || {
        let mut command = bed.command(&["status", "--fleet", "feature_list", "--queue", &url]);
        let output = command.current_dir(home.join("clone")).env("HOME", &home).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    bed.until("the reason", || look().contains("fails without this job"));
    assert!(look().contains("proven"), "{}", look());
    run.kill().unwrap();
    run.wait().unwrap();
}

/// Workers that ask for signatures run only what a known key signed: neither a fleet that another one began, nor a task that another one added or changed.
#[test]
fn f7_only_signed_tasks_are_run_where_signatures_are_asked_for() {
    let server = match NatsServer::start(NatsVersion::Newest, "") {
        Ok(server) => server,
        Err(skip) => return skip.tell(),
    };
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > \"$task.txt\"; say x\n");
    let remote = bed.root.path().join("remote.git");
    bed.git(&["clone", "-q", "--bare", ".", remote.to_str().unwrap()]);
    let key = |name: &str| {
        let pair = nkeys::KeyPair::new_user();
        bed.write_outside(name, &format!("{}\n", pair.seed().unwrap()));
        (bed.root.path().join(name), pair.public_key())
    };
    let ((mine, my_key), (others, others_key)) = (key("mine"), key("others"));
    let url = server.url();
    let at = |key: &std::path::Path, args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["--fleet", "night", "--queue", &url]);
        let output = bed.command(&all).env("NATS_NKEY", key).output().unwrap();
        (output.status.code(), format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
    };
    let agent = format!("sh '{}'", bed.root.path().join("agent.sh").display());
    let more = ["--verify", "true", "--agent-cmd", &agent, "--remote", remote.to_str().unwrap()];
    let begins = [&["run", "feature_list.json", "--workers", "0"], &more[..]].concat();
    let (code, said) = at(&mine, &begins);
    assert!(code == Some(0) && said.contains("ralph fleet worker"), "{said}");
    let (code, said) = at(&others, &["add", "Something else"]);
    assert_eq!(code, Some(0), "{said}");
    // A worker that knows only the other key runs nothing at all.
    let (code, said) = at(&others, &["worker", "--signer", &others_key]);
    assert!(code == Some(1) && said.contains(&format!("is signed by {my_key}")), "{said}");
    let (code, said) = at(&mine, &["worker", "--signer", "nonsense"]);
    assert!(code == Some(1) && said.contains("no public key"), "{said}");
    // The task was signed by mine, and then changed by someone who can write.
    let (code, said) = at(&mine, &["add", "Changed later"]);
    assert_eq!(code, Some(0), "{said}");
    change(&url, "spec.changed-later", |spec| spec["task"] = "rm -rf /".into());
    let (code, said) = at(&mine, &[&["run", "feature_list.json", "--workers", "1", "--signer", &my_key], &more[..]].concat());
    assert_eq!(code, Some(12), "{said}");
    assert!(
        said.contains(&format!("is signed by {others_key}, which no --signer"))
            && said.contains(&format!("was changed after {my_key} had signed it")),
        "{said}"
    );
    let shown = Command::new("git").current_dir(&remote).args(["ls-tree", "--name-only", "ralph/night"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&shown.stdout), "alpha.txt\nfeature_list.json\n");
}

/// The key `p` of the screen is a person's wish like any other: it is signed.
#[test]
fn f7_a_pause_from_the_screen_is_signed() {
    let server = match NatsServer::start(NatsVersion::Newest, "") {
        Ok(server) => server,
        Err(skip) => return skip.tell(),
    };
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "");
    let pair = nkeys::KeyPair::new_user();
    bed.write_outside("seed", &format!("{}\n", pair.seed().unwrap()));
    let (seed, url, remote) = (bed.root.path().join("seed"), server.url(), bed.repo());
    let at = |args: &[&str]| {
        let mut command = bed.command(&[args, &["--fleet", "night", "--queue", &url]].concat());
        command.env("NATS_NKEY", &seed);
        command
    };
    let begins = at(&["run", "feature_list.json", "--workers", "0", "--verify", "true", "--remote", remote.to_str().unwrap()]).output();
    assert!(begins.as_ref().unwrap().status.success(), "{begins:?}");
    let mut screen = at(&[]);
    screen.env("TERM", "xterm");
    let pty = Pty::spawn(screen, 15, 60);
    let wait = |words: &str| drop(pty.wait_for(|s| s.contains(words), Duration::from_mins(1)).unwrap_or_else(|s| panic!("{words}: {s}")));
    let store = nats::Nats::open(nats::Settings::new(&url, "night")).unwrap();
    let signers = Signers::of("night", vec![pair.public_key()]).unwrap();
    for (wish, words) in [("pause", "p resumes"), ("run", "p pauses")] {
        wait(if wish == "pause" { "p pauses" } else { "p resumes" });
        pty.send("p");
        wait(words);
        let entry = store.get("want").unwrap().unwrap();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&entry.value).unwrap()["wish"], wish);
        assert_eq!(signers.refuse("want", &entry.value), None);
    }
    pty.send("q");
    assert_eq!(pty.wait_exit(Duration::from_mins(1)), Some(0));
}

fn change(url: &str, key: &str, change: impl Fn(&mut serde_json::Value)) {
    let store = nats::Nats::open(nats::Settings::new(url, "night")).unwrap();
    let entry = store.get(key).unwrap().unwrap();
    let mut value = serde_json::from_slice(&entry.value).unwrap();
    change(&mut value);
    store.put_if(key, value.to_string().as_bytes(), entry.revision).unwrap();
}
