//! With real clients against a scripted model: what an agent's own quota does to all jobs, work that lands, and pull requests through the real `gh`.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ralph_testkit::{Agent, Client, Gh, GitHub, ModelServer, Origin, Output, Project, Reply, Request, SignIn, Skip, Version, or_skip};
use serde_json::Value;

use crate::bed::{compact, programs};

/// `ralph-fleet` in a project, with these programs on the path.
fn fleet(project: &Project, program: &Path, args: &[&str]) -> Output {
    let path = env::join_paths([program.parent().unwrap(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let run = project.run(programs().join("ralph-fleet")).args(args).env("PATH", path.to_str().unwrap()).env("IS_SANDBOX", "1");
    let output = run.timeout(Duration::from_mins(5)).output();
    assert!(!output.timed_out, "{output:?}");
    output
}

fn job(project: &Project, program: &Path, id: &str) -> Value {
    let output = fleet(project, program, &["status", "--json"]);
    let status: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    status["jobs"].as_array().unwrap().iter().find(|job| job["id"] == id).unwrap().clone()
}

fn project(items: &[(&str, &str)]) -> Project {
    let project = Project::new();
    project.write("feature_list.json", compact(items));
    project.commit_all("Start");
    project
}

const COMMIT: &str = "git add -A && git -c user.name=A -c user.email=a@example.org commit -qm work";

/// Two jobs, each worked on in a session of its own by Claude Code, land with what they cost.
#[test]
fn f3_claude_code_works_on_jobs_that_land() {
    let is_first = |request: &Request| request.messages().iter().all(|message| message["role"] != "assistant");
    let server = ModelServer::with(move |request| {
        let text = request.all_text();
        let name = if text.contains("write alpha") { "alpha" } else { "beta" };
        if is_first(request) { Reply::bash(format!("echo 42 > {name}.txt && {COMMIT}")) } else { Reply::text("<promise>DONE</promise>") }
    });
    let client = or_skip!(Client::installed(Version::Newest));
    let project = project(&[("A", "write alpha"), ("B", "write beta")]);
    let program = client.as_program(&project, &server, SignIn::Key, &[("CLAUDE_CODE_MAX_RETRIES", "0")]);
    let gate = "ls *.txt && ! grep -vq 42 *.txt";
    let args = [
        "run",
        "feature_list.json",
        "--workers",
        "2",
        "--verify",
        gate,
        "--permission-mode",
        "bypassPermissions",
        "--model",
        "claude-sonnet-4-6",
    ];
    let output = fleet(&project, &program, &args);
    assert_eq!(output.code, Some(0), "{output:?}");
    for (id, file) in [("a", "alpha.txt"), ("b", "beta.txt")] {
        assert_eq!(project.git(&["show", &format!("ralph/feature-list:{file}")]).trim(), "42");
        let job = job(&project, &program, id);
        assert!(job["usd"].as_f64().unwrap() > 0.0 && job["tokens"].as_u64().unwrap() > 0, "{job}");
        assert!(!project.exists(file), "the person's folder was touched");
    }
}

/// And by another agent.
#[test]
fn f3_qwen_works_on_a_job_that_lands() {
    let agent = Agent::by_name("qwen");
    let claim = || Reply::text("<promise>DONE</promise>");
    let work = agent.runs_command(&format!("echo 42 > alpha.txt && {COMMIT}"));
    let server = ModelServer::scripted([work].into_iter().chain(std::iter::repeat_with(claim).take(5)));
    let client = or_skip!(agent.installed());
    let project = project(&[("A", "write alpha")]);
    let program = client.as_program(&project, &server);
    let args = [
        "run",
        "feature_list.json",
        "--workers",
        "1",
        "--verify",
        "grep -q 42 alpha.txt",
        "--agent",
        "qwen",
        "--model",
        "fake-model",
        "--permission-mode",
        "bypassPermissions",
    ];
    let output = fleet(&project, &program, &args);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(project.git(&["show", "ralph/feature-list:alpha.txt"]).trim(), "42");
}

/// An account whose quota one job finds used up is left alone by all until it resets, and no iteration is counted for it.
#[test]
fn f5_a_quota_that_one_job_finds_used_up_is_used_up_for_all() {
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let resets = now + 3 * 3600;
    let server = ModelServer::with(move |_| Reply::limit(resets));
    let client = or_skip!(Client::installed(Version::Newest));
    let project = project(&[("A", "write alpha"), ("B", "write beta"), ("C", "write gamma")]);
    // Only a client that is signed in with a subscription is told when its quota resets.
    let program = client.as_program(&project, &server, SignIn::Subscription, &[("CLAUDE_CODE_MAX_RETRIES", "0")]);
    let args = [
        "run",
        "feature_list.json",
        "--workers",
        "1",
        "--verify",
        "true",
        "--permission-mode",
        "bypassPermissions",
        "--model",
        "claude-sonnet-4-6",
    ];
    let path = env::join_paths([program.parent().unwrap(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let mut command = project.command(programs().join("ralph-fleet"));
    command.args(args).env("PATH", path).env("IS_SANDBOX", "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().unwrap();
    let state = |id: &str| job(&project, &program, id)["state"].clone();
    let until = Instant::now() + Duration::from_mins(3);
    while !project.exists(".git") || !fleet(&project, &program, &["status"]).stdout.contains("parked") {
        assert!(Instant::now() < until, "nothing is parked: {}", fleet(&project, &program, &["status"]).stdout);
        thread::sleep(Duration::from_millis(200));
    }
    let asked = server.main_requests().len();
    thread::sleep(Duration::from_secs(3));
    assert_eq!((state("a"), state("b"), state("c")), ("parked".into(), "waits".into(), "waits".into()));
    assert_eq!((server.main_requests().len(), &job(&project, &program, "a")["iterations"]), (asked, &0.into()), "nobody asks meanwhile");
    let why = job(&project, &program, "a")["why"].as_str().unwrap().to_owned();
    assert!(why.contains("limit of the account is used up"), "{why}");
    // Not for a minute, but until the account says.
    let account = fs::read_dir(project.home().join(".local/state/ralph/fleets"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path()
        .join("queue/keys/account.claude/1");
    let account: Value = serde_json::from_slice(&fs::read(account).unwrap()).unwrap();
    assert!((account["until"].as_i64().unwrap() / 1000 - resets).abs() < 120, "{account}");
    let end = Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap();
    assert!(end.success() && run.wait().unwrap().code() == Some(0));
}

/// `--land pr`: a branch and a pull request each, and a job has landed once that is merged. What depends on it waits for that.
#[test]
fn f4_each_job_gets_a_pull_request_and_lands_when_it_is_merged() {
    let gh = or_skip!(Gh::installed());
    let hub = GitHub::start("someone/shop");
    let project = Project::new();
    let list = r#"{"features": [{"id": "A", "description": "alpha", "passes": false}, {"id": "B", "description": "beta", "passes": false, "dependsOn": "A"}]}"#;
    project.write("README.md", "A shop\n");
    project.commit_all("Start");
    // Git does not know the list: it is marked where it is.
    project.write("feature_list.json", list);
    let origin = Origin::at(&hub, &project);
    let agent = format!("sh -c 't=$(head -1); echo x > \"$t.txt\"; {COMMIT}; echo \"<promise>DONE</promise>\"'");
    let run = || -> Result<Output, Skip> {
        let args = ["run", "feature_list.json", "--workers", "1", "--verify", "true", "--land", "pr", "--agent-cmd", &agent];
        let run =
            hub.env().into_iter().fold(project.run(programs().join("ralph-fleet")).args(args), |run, (name, value)| run.env(name, value));
        let output = run.env("PATH", gh.path().to_str().unwrap()).timeout(Duration::from_mins(3)).output();
        assert!(!output.timed_out, "{output:?}");
        Ok(output)
    };
    let output = or_skip!(run());
    assert_eq!(output.code, Some(12), "B waits for a person to merge A: {output:?}");
    let pulls = hub.pulls();
    assert_eq!(pulls.len(), 1, "{pulls:?}");
    assert!(pulls[0].title.contains("A: alpha"), "{pulls:?}");
    let before = project.git(&["rev-parse", "main"]);
    let branch = project.git(&["ls-remote", origin.bare().to_str().unwrap(), "refs/heads/ralph/*"]);
    assert_eq!(branch.lines().count(), 1, "{branch}");
    // Should a lander end before it has written that down, the next one finds both.
    let work = job(&project, &programs().join("ralph"), "a")["commit"].as_str().unwrap().to_owned();
    assert!(branch.trim().ends_with(&work[..12]), "{branch}");
    // A person merges it, and has it.
    hub.merge(pulls[0].number);
    project.git(&["pull", "-q", "--ff-only", origin.bare().to_str().unwrap(), "main"]);
    let output = or_skip!(run());
    assert_eq!((output.code, hub.pulls().len()), (Some(0), 2), "{output:?} {:?}", hub.unexpected());
    assert!(project.git(&["merge-base", "--is-ancestor", before.trim(), "main"]).is_empty());
    assert_eq!(fs::read_to_string(project.path("alpha.txt")).unwrap(), "x\n");
    let marked = fs::read_to_string(project.path("feature_list.json")).unwrap();
    assert_eq!(marked, list.replacen("false", "true", 1), "A has landed, and B waits for a person");
    assert!(hub.unexpected().is_empty(), "{:?}", hub.unexpected());
}
