//! Three "machines", each with a home of its own, on one real server: processes are killed, stopped past their lease, the server is killed and started again.

use std::{
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use ralph_testkit::{NatsServer, NatsVersion};

use crate::bed::{Bed, compact};

const JOBS: usize = 40;

struct Machine<'b> {
    bed: &'b Bed,
    name: &'static str,
    url: String,
    child: Option<Child>,
}

impl Machine<'_> {
    fn start(&mut self) {
        let home = self.bed.root.path().join(self.name);
        std::fs::create_dir_all(&home).unwrap();
        let log =
            std::fs::OpenOptions::new().append(true).create(true).open(self.bed.root.path().join(format!("{}.log", self.name))).unwrap();
        let mut command = self.bed.command(&["worker", "--slots", "2", "--fleet", "feature_list", "--lease", "3", "--queue", &self.url]);
        command.env("HOME", home).stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log);
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
    let bed = Bed::new(&[("feature_list.json", &list)], "sleep 0.2; echo x > \"$task.txt\"; say \"$task\"\n");
    let remote = bed.root.path().join("remote.git");
    bed.git(&["clone", "-q", "--bare", ".", remote.to_str().unwrap()]);
    let url = server.url();
    let mut more = vec!["--workers", "1", "--verify", "true", "--queue", &url, "--lease", "3", "--remote", remote.to_str().unwrap()];
    more.extend(["--fleet", "feature_list"]);
    let mut run = bed.start("feature_list.json", &more);
    bed.until("the fleet", || bed.log().contains("new jobs"));
    let mut machines = [("two", url.clone()), ("three", url.clone())].map(|(name, url)| Machine { bed: &bed, name, url, child: None });
    machines.iter_mut().for_each(Machine::start);
    let landed = || git_log(&remote).lines().filter(|line| !line.is_empty()).count();
    for round in 1..=3 {
        bed.until("landings", || landed() >= round * 6 || run_ended(&remote));
        machines[0].kill();
        machines[1].signal("STOP");
        server.kill();
        thread::sleep(Duration::from_millis(500));
        server.restart();
        machines[0].start();
        // Longer than a lease.
        thread::sleep(Duration::from_secs(4));
        machines[1].signal("CONT");
    }
    let code = run.wait().unwrap().code();
    for machine in &machines {
        machine.signal("TERM");
    }
    for machine in &mut machines {
        assert!(machine.child.as_mut().unwrap().wait().unwrap().success());
    }
    assert_eq!(code, Some(0), "{}", bed.log());
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
