//! One stop, one count, with the real client: whoever reports a stop, however fast and alike the model's answers are. And whose words a stop is judged by.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::real::*;
use ralph_testkit::{Hook, ModelServer, PrintOutput, Reply, Version, or_skip, write_plugin};
use serde_json::Value;

/// The same words each time, as fast as the machine allows.
fn fast_and_alike() -> ModelServer {
    ModelServer::with(|_| Reply::text("Nothing left to change."))
}

/// Registered by `ralph init` in all these scopes, and by a plugin.
fn registered(version: Version, scopes: &[&str]) -> Result<(Bed, PathBuf), ralph_testkit::Skip> {
    let bed = Bed::with_program(version)?;
    for scope in scopes {
        bed.ralph_ok(&["init", scope]);
    }
    let hook = Hook::new("ralph").args(["hook", "claude", "--via", "plugin"]);
    let plugin = write_plugin(&bed.project, "ralph", &[hook.events(["Stop", "SubagentStop"])]);
    Ok((bed, plugin))
}

/// Work for all processors and more, for as long as it lives.
struct Load {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn begin() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let count = 2 * thread::available_parallelism().map_or(2, usize::from);
        let spin = |ends: Arc<AtomicBool>| {
            move || {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = (0..count).map(|_| thread::spawn(spin(Arc::clone(&ends)))).collect();
        Load { ends, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn run(bed: &Bed, server: &ModelServer, plugin: Option<&PathBuf>) -> PrintOutput {
    let print = bed.print(server, "begin").timeout(Duration::from_mins(3));
    let print = if let Some(plugin) = plugin { print.arg("--plugin-dir").arg(plugin) } else { print };
    let output = print.output();
    assert_eq!(output.code, Some(0), "{output:?}");
    output
}

/// Five iterations are five requests, and the loop has ended.
fn five_are_five(bed: &Bed, plugin: Option<&PathBuf>, hooks: usize) {
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--max-iterations", "5"]);
    let server = fast_and_alike();
    run(bed, &server, plugin);
    let journal = bed.journal();
    assert_eq!((journal.codes(), journal.iterations()), (missing_then(4, "limit.iterations"), vec![1, 2, 3, 4, 5]));
    assert_eq!(server.main_requests().len(), 5);
    // The waiting hook of each settings file is silent here.
    assert_eq!(bed.logged(&["event=Stop"]), 5 * hooks, "every registration reported every stop");
    bed.assert_archived(5);
}

/// t13: one registration, and no time between two stops with the same words.
fn t13_identical_answers_are_counted_each_time(version: Version) {
    let bed = or_skip!(Bed::with_init(version, "--user"));
    five_are_five(&bed, None, 1);
}
newest!(t13_identical_answers_are_counted_each_time);

/// t13: four registrations, which the client runs at the same time, on a machine that has more to do than it can.
fn t13_however_many_registrations_report_a_stop_it_counts_once(version: Version) {
    let (bed, plugin) = or_skip!(registered(version, &["--user", "--project", "--local"]));
    let load = Load::begin();
    five_are_five(&bed, Some(&plugin), 4);
    drop(load);
}
newest!(t13_however_many_registrations_report_a_stop_it_counts_once);

/// t13: what older versions registered says nothing about itself. A plugin's and a settings file's are told apart all the same.
fn t13_registrations_of_older_versions_count_once_beside_each_other_and_beside_new_ones(version: Version) {
    let bed = or_skip!(Bed::new(version));
    let plugin = write_plugin(&bed.project, "ralph", &[Hook::new(RALPH).events(["Stop"])]);
    five_are_five(&bed, Some(&plugin), 2);
    let bed = or_skip!(Bed::new(version));
    let hook = Hook::new(RALPH).args(["hook", "claude", "--via", "plugin"]);
    let plugin = write_plugin(&bed.project, "ralph", &[hook.events(["Stop"])]);
    five_are_five(&bed, Some(&plugin), 2);
}
newest!(t13_registrations_of_older_versions_count_once_beside_each_other_and_beside_new_ones);

/// t13: without any other limit the loop pauses before the client's cap ends the turn as if all were well.
fn t13_the_clients_cap_never_ends_a_turn_with_the_loop_armed(version: Version) {
    let (bed, plugin) = or_skip!(registered(version, &["--user", "--project"]));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE"]);
    let server = fast_and_alike();
    let load = Load::begin();
    run(&bed, &server, Some(&plugin));
    drop(load);
    assert_eq!(bed.journal().codes().last(), Some(&"host.block-cap"));
    assert_eq!((bed.value("active").as_str(), server.main_requests().len() <= 8), ("false", true));
}
newest!(t13_the_clients_cap_never_ends_a_turn_with_the_loop_armed);

/// Which sessions the lines of a transcript name, and how many lines each: those that tell what was said and done.
fn sessions_of(bed: &Bed, session: &str) -> BTreeMap<String, usize> {
    let folders = std::fs::read_dir(bed.project.home().join(".claude/projects")).unwrap();
    let path = folders.map(|folder| folder.unwrap().path().join(format!("{session}.jsonl"))).find(|path| path.exists()).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut sessions = BTreeMap::new();
    for line in lines.filter(|line| line["type"] == "assistant" || line["type"] == "user") {
        *sessions.entry(line["sessionId"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    sessions
}

/// t14: a session that is resumed keeps its id, and its own lines are believed; one that is forked has another, and what the session before it
/// claimed is not its claim, even where its own turn ends without a word.
fn t14_a_turn_without_words_is_not_judged_by_another_sessions_transcript(version: Version) {
    let bed = or_skip!(Bed::new(version));
    let (first, fork) = ("11111111-2222-4333-8444-555555555551", "11111111-2222-4333-8444-555555555552");
    let server = ModelServer::with(|request| match request.index {
        0 => claim(1),
        // The client asks once more by itself before it gives up on words.
        1 | 2 => Reply::thinking("Hm.").delay(PACE),
        _ => claim(2),
    });
    let output = bed.print(&server, "begin").args(["--session-id", first]).output();
    assert_eq!((output.code, session_of(&output).as_str()), (Some(0), first), "{output:?}");
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--max-iterations", "5", "--session", fork]);
    let output = bed.print(&server, "go on").args(["--resume", first, "--fork-session", "--session-id", fork]).output();
    assert_eq!((output.code, session_of(&output).as_str()), (Some(0), fork), "{output:?}");
    let journal = bed.journal();
    assert_eq!(journal.codes(), missing_then(1, "promise.accepted"), "the first session's claim is not the fork's");
    assert_eq!(journal.stops()[0]["evidence"]["message"]["from"], "no-text");
    let named = sessions_of(&bed, fork);
    assert_eq!(named.keys().collect::<Vec<_>>(), [fork], "the client copies the lines under the new name");
    // The one that is resumed goes on under its id.
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--session", first]);
    let output = bed.print(&server, "go on").args(["--resume", first]).output();
    assert_eq!((output.code, session_of(&output).as_str()), (Some(0), first), "{output:?}");
    assert_eq!(sessions_of(&bed, first).keys().collect::<Vec<_>>(), [first]);
}
newest!(t14_a_turn_without_words_is_not_judged_by_another_sessions_transcript);
