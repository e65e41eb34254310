use proptest::prelude::*;

use super::{choice::Choice, *};
use crate::gate::Verdict;

const HEAD: &str = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";
const OLD: &str = "0000000000000000000000000000000000000001";

fn ours() -> Repository {
    Repository::of_url("https://github.com/acme/widget.git").unwrap()
}

fn check(name: &str, word: &str) -> CheckRun {
    let at = |text| crate::text::time::parse(text);
    CheckRun {
        name: name.to_owned(),
        workflow: Some("CI".to_owned()),
        word: Word::of(word),
        started_at: at("2026-03-04T05:06:07Z"),
        ended_at: at("2026-03-04T05:16:07Z"),
        url: Some(format!("https://github.com/acme/widget/actions/runs/1/job/{}", name.len())),
        job: Some(1),
        required: None,
    }
}

fn request(number: u64, state: State, head: &str) -> PullRequest {
    PullRequest {
        number,
        state,
        is_draft: false,
        head: head.to_owned(),
        branch: "feature/x".to_owned(),
        repository: Some(ours()),
        base: "main".to_owned(),
        url: format!("https://github.com/acme/widget/pull/{number}"),
        title: "Widgets".to_owned(),
        created_at: None,
        ended_at: None,
        has_conflicts: false,
        lacks_review: false,
        checks: Vec::new(),
    }
}

fn checkout() -> Checkout {
    let origin = Remote { name: "origin".to_owned(), fetch: Some(ours()), push: None, resolved: None };
    Checkout {
        branch: Some("feature/x".to_owned()),
        pushed_as: None,
        head: Some(HEAD.to_owned()),
        default_branch: Some("main".to_owned()),
        remotes: vec![origin],
        changed: 0,
    }
}

fn view(request: Option<PullRequest>) -> View {
    View {
        repository: ours(),
        checkout: checkout(),
        request,
        relation: Relation::Same,
        others: Vec::new(),
        past: None,
        seen_for_ms: 600_000,
    }
}

fn with_checks(checks: &[(&str, &str)]) -> View {
    let checks = checks.iter().map(|(name, word)| check(name, word)).collect();
    view(Some(PullRequest { checks, ..request(12, State::Open, HEAD) }))
}

fn judged(view: &View) -> (Verdict, String) {
    let outcome = view.ci(|_| true, false);
    (outcome.verdict, outcome.what)
}

#[test]
fn s2_1_every_word_of_a_check_has_its_meaning() {
    let all = |words: [&'static str; 6]| words.map(|word| (word, Word::of(word).verdict()));
    for (word, verdict) in all(["SUCCESS", "NEUTRAL", "SKIPPED", "success", "Neutral", "skipped"]) {
        assert_eq!(verdict, Verdict::Pass, "{word}");
    }
    for (word, verdict) in all(["FAILURE", "ERROR", "TIMED_OUT", "CANCELLED", "STARTUP_FAILURE", "STALE"]) {
        assert_eq!(verdict, Verdict::Fail, "{word}");
    }
    for (word, verdict) in all(["QUEUED", "IN_PROGRESS", "WAITING", "PENDING", "REQUESTED", "EXPECTED"]) {
        assert_eq!(verdict, Verdict::Wait, "{word}");
    }
    for (word, verdict) in all(["ACTION_REQUIRED", "", "MOONSHINE", "COMPLETED", "PASS", "GREEN"]) {
        assert_eq!(verdict, Verdict::Unknown, "{word}: never a pass");
    }
}

#[test]
fn s2_1_s2_4_any_failing_check_fails_at_once() {
    let (verdict, what) = judged(&with_checks(&[
        ("build", "FAILURE"),
        ("lint", "TIMED_OUT"),
        ("a", "SUCCESS"),
        ("b", "SKIPPED"),
        ("c", "NEUTRAL"),
        ("d", "QUEUED"),
    ]));
    assert_eq!(
        (verdict, what.as_str()),
        (Verdict::Fail, "CI fails on 1a2b3c4: CI / build (failure), CI / lint (timed out); 3 pass, 1 still runs")
    );
    let many: Vec<(String, &str)> = (0..9).map(|n| (format!("job{n}"), "FAILURE")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, word)| (name.as_str(), *word)).collect();
    assert!(judged(&with_checks(&many)).1.ends_with("and 4 more"), "a line stays a line");
    let next = |checks: &[(&str, &str)]| with_checks(checks).ci(|_| true, false).next.unwrap_or_default();
    assert!(next(&[("build", "CANCELLED"), ("lint", "TIMED_OUT")]).contains("`gh run rerun 1 --failed`"));
    assert_eq!(next(&[("build", "CANCELLED"), ("lint", "FAILURE")]), "Fix it, commit and push.");
}

#[test]
fn s2_5_what_runs_is_waited_for() {
    let (verdict, what) = judged(&with_checks(&[("build", "IN_PROGRESS"), ("lint", "SUCCESS")]));
    assert_eq!((verdict, what.as_str()), (Verdict::Wait, "CI runs on 1a2b3c4: CI / build (in progress); 1 of 2 pass"));
    assert_eq!(judged(&with_checks(&[("build", "QUEUED"), ("odd", "MOONSHINE")])).0, Verdict::Wait);
    assert_eq!(judged(&with_checks(&[("odd", "MOONSHINE"), ("lint", "SUCCESS")])).0, Verdict::Unknown);
}

#[test]
fn s2_1_an_approval_needs_a_person() {
    let outcome = with_checks(&[("deploy", "ACTION_REQUIRED"), ("build", "QUEUED")]).ci(|_| true, false);
    assert_eq!(outcome.verdict, Verdict::Unknown);
    assert!(outcome.needs.unwrap().contains("https://github.com/acme/widget/actions"), "where to go");
}

#[test]
fn s2_1_no_checks_yet_is_pending_and_never_green() {
    let none = with_checks(&[]);
    let at = |seen_for_ms, may_have_none| (View { seen_for_ms, ..none.clone() }).ci(|_| true, may_have_none);
    assert_eq!(at(0, false).verdict, Verdict::Wait);
    assert_eq!(at(119_999, true).verdict, Verdict::Wait, "they may still appear");
    let asks = at(120_000, false);
    assert_eq!(asks.verdict, Verdict::Unknown);
    assert!(asks.needs.unwrap().contains("no_checks"));
    assert_eq!(at(120_000, true).verdict, Verdict::Pass);
    let mut conflicts = none.clone();
    conflicts.request.as_mut().unwrap().has_conflicts = true;
    let outcome = conflicts.ci(|_| true, true);
    assert_eq!(outcome.verdict, Verdict::Fail, "workflows do not run then");
    assert!(outcome.next.unwrap().contains("git pull --no-rebase origin main"));
    // All are left out: that is no green either.
    let ignored = View { seen_for_ms: 0, ..with_checks(&[("codecov/patch", "FAILURE")]) };
    assert_eq!(ignored.ci(|_| false, false).verdict, Verdict::Wait);
    assert_eq!((View { seen_for_ms: 120_000, ..ignored }).ci(|_| false, false).verdict, Verdict::Unknown);
}

#[test]
fn s2_1_checks_that_were_done_at_once_may_not_be_all() {
    let quick = |end: &str, seen_for_ms| {
        let mut view = with_checks(&[("title", "SUCCESS"), ("label", "SUCCESS")]);
        view.seen_for_ms = seen_for_ms;
        let checks = &mut view.request.as_mut().unwrap().checks;
        checks[0].ended_at = crate::text::time::parse("2026-03-04T05:06:09Z");
        checks[1].ended_at = crate::text::time::parse(end);
        judged(&view).0
    };
    assert_eq!(quick("2026-03-04T05:06:36Z", 29_999), Verdict::Wait);
    assert_eq!(quick("2026-03-04T05:06:36Z", 30_000), Verdict::Pass);
    assert_eq!(quick("2026-03-04T05:06:37Z", 0), Verdict::Pass, "half a minute of CI was time enough");
}

#[test]
fn s2_1_the_newest_of_the_same_name_counts() {
    let at =
        |word: &str, started: Option<&str>| CheckRun { started_at: started.and_then(crate::text::time::parse), ..check("build", word) };
    let verdict = |checks: Vec<CheckRun>| {
        let backwards = checks.iter().rev().cloned().collect();
        let of = |checks| judged(&view(Some(PullRequest { checks, ..request(12, State::Open, HEAD) }))).0;
        assert_eq!(of(checks.clone()), of(backwards), "whatever order they come in: {checks:?}");
        of(checks)
    };
    let (early, late) = (Some("2026-03-04T05:00:00Z"), Some("2026-03-04T06:00:00Z"));
    assert_eq!(verdict(vec![at("FAILURE", early), at("SUCCESS", late)]), Verdict::Pass);
    assert_eq!(verdict(vec![at("SUCCESS", early), at("FAILURE", late)]), Verdict::Fail);
    assert_eq!(verdict(vec![at("SUCCESS", late), at("QUEUED", None)]), Verdict::Wait, "it runs again");
    assert_eq!(verdict(vec![at("SUCCESS", late), at("FAILURE", late)]), Verdict::Fail);
    let other = CheckRun { workflow: Some("Nightly".to_owned()), ..at("FAILURE", early) };
    assert_eq!(verdict(vec![other, at("SUCCESS", late)]), Verdict::Fail, "another workflow's is another one");
    let beside = Some("2026-03-04T05:06:08Z");
    assert_eq!(verdict(vec![at("FAILURE", early), at("SUCCESS", beside)]), Verdict::Fail, "one push may start it twice, and both count");
    assert_eq!(verdict(vec![at("FAILURE", early), at("IN_PROGRESS", beside)]), Verdict::Fail);
    assert_eq!(
        verdict(vec![at("FAILURE", early), at("SUCCESS", beside), at("SUCCESS", late)]),
        Verdict::Pass,
        "the last one is another try"
    );
    assert_eq!(verdict(vec![at("CANCELLED", early), at("SUCCESS", beside)]), Verdict::Pass, "the second one took over");
    assert_eq!(verdict(vec![at("FAILURE", early), at("QUEUED", None)]), Verdict::Wait, "it is tried again");
}

#[test]
fn s2_5_the_verdict_is_bound_to_the_head_commit() {
    let green = with_checks(&[("build", "SUCCESS")]);
    let in_step = |relation| {
        let outcome = (View { relation, ..green.clone() }).ci(|_| true, false);
        (outcome.verdict, outcome.what, outcome.next.unwrap_or_default())
    };
    assert_eq!(in_step(Relation::Same).0, Verdict::Pass);
    let (verdict, what, next) = in_step(Relation::Elsewhere);
    assert_eq!((verdict, next.as_str()), (Verdict::Fail, "Go back to it: `git switch feature/x`."), "who knows what lies in it: {what}");
    let merged = view(Some(PullRequest { checks: vec![check("build", "SUCCESS")], ..request(12, State::Merged, HEAD) }));
    let merged = View { relation: Relation::Elsewhere, ..merged };
    assert_eq!(judged(&merged).0, Verdict::Pass, "gh switches to the base branch when it merges");
    let (verdict, what, next) = in_step(Relation::Ahead(2));
    assert_eq!((verdict, what.as_str()), (Verdict::Fail, "2 commits are not pushed, so CI has not seen them"));
    assert!(next.contains("git push"));
    for (relation, wanted) in [
        (Relation::Behind(1), "git pull"),
        (Relation::Diverged { ahead: 1, behind: 2 }, "git pull --rebase"),
        (Relation::NotHere, "git pull origin feature/x"),
    ] {
        let (verdict, what, next) = in_step(relation);
        assert_eq!(verdict, Verdict::Fail, "{what}");
        assert!(next.contains(wanted), "{next}");
    }
}

#[test]
fn s2_3_merged_around_red_checks_is_no_pass() {
    let mut red = with_checks(&[("build", "FAILURE")]);
    red.request.as_mut().unwrap().state = State::Merged;
    assert_eq!(judged(&red).0, Verdict::Fail);
    assert_eq!(red.merged().verdict, Verdict::Pass);
    assert_eq!(red.open().verdict, Verdict::Pass, "it was open");
}

#[test]
fn s2_6_the_way_to_the_merge_is_told() {
    let green = with_checks(&[("build", "SUCCESS")]);
    let next = |change: &dyn Fn(&mut PullRequest)| {
        let mut view = green.clone();
        change(view.request.as_mut().unwrap());
        let outcome = view.merged();
        (outcome.verdict, outcome.next.unwrap_or_default())
    };
    assert_eq!(next(&|_| {}), (Verdict::Fail, "Merge it: `gh pr merge 12 --squash --delete-branch`.".to_owned()));
    assert!(next(&|request| request.is_draft = true).1.starts_with("It is a draft: `gh pr ready 12`."));
    assert!(next(&|request| request.has_conflicts = true).1.contains("resolve the conflicts"));
    assert_eq!(next(&|request| request.lacks_review = true).0, Verdict::Wait, "others decide about a review");
    assert_eq!(next(&|request| request.state = State::Merged).0, Verdict::Pass);
    assert!(next(&|request| request.state = State::Closed).1.contains("gh pr reopen 12"));
}

fn chosen(requests: &[PullRequest], branch: Option<&str>, kept: Option<u64>, relation: Relation) -> Choice {
    Wanted { branch, ours: &[ours()], kept, since: None }.choose(requests, |_| relation)
}

fn number(choice: &Choice) -> Option<u64> {
    choice.request.as_ref().map(|request| request.number)
}

#[test]
fn s2_1_an_open_one_of_the_branch_wins_and_the_newest_of_several() {
    let all =
        [request(3, State::Merged, OLD), request(5, State::Open, HEAD), request(7, State::Open, HEAD), request(9, State::Closed, HEAD)];
    let choice = chosen(&all, Some("feature/x"), Some(3), Relation::Same);
    assert_eq!((number(&choice), choice.others), (Some(7), vec![5]));
    let choice = chosen(&all[..1], Some("feature/x"), None, Relation::Same);
    assert_eq!(number(&choice), Some(3));
}

#[test]
fn s2_1_a_strangers_branch_of_the_same_name_is_not_ours() {
    let stranger = Repository::of_url("https://github.com/mallory/widget").unwrap();
    let fork = PullRequest { repository: Some(stranger.clone()), ..request(8, State::Open, HEAD) };
    let gone = PullRequest { repository: None, ..request(9, State::Open, HEAD) };
    assert_eq!(number(&chosen(&[fork.clone(), gone], Some("feature/x"), None, Relation::Same)), None);
    let choice =
        Wanted { branch: Some("feature/x"), ours: &[ours(), stranger], kept: None, since: None }.choose(&[fork], |_| Relation::Same);
    assert_eq!(number(&choice), Some(8), "our own fork's");
}

#[test]
fn s2_1_what_was_ended_with_other_commits_is_history() {
    for state in [State::Merged, State::Closed] {
        let all = [request(3, state, OLD)];
        let choice = |relation, kept| chosen(&all, Some("feature/x"), kept, relation);
        assert_eq!(number(&choice(Relation::Same, None)), Some(3));
        assert_eq!(number(&choice(Relation::Behind(1), None)), Some(3), "it has all that lies here");
        for relation in [Relation::Ahead(1), Relation::Diverged { ahead: 1, behind: 4 }] {
            let choice = choice(relation, Some(3));
            assert_eq!((number(&choice), choice.past), (None, Some((3, state))));
        }
        assert_eq!(number(&choice(Relation::NotHere, None)), None);
        assert_eq!(number(&choice(Relation::NotHere, Some(3))), Some(3));
    }
}

#[test]
fn s2_3_what_was_there_before_the_loop_is_not_its_work() {
    let at = |text: &str| crate::text::time::parse(text);
    let since = at("2026-11-15T12:00:00Z");
    let of = |requests: &[PullRequest], kept, since| {
        Wanted { branch: Some("feature/x"), ours: &[ours()], kept, since }.choose(requests, |_| Relation::Same)
    };
    for state in [State::Merged, State::Closed] {
        let ended = |text| PullRequest { ended_at: at(text), ..request(3, state, HEAD) };
        let old = of(&[ended("2026-11-15T11:00:00Z")], None, since);
        assert_eq!((number(&old), old.past), (None, Some((3, state))), "it ended before the loop began");
        assert_eq!(number(&of(&[ended("2026-11-15T11:00:00Z")], Some(3), since)), Some(3), "the loop began with it");
        assert_eq!(number(&of(&[ended("2026-11-15T11:55:00Z")], None, since)), Some(3), "clocks differ");
        assert_eq!(number(&of(&[ended("2026-11-15T12:30:00Z")], None, since)), Some(3));
        assert_eq!(number(&of(&[ended("2026-11-15T11:00:00Z")], None, None)), Some(3), "without a loop it is what there is");
    }
    let elsewhere = PullRequest { branch: "feature/y".to_owned(), ..request(3, State::Open, OLD) };
    let created = |text| [elsewhere.clone(), PullRequest { created_at: at(text), ..request(5, State::Open, HEAD) }];
    assert_eq!(number(&of(&created("2026-11-14T00:00:00Z"), Some(3), since)), Some(3), "somebody else's work");
    assert_eq!(number(&of(&created("2026-11-15T12:30:00Z"), Some(3), since)), Some(5), "opened instead");
    assert_eq!(number(&of(&created("2026-11-14T00:00:00Z")[1..], None, since)), Some(5), "the first that the loop sees");
}

#[test]
fn s2_1_names_that_a_shell_would_run_are_quoted() {
    for (name, shown) in
        [("feature/x-1.2_y", "feature/x-1.2_y"), ("übung", "übung"), ("x;curl${IFS}e|sh", "'x;curl${IFS}e|sh'"), ("a'`id`", r"'a'\''`id`'")]
    {
        assert_eq!(word(name), shown);
    }
}

#[test]
fn s2_1_without_a_branch_only_the_known_one_counts() {
    let all = [request(3, State::Merged, OLD)];
    assert_eq!(number(&chosen(&all, None, None, Relation::NotHere)), None);
    let choice = chosen(&all, None, Some(3), Relation::Ahead(9));
    assert_eq!((number(&choice), choice.relation), (Some(3), Relation::Elsewhere), "gh switches to the base branch when it merges");
    let other = chosen(&all, Some("feature/y"), Some(3), Relation::Ahead(9));
    assert_eq!(number(&other), Some(3));
}

#[test]
fn s2_1_the_phase_and_what_comes_next() {
    let phase_of = |view: &View| {
        let told = view.phase(|_| true, false);
        (told.phase, told.next.unwrap_or_default())
    };
    let (p, next) = phase_of(&view(None));
    assert_eq!((p, next.as_str()), (Phase::P0, "Open one: `git push -u origin feature/x`, then `gh pr create`."));
    assert_eq!(phase_of(&view(Some(request(1, State::Closed, HEAD)))).0, Phase::P0);
    assert_eq!(phase_of(&with_checks(&[("a", "FAILURE")])).0, Phase::P1);
    assert_eq!(phase_of(&with_checks(&[("a", "QUEUED")])).0, Phase::Pending);
    assert_eq!(phase_of(&View { seen_for_ms: 0, ..with_checks(&[]) }).0, Phase::Pending);
    assert_eq!(phase_of(&with_checks(&[])).0, Phase::Unknown);
    let (p, next) = phase_of(&with_checks(&[("a", "SUCCESS")]));
    assert_eq!((p, next.as_str()), (Phase::P2, "Merge it: `gh pr merge 12 --squash --delete-branch`."));
    assert_eq!(phase_of(&view(Some(request(1, State::Merged, HEAD)))).0, Phase::P2);
    assert_eq!(
        phase_of(&View { relation: Relation::Ahead(1), ..with_checks(&[("a", "SUCCESS")]) }),
        (Phase::P1, "Push: `git push`.".to_owned())
    );
    let on_main = View { checkout: Checkout { branch: Some("main".to_owned()), ..checkout() }, ..view(None) };
    assert!(phase_of(&on_main).1.contains("git switch -c NAME"));
    let detached = View { checkout: Checkout { branch: None, ..checkout() }, ..view(None) };
    assert!(phase_of(&detached).1.contains("git switch NAME"));
    let dirty = View { checkout: Checkout { changed: 2, ..checkout() }, ..with_checks(&[("a", "SUCCESS")]) };
    let told = dirty.phase(|_| true, false);
    assert_eq!(told.phase, Phase::P2, "said, and no failure");
    assert!(told.evidence.iter().any(|line| line.contains("2 changed files are not committed")));
}

#[test]
fn s2_1_addresses_of_remotes() {
    for url in [
        "https://github.com/acme/widget.git",
        "https://github.com/acme/widget/",
        "https://token:x@github.com/acme/widget",
        "https://www.github.com/Acme/Widget.git",
        "git@github.com:acme/widget.git",
        "github.com:acme/widget",
        "ssh://git@github.com/acme/widget.git",
        "ssh://git@ssh.github.com:443/acme/widget.git",
        "git://github.com/acme/widget.git",
        "git@github-work:acme/widget.git",
    ] {
        assert_eq!(Repository::of_url(url), Some(ours()), "{url}");
    }
    for url in [
        "/srv/git/widget.git",
        "../widget",
        "file:///srv/widget.git",
        "C:\\widget",
        "https://github.com/acme",
        "",
        "https://github.com/a b/c",
        "git@github.com:-x/y",
    ] {
        let found = Repository::of_url(url);
        assert!(found.is_none() || url == "git@github.com:-x/y" && found.is_none(), "{url}: {found:?}");
    }
    assert_eq!(Repository::of_url("git@gitlab.com:a/b/c.git").unwrap().other_forge(), Some("GitLab"));
    assert_eq!(ours().other_forge(), None);
}

#[test]
fn s2_1_requests_are_looked_for_where_gh_would() {
    let remote = |name: &str, owner: &str, resolved: Option<&str>| Remote {
        name: name.to_owned(),
        fetch: Repository::of_url(&format!("https://github.com/{owner}/widget")),
        push: None,
        resolved: resolved.map(str::to_owned),
    };
    let base = |remotes: Vec<Remote>| Checkout { remotes, ..checkout() }.base().unwrap().owner;
    assert_eq!(base(vec![remote("origin", "me", None), remote("upstream", "acme", None)]), "acme");
    assert_eq!(base(vec![remote("mine", "me", None), remote("origin", "acme", None)]), "acme");
    assert_eq!(base(vec![remote("origin", "me", Some("base")), remote("upstream", "acme", None)]), "me");
    assert_eq!(base(vec![remote("origin", "me", Some("acme/widget"))]), "acme");
    let forked = Checkout { remotes: vec![remote("origin", "me", None), remote("upstream", "acme", None)], ..checkout() };
    assert_eq!(forked.repositories().len(), 2);
}

#[test]
fn s2_1_the_branch_that_is_worked_on() {
    let of = |branch: Option<&str>, pushed_as: Option<&str>, default_branch: Option<&str>| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let checkout = Checkout { branch: own(branch), pushed_as: own(pushed_as), default_branch: own(default_branch), ..checkout() };
        checkout.work_branch().map(str::to_owned)
    };
    assert_eq!(of(Some("x"), None, Some("main")).as_deref(), Some("x"));
    assert_eq!(of(Some("x"), Some("me/x"), Some("main")).as_deref(), Some("me/x"));
    assert_eq!(of(Some("x"), Some("main"), Some("main")).as_deref(), Some("x"), "made from main, and still following it");
    assert_eq!(of(Some("main"), None, Some("main")), None);
    assert_eq!(of(Some("master"), None, None), None);
    assert_eq!(of(Some("main"), None, Some("trunk")).as_deref(), Some("main"));
    assert_eq!(of(None, None, Some("main")), None);
}

#[test]
fn s2_1_what_gh_says_when_it_fails() {
    let trouble = |code: i32, said: &str| Trouble::of_failure(Some(code), said, "github.com", "acme/widget");
    #[rustfmt::skip]
    let lasting = [
        (4, "To get started with GitHub CLI, please run:  gh auth login", "gh auth login"),
        (1, "HTTP 401: Bad credentials (https://api.github.com/graphql)\nTry authenticating with:  gh auth login", "gh auth login"),
        (1, "gh: Bad credentials (HTTP 401)", "gh auth login"),
        (1, "HTTP 403: Resource protected by organization SAML enforcement. You must grant …", "gh auth refresh"),
        (1, "GraphQL: Resource not accessible by personal access token (repository)", "gh auth refresh"),
        (1, "GraphQL: Your token has not been granted the required scopes to execute this query.", "gh auth refresh"),
        (1, "GraphQL: Could not resolve to a Repository with the name 'acme/widget'. (repository)", "gh auth login"),
        (1, "HTTP 404: Not Found (https://api.github.com/graphql)", "gh auth login"),
        (1, "gh: Not Found (HTTP 404)", "gh auth login"),
        (1, "Post \"https://api.github.com/graphql\": x509: certificate signed by unknown authority", "trust"),
        (1, "none of the git remotes configured for this repository point to a known GitHub host. To tell gh about a new GitHub host, please use `gh auth login`", "git remote add"),
        (1, "no git remotes found", "git remote add"),
        (1, "Unknown JSON field: \"bogus\"\nAvailable fields:", "newer gh"),
        (1, "unable to find git executable in PATH; please install git before retrying", "install git"),
    ];
    for (code, said, needs) in lasting {
        let trouble = trouble(code, said);
        assert!(!trouble.is_passing, "{said}");
        assert!(trouble.needs.as_deref().is_some_and(|told| told.contains(needs)), "{said}: {trouble:?}");
    }
    for said in [
        "HTTP 403: API rate limit exceeded for user ID 1. (https://api.github.com/graphql)",
        "GraphQL: API rate limit already exceeded for user ID 1.",
        "HTTP 429: You have exceeded a secondary rate limit. (…)",
        "HTTP 500: Server Error (https://api.github.com/graphql)",
        "HTTP 502: 502 Bad Gateway (https://api.github.com/graphql)",
        "gh: HTTP 502",
        "error connecting to api.github.com\ncheck your internet connection or https://githubstatus.com",
        "Post \"https://api.github.com/graphql\": proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused",
        "Post \"https://api.github.com/graphql\": Bad Gateway",
        "Post \"https://api.github.com/graphql\": EOF",
        "unexpected EOF",
        "invalid character '<' looking for beginning of value",
        "",
    ] {
        let trouble = trouble(1, said);
        assert!(trouble.is_passing && trouble.needs.is_none(), "{said}: {trouble:?}");
        assert!(trouble.what.starts_with("GitHub cannot be asked right now"), "{trouble:?}");
    }
    assert!(Trouble::of_failure(None, "", "github.com", "").is_passing, "gh was killed");
    let strange = trouble(1, "GraphQL: Something is wrong \u{1b}[31mhere");
    assert!(!strange.is_passing && strange.needs.is_none() && !strange.what.contains('\u{1b}'), "{strange:?}");
}

#[test]
fn s2_1_what_gh_prints_is_read_as_it_comes() {
    let json = format!(
        r#"[{{"number":12,"state":"OPEN","isDraft":true,"headRefOid":"{HEAD}","headRefName":"feature/x","headRepository":{{"name":"widget"}},
        "headRepositoryOwner":{{"login":"Acme"}},"isCrossRepository":false,"baseRefName":"main","url":"https://github.com/acme/widget/pull/12",
        "title":"Red\u001b[31m title","createdAt":"2026-03-04T05:00:00Z","mergeable":"CONFLICTING","mergeStateStatus":"DIRTY","new":1,
        "statusCheckRollup":[
          {{"__typename":"CheckRun","name":"build","workflowName":"CI","status":"COMPLETED","conclusion":"FAILURE","startedAt":"2026-03-04T05:06:07Z",
            "completedAt":"0001-01-01T00:00:00Z","detailsUrl":"https://github.com/acme/widget/actions/runs/7/job/99"}},
          {{"__typename":"CheckRun","name":"lint","status":"IN_PROGRESS","conclusion":"","workflowName":""}},
          {{"__typename":"StatusContext","context":"ci/circle","state":"PENDING","targetUrl":"https://ci.example/1"}},
          {{"name":null,"status":null}}, 7, null]}},
        {{"number":13,"state":"MERGED","headRefOid":"{HEAD}","headRepository":null,"headRepositoryOwner":null,"isCrossRepository":true,"statusCheckRollup":null}}]"#
    );
    let all = PullRequest::list(json.as_bytes(), &ours()).unwrap();
    let first = &all[0];
    assert_eq!((first.number, first.state, first.is_draft, first.has_conflicts), (12, State::Open, true, true));
    assert_eq!(first.repository, Some(ours()));
    assert!(!first.title.contains('\u{1b}'), "{}", first.title);
    let words: Vec<(&str, Verdict)> = first.checks.iter().map(|check| (check.name.as_str(), check.word.verdict())).collect();
    assert_eq!(words[..3], [("build", Verdict::Fail), ("lint", Verdict::Wait), ("ci/circle", Verdict::Wait)]);
    assert!(words[3..].iter().all(|(_, verdict)| *verdict == Verdict::Unknown) && words.len() == 6, "{words:?}");
    assert_eq!((first.checks[0].job, first.checks[0].ended_at), (Some(99), None));
    assert_eq!(first.checks[1].workflow, None);
    assert_eq!((all[1].repository.clone(), all[1].checks.len()), (None, 0), "a fork that is gone");
    assert_eq!(PullRequest::list(b"[]", &ours()), Some(Vec::new()));
    for broken in [
        "",
        "{",
        "null",
        "<html>",
        "[{}]",
        r#"[{"number":1,"state":"OPEN","headRefOid":"--upload-pack=x"}]"#,
        r#"[{"number":1,"state":"ODD"}]"#,
    ] {
        assert_eq!(PullRequest::list(broken.as_bytes(), &ours()), None, "{broken}");
    }
}

#[test]
fn s2_1_required_checks_are_read() {
    let json =
        br#"{"data":{"repository":{"pullRequest":{"commits":{"nodes":[{"commit":{"oid":"x","statusCheckRollup":{"contexts":{"nodes":[
        {"__typename":"CheckRun","name":"build","isRequired":true,"checkSuite":{"workflowRun":{"workflow":{"name":"CI"}}}},
        {"__typename":"CheckRun","name":"app","isRequired":true,"checkSuite":{"workflowRun":null}},
        {"__typename":"CheckRun","name":"docs","isRequired":false},
        {"__typename":"StatusContext","context":"ci/circle","isRequired":true}]}}}}]}}}}}"#;
    let wanted = [(Some("CI"), "build", true), (None, "app", true), (None, "docs", false), (None, "ci/circle", true)];
    assert_eq!(CheckRun::required(json), Some(wanted.map(|(flow, name, is)| ((flow.map(str::to_owned), name.to_owned()), is)).into()));
    assert_eq!(CheckRun::required(b"{}"), None);
}

#[test]
fn s2_4_a_jobs_log_ends_with_the_failure() {
    let log = "\u{feff}2026-11-15T20:18:03.1234567Z ##[group]Run cargo test\n2026-11-15T20:18:03.2Z test a ... FAILED\nno stamp here\n\
               2026-11-15T20:18:04.0000000Z ##[error]Process completed with exit code 101.\n2026-11-15T20:18:05.0000000Z Post job cleanup.\n";
    let read = |size: usize| {
        let mut reader = JobLog::default();
        let mut out = Vec::new();
        for part in log.as_bytes().chunks(size) {
            reader.feed(part, &mut |text| out.extend_from_slice(text));
        }
        reader.finish(&mut |text| out.extend_from_slice(text));
        String::from_utf8(out).unwrap()
    };
    for size in [1, 7, 1_000] {
        assert_eq!(read(size), "Run cargo test\ntest a ... FAILED\nno stamp here\nerror: Process completed with exit code 101.\n");
    }
}

#[test]
fn addresses_that_would_be_something_else_are_none() {
    for url in [
        "https://ghe.example.com/a/../b",
        "https://ghe.example.com/acme/..",
        "https://ghe.example.com/acme/x?y=1",
        "https://ghe.example.com/acme/{owner}",
        "https://ghe.example.com/-a/x",
        "https://ev`il`.example.com/acme/x",
        "git@-oProxyCommand=x:acme/x",
    ] {
        assert_eq!(Repository::of_url(url), None, "{url}");
    }
}

proptest! {
    #[test]
    fn any_answer_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = PullRequest::list(&bytes, &ours());
        let _ = CheckRun::required(&bytes);
        let mut reader = JobLog::default();
        reader.feed(&bytes, &mut |_| {});
        reader.finish(&mut |_| {});
    }

    #[test]
    fn any_values_are_read(state in "OPEN|CLOSED|MERGED|.{0,9}", name in ".{0,30}", word in ".{0,30}", url in ".{0,60}", at in ".{0,30}") {
        let json = serde_json::json!([{ "number": 1, "state": state, "headRefOid": HEAD, "headRefName": name, "title": name, "url": url, "createdAt": at,
            "statusCheckRollup": [{ "name": name, "workflowName": word, "status": word, "conclusion": word, "detailsUrl": url, "startedAt": at }] }]);
        if let Some(found) = PullRequest::list(json.to_string().as_bytes(), &ours()) {
            let view = view(found.into_iter().next());
            let told = view.phase(|_| true, false);
            prop_assert!(told.evidence.iter().all(|line| !line.chars().any(char::is_control)));
        }
    }

    #[test]
    fn any_address_is_read(url in ".{0,80}") {
        let _ = Repository::of_url(&url);
    }

    #[test]
    fn a_check_that_does_not_pass_is_never_green(words in proptest::collection::vec("SUCCESS|SKIPPED|FAILURE|QUEUED|STALE|ODD|ACTION_REQUIRED", 1..6)) {
        let names: Vec<String> = (0..words.len()).map(|n| format!("c{n}")).collect();
        let pairs: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(words.iter().map(String::as_str)).collect();
        let is_green = words.iter().all(|word| matches!(word.as_str(), "SUCCESS" | "SKIPPED"));
        prop_assert_eq!(judged(&with_checks(&pairs)).0 == Verdict::Pass, is_green);
    }
}
