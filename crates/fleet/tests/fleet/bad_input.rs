//! What people get wrong gets an answer that helps, and nothing is lost.

use ralph_testkit::{NatsServer, NatsVersion};

use crate::bed::{Bed, compact};

#[test]
fn f1_what_is_wrong_is_said_and_nothing_begins() {
    let ring = r#"{"features": [{"id": "A", "description": "a", "dependsOn": ["B"], "passes": false}, {"id": "B", "description": "b", "dependsOn": ["A"], "passes": false}]}"#;
    let bed = Bed::new(
        &[
            ("feature_list.json", &compact(&[("A", "alpha")])),
            ("ring.json", ring),
            ("broken.json", "{"),
            ("typo.json", r#"{"features": [{"id": "A", "description": "a", "agent": "codx", "passes": false}]}"#),
            ("ralph.toml", "[[gate]]\ncommand = \"true\"\n"),
        ],
        "say a\n",
    );
    let says = |args: &[&str], words: &str| {
        let (code, said) = bed.fleet(args);
        assert!(code != 0 && said.contains(words), "{args:?}: {said}");
    };
    says(&["status"], "there is no fleet in this repository");
    says(&["run", "feature_list.json"], "ralph.toml is not trusted");
    assert_eq!(bed.ralph(&["trust", "--yes"]).0, 0);
    says(&["run", "nowhere.json"], "nowhere.json cannot be read");
    says(&["run", "broken.json"], "broken.json:");
    says(&["run", "ring.json"], "ring");
    says(&["run", "typo.json"], "a names the agent codx, which does not exist; did you mean codex?");
    says(&["run", "feature_list.json", "--agent", "claud"], "a similar value exists: 'claude'");
    says(&["run", "feature_list.json", "--fallback", "gemni=pro"], "must be one of");
    says(&["run", "feature_list.json", "--agent", "codex", "--agent-cmd", "x"], "cannot be used with");
    says(&["run", "feature_list.json", "--permission-mode", "all"], "acceptEdits");
    says(&["run", "feature_list.json", "--tokens", "many"], "needs a whole number");
    says(&["run", "feature_list.json", "--deadline", "soon"], "is no length of time");
    says(&["run", "feature_list.json", "--base", "nowhere"], "nowhere");
    says(&["run", "feature_list.json", "--target", "main"], "your own branch");
    says(&["run", "feature_list.json", "--workers", "0"], "there is no --queue");
    says(&["worker", "--slots", "0"], "does nothing");
    says(&["run", "feature_list.json", "--land", "pr"], "GitHub");
    says(&["run", "/etc/hostname"], "is not in this repository");
    assert_eq!(bed.fleet(&["add", "Do it"]).0, 0);
    says(&["cancel", "nobody"], "there is no job nobody");
    says(&["land", "do-it"], "not proven yet");
    says(&["release", "do-it"], "not held by a worker");
}

/// An old git cannot merge without files: that is said before anything begins.
#[test]
fn f1_an_old_git_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > a.txt; say a\n");
    let bin = bed.root.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\ncase \"$*\" in *--version*) echo 'git version 2.34.1'; exit;; esac\nPATH=/usr/bin:/bin exec git \"$@\"\n";
    std::fs::write(bin.join("git"), script).unwrap();
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let args = bed.run_args("feature_list.json", &["--verify", "true"]);
    let mut command = bed.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let output = command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("this is git 2.34, and a fleet needs 2.38 or newer"), "{said}");
}

/// A record of a newer version is left alone, and told.
#[test]
fn f2_a_newer_versions_job_is_left_alone() {
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha"), ("B", "beta")]))], "echo x > \"$task.txt\"; say x\n");
    assert_eq!(bed.run("feature_list.json", &["--verify", "true", "--usd", "0.01"]).0, 10);
    let fleets = bed.root.path().join("home/.local/state/ralph/fleets");
    let fleet = std::fs::read_dir(fleets).unwrap().next().unwrap().unwrap().path();
    let folder = fleet.join("queue/keys/job.a");
    // Without money nothing is begun, so it has no record yet.
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("1"), r#"{"version": 99, "state": "dances"}"#).unwrap();
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--usd", "1"]);
    assert_eq!(code, 12, "{said}");
    assert!(bed.of_job("a", "sealed").contains("version 99") && bed.of_job("b", "state") == "landed", "{said}");
}

/// The person has the branch checked out that work should land on: nothing is touched, it waits, and goes on.
#[test]
fn f4_a_checked_out_target_is_not_moved() {
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > a.txt; say a\n");
    bed.git(&["switch", "-qc", "ralph/feature-list"]);
    let mut run = bed.start("feature_list.json", &["--verify", "true", "--base", "main"]);
    bed.until("the word", || bed.fleet(&["status"]).1.contains("checked out: switch"));
    assert!(!bed.repo().join("a.txt").exists());
    bed.git(&["switch", "-q", "main"]);
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
    assert!(!bed.repo().join("a.txt").exists());
}

/// What a queue on a server says no to, in the words of the command line: nothing has begun, and with the right words it begins.
#[test]
fn f2_what_a_server_refuses_is_said_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let pair = nkeys::KeyPair::new_user();
    let seed = folder.path().join("seed");
    std::fs::write(&seed, format!("{}\n", pair.seed().unwrap())).unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, format!("{}\n", nkeys::KeyPair::new_user().seed().unwrap())).unwrap();
    let reader = nkeys::KeyPair::new_user();
    let may_read = folder.path().join("reader");
    std::fs::write(&may_read, format!("{}\n", reader.seed().unwrap())).unwrap();
    let looks =
        r#"publish: ["$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.CONSUMER.CREATE.>", "$JS.FC.>"], subscribe: "_INBOX.>""#;
    let users = format!("{{ nkey: {} }}, {{ nkey: {}, permissions: {{ {looks} }} }}", pair.public_key(), reader.public_key());
    let server = match NatsServer::start(NatsVersion::Newest, &format!("authorization {{ users: [ {users} ] }}")) {
        Ok(server) => server,
        Err(skip) => return skip.tell(),
    };
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > a.txt; say x\n");
    let remote = bed.root.path().join("remote.git");
    bed.git(&["clone", "-q", "--bare", ".", remote.to_str().unwrap()]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = format!("nats://127.0.0.1:{port}");
    let (url, place) = (server.url(), remote.to_str().unwrap());
    let run = |url: &str, remote: &str, key: Option<&std::path::Path>| {
        let args = bed
            .run_args("feature_list.json", &["--workers", "1", "--verify", "true", "--fleet", "night", "--queue", url, "--remote", remote]);
        let mut command = bed.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let output = command.envs(key.map(|key| ("NATS_NKEY", key))).output().unwrap();
        (output.status.code(), format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
    };
    let refused = |(code, said): (Option<i32>, String), words: &str| assert!(code == Some(1) && said.contains(words), "{words}: {said}");
    refused(run(&nowhere, place, Some(&seed)), &nowhere);
    refused(run("http://127.0.0.1:1", place, Some(&seed)), "is no queue");
    refused(run(&url, place, None), "NATS_NKEY");
    refused(run(&url, place, Some(&other)), "NATS_NKEY");
    refused(run(&url, place, Some(&may_read)), "does not allow it");
    refused(run(&url, "/nowhere/shop.git", Some(&seed)), "the repository cannot be read");
    let (code, said) = run(&url, place, Some(&seed));
    assert_eq!(code, Some(0), "{said}");
}
