//! The two loops of a pull request, as a person gets them: the real Claude Code client, the real git and the real `gh`, against a scripted model and a
//! scripted GitHub.

use std::thread;
use std::time::{Duration, Instant};

use crate::real::hub::{BRANCH, Hubbed};
use crate::real::terminal::*;
use crate::real::*;
use ralph_testkit::{ModelServer, Origin, Reply, Skip, Tui, Version, or_skip};

/// The project's quality gate: it passes while the source says so.
const QA: &str = "grep -q works src.txt && touch .quality-gate-passed";

/// The two loops, about a branch on a hub.
struct Loops(Hubbed);

impl std::ops::Deref for Loops {
    type Target = Hubbed;

    fn deref(&self) -> &Hubbed {
        &self.0
    }
}

impl Loops {
    fn new(version: Version) -> Result<Self, Skip> {
        Hubbed::new(version, &format!("[pr]\nquality_command = '{QA}'\n")).map(Self)
    }

    /// The same with a pull request whose checks are red; all that is asked for before it is there. Gives the commit.
    fn with_red_checks(version: Version) -> Result<(Self, String), Skip> {
        let bed = Self::new(version)?;
        bed.project.write("docs/AUDIT-REPORT.md", "# Audit\n\nDecision: PASS\n");
        let origin = Origin::known(&bed.project);
        origin.commit("src.txt", "it works, nearly\n");
        let head = origin.push();
        bed.project.write(".layer2-evidence.md", "- `make check` printed ok\n");
        bed.project.write(".quality-gate-passed", "");
        bed.hub.open(BRANCH, &head);
        bed.hub.failed(&head, "build", "compiling src.txt\nerror: nearly is not enough\nProcess completed with exit code 1.\n");
        Ok((bed, head))
    }

    /// `claude -p` to its end, with everything on its path that a person has.
    fn say(&self, server: &ModelServer, prompt: &str) -> ralph_testkit::PrintOutput {
        let run = self.print(server, prompt).timeout(Duration::from_mins(2));
        let output = self.env().into_iter().fold(run, |run, (name, value)| run.env(name, value)).output();
        assert_eq!(output.code, Some(0), "{output:?}");
        output
    }

    /// A session whose loop is parked at its third stop, because the checks of what it pushed run. Gives the commit.
    fn parked(&self, server: &ModelServer, red: &str) -> (Tui, String) {
        let tui = self.open(server, &[]);
        enter(&tui, "/ralph-loop", "Fix the checks of PR #1 and merge it --preset after-pr");
        let head = self.begin_checks(red);
        sees(&tui, "Ralph: parked at iteration 3");
        (tui, head)
    }

    /// Waits for a push, and begins the checks of what was pushed. Gives the commit.
    fn begin_checks(&self, after: &str) -> String {
        let begun = Instant::now();
        loop {
            let head = self.hub.pulls()[0].oid.clone();
            if head != after {
                self.hub.pending(&head, "build");
                return head;
            }
            assert!(begun.elapsed() < Duration::from_mins(1), "nothing was pushed");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until ralph has looked at the checks so many times more.
    fn looked_again(&self, times: usize) {
        let before = self.hub.count_of("PullRequestList");
        assert!(self.hub.wait_until(SOON, |asked| asked.iter().filter(|a| a.operation == "PullRequestList").count() >= before + times));
    }

    /// `gh` asked nothing that the hub does not know. The client itself tries to reach this and that, and is refused.
    fn assert_understood(&self) {
        let of_gh: Vec<String> = self.hub.unexpected().into_iter().filter(|asked| asked.contains("api.github.com/")).collect();
        assert_eq!(of_gh, [""; 0]);
    }
}

/// One round: a command in the agent's shell, and what it says then.
fn works(command: &str, says: &str) -> [Reply; 2] {
    [Reply::bash(command).delay(PACE / 2), say(says)]
}

/// Every reason that the agent was sent back with, in order: the first gate that was named, and all of the text.
fn reasons(server: &ModelServer) -> Vec<(String, String)> {
    let texts = server.main_requests().into_iter().map(|request| request.last_user_text());
    let gate = |text: &String| Some(text.split_once("[ralph]")?.1.split_once("Gate \"")?.1.split_once('"')?.0.to_owned());
    texts.filter_map(|text| Some((gate(&text)?, text))).collect()
}

/// The reasons came in this order, each with these words.
fn assert_reasons(server: &ModelServer, expected: &[(&str, &[&str])]) {
    let reasons = reasons(server);
    assert_eq!(reasons.len(), expected.len(), "{reasons:#?}");
    for ((gate, text), (name, words)) in reasons.iter().zip(expected) {
        assert_eq!(gate, name, "{text}");
        for word in *words {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

/// S2-2: five stops from code to an open pull request, each with its own reason and what to do next, and an end without a promise.
fn s2_2_five_stops_from_code_to_an_open_pull_request(version: Version) {
    let bed = or_skip!(Loops::new(version));
    let replies = [
        works("echo 'it works' > src.txt && git add . && git commit -qm login", "The code is written."),
        works("mkdir -p docs && printf '# Audit\\n\\nDecision: FAIL\\n' > docs/AUDIT-REPORT.md", "The audit found something."),
        works(
            "printf '# Audit\\n\\nDecision: PASS\\n' > docs/AUDIT-REPORT.md && git add . && git commit -qm audit",
            "Fixed what the audit found.",
        ),
        works(&format!("echo '- `make check` printed ok' > .layer2-evidence.md && {QA}"), "The quality gate passes."),
        works("git push -q -u origin HEAD && gh pr create --title Login --body Works --head feature/login", "The pull request is open."),
    ];
    let server = ModelServer::scripted(replies.into_iter().flatten().chain([round(6)]));
    let output = bed.say(&server, "/ralph-loop Build the login and open a pull request --preset pre-pr");
    assert_eq!(result_text(&output), "The pull request is open.");
    let journal = bed.journal();
    assert_eq!(journal.codes(), ["gate.failed", "gate.failed", "gate.failed", "gate.failed", "gates.passed"]);
    assert_reasons(
        &server,
        &[
            ("audit", &["docs/AUDIT-REPORT.md is not there", "Next: Run `/audit`"]),
            ("audit", &["docs/AUDIT-REPORT.md does not say `Decision: PASS`", "Next: Run `/audit`"]),
            ("quality", &[".quality-gate-passed is not there", "Next: Run `grep -q works src.txt"]),
            (
                "pr",
                &["there is no pull request for feature/login", "Next: Open one: `git push -u origin feature/login`, then `gh pr create`."],
            ),
        ],
    );
    assert_eq!(server.main_requests().len(), 10);
    assert_eq!(bed.hub.pulls().len(), 1);
    bed.assert_archived(5);
    bed.assert_replays(5);
    bed.assert_understood();
}
newest!(s2_2_five_stops_from_code_to_an_open_pull_request);

/// The rounds of the second loop: look, mend and push, run the quality gate, merge and claim.
fn second_loop() -> impl IntoIterator<Item = Reply> {
    let merge = "gh pr merge 1 --squash --delete-branch";
    [
        works("gh pr view 1 --json state", "The checks are red."),
        works("echo 'it works' > src.txt && git commit -qam fix && git push -q", "Fixed and pushed."),
        works(QA, "The quality gate passes."),
        works(merge, "Merged.\n\n<promise>CI_PASSED</promise>"),
    ]
    .into_iter()
    .flatten()
    .chain([round(5)])
}

/// S2-3, S2-4, S2-5: four stops from red checks to the merge; while they run, the model is not asked once.
fn s2_3_four_stops_from_red_checks_to_the_merge(version: Version) {
    let (bed, red) = or_skip!(Loops::with_red_checks(version));
    let server = ModelServer::scripted(second_loop());
    let asked = thread::scope(|scope| {
        let checks = scope.spawn(|| {
            let head = bed.begin_checks(&red);
            // The third stop finds nothing else to do: it waits.
            bed.looked_again(2);
            let before = server.main_requests().len();
            bed.looked_again(2);
            let meanwhile = server.main_requests().len() - before;
            bed.hub.passed(&head, "build");
            (before, meanwhile)
        });
        let output = bed.say(&server, "/ralph-loop Fix the checks of PR #1 and merge it --preset after-pr");
        assert_eq!(result_text(&output), "Merged.\n\n<promise>CI_PASSED</promise>");
        checks.join().unwrap()
    });
    assert_eq!(asked, (6, 0), "requests before the checks ended, and while they ran");
    let journal = bed.journal();
    assert_eq!(journal.codes(), ["promise.missing", "promise.missing", "promise.missing", "promise.accepted"]);
    assert_eq!(journal.iterations(), [1, 2, 3, 4], "waiting is no iteration");
    assert_reasons(
        &server,
        &[
            ("ci", &["CI / build (failure)", "error: nearly is not enough", "Next: Fix it, commit and push."]),
            ("quality", &["src.txt changed after .quality-gate-passed was written", "Next: Run `grep -q works src.txt"]),
            ("merged", &["#1 is not merged yet", "Next: Merge it: `gh pr merge 1 --squash --delete-branch`."]),
        ],
    );
    assert_eq!(server.main_requests().len(), 8);
    assert_eq!(bed.hub.pulls()[0].state, "MERGED");
    bed.assert_archived(4);
    bed.assert_replays(4);
    bed.assert_understood();
}
newest!(s2_3_four_stops_from_red_checks_to_the_merge);

/// S2-5: in a terminal the screen is free while the checks run, and the session goes on by itself when they have ended.
fn s2_5_an_interactive_session_is_woken_when_the_checks_end(version: Version) {
    let (bed, red) = or_skip!(Loops::with_red_checks(version));
    let server = ModelServer::scripted(second_loop());
    let (tui, head) = bed.parked(&server, &red);
    let asked = server.main_requests().len();
    // Somebody who thinks of something else meanwhile is not in the way.
    tui.pty.send("a thought");
    tui.expect("the thought", SOON, |screen| screen.contains("a thought"));
    bed.looked_again(2);
    assert_eq!((server.main_requests().len(), bed.value("iteration")), (asked, "3".to_owned()), "no model, no iteration");
    assert!(bed.ralph_ok(&["status"]).contains("its session is woken"), "{}", bed.ralph_ok(&["status"]));
    bed.hub.passed(&head, "build");
    sees(&tui, "Ralph: iteration 4.");
    sees(&tui, "Ralph: complete after 4 iterations");
    assert!(tui.screen().contains("a thought"), "what was typed is still there: {}", tui.screen());
    assert_eq!(bed.journal().codes(), ["promise.missing", "promise.missing", "gate.waiting", "promise.missing", "promise.accepted"]);
    assert_eq!(server.main_requests().len(), 8);
    assert_eq!(bed.hub.pulls()[0].state, "MERGED");
    bed.assert_archived(4);
    bed.assert_understood();
}
both!(s2_5_an_interactive_session_is_woken_when_the_checks_end);

/// S2-5: a cancel ends the wait at once, in a terminal and without the model; nothing stays behind.
fn s2_5_a_cancel_ends_the_wait_of_a_session(version: Version) {
    let (bed, red) = or_skip!(Loops::with_red_checks(version));
    let server = ModelServer::scripted(second_loop());
    let (tui, head) = bed.parked(&server, &red);
    let asked = server.main_requests().len();
    tui.submit("/cancel-ralph");
    sees(&tui, "cancelled at iteration 3");
    wait_until("the end of the wait", || bed.logged(&["code=wait.over"]) == 1);
    bed.hub.passed(&head, "build");
    thread::sleep(QUIET);
    assert_eq!(server.main_requests().len(), asked);
    assert_eq!(bed.loop_file(), None);
}
newest!(s2_5_a_cancel_ends_the_wait_of_a_session);
