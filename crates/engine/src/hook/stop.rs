//! The path of one stop: find the loop, gather evidence, judge, commit, answer.

use ralph_core::{
    attempt::Failures,
    gate::Tally,
    journal::{Actor, Answered, Event, Items, Parked, State},
    judge::{Code, Decision, Ending, Evidence, Next, Ruling, judge},
    limits::{Repeated, Standstill},
    loops::{Edit, Value, file_of},
    slash,
    time::Millis,
    unproven, words,
};

use crate::{
    gates::{declared, guard},
    hook::{
        Call, Outcome, compaction, context, driven,
        evidence::{self, Gathered, gather},
        notes,
        proof::{self, Measured},
        round,
        select::{Selected, select},
        spending, standstill,
    },
    hosts::claude::answer::Answer,
    store::{
        Error, ending, folder, held,
        locked::{Locked, Loop, end},
        loops::{self, Found},
        sessions,
    },
    sys::{clock, secrets, signals},
};

pub(super) fn on_stop(call: &Call) -> Result<Outcome, Error> {
    let session = call.event.session().unwrap_or_default();
    let selected = select(&call.project, session);
    if matches!(selected, Selected::Nothing("loop.none")) {
        folder::note_without_list(&call.project, session);
    }
    let seen = match selected {
        // Mostly there is nothing of ralph's at all, and then one look tells.
        Selected::Nothing("loop.none") if !call.finds_ralph_in_use() => {
            return Ok(lost_or(call, session, "loop.none", || Outcome::silent("loop.none")));
        }
        Selected::Nothing(_) if folder::lost_its_list(&call.project, session) => return lost_list(call, session),
        Selected::Nothing("loop.none") => return Ok(lost_or(call, session, "loop.none", || no_loop(call))),
        Selected::Nothing(code) => return Ok(lost_or(call, session, code, || Outcome::silent(code))),
        _ if session.is_empty() => return Ok(Outcome::silent("input.invalid")),
        Selected::Own(found) | Selected::Adoptable(found) | Selected::Corrupt(found) => found,
    };
    // Another hook on the same stop may be measuring: whoever comes second waits for its answer, and repeats it.
    let _turn = proof::turn(call, &seen)?;
    let locked = Locked::acquire(&call.project)?;
    // Everything that was read without the lock is read again: a cancel or another hook may have been faster.
    let Some(mut found) = loops::reread(&call.project, *seen)? else { return Ok(no_loop(call)) };
    if found.parsed.is_err() {
        let Some(settled) = locked.settled(found)? else { return Ok(no_loop(call)) };
        found = settled;
    }
    let mut l = match locked.open(found) {
        Ok(l) => l,
        Err(found) => return corrupt(call, &locked, &found),
    };
    if driven::is_carried_elsewhere(&l.state) {
        return Ok(Outcome::silent("runner.carries").of_loop(&l.id));
    }
    if l.is_new && l.file.started_at.is_none() && l.found.known_as.is_none() {
        guard::forget(&call.project, &l.id);
    }
    match l.owner() {
        Some(owner) if owner != session => return Ok(Outcome::silent("session.other").of_loop(&l.id)),
        // Written by hand for this very session.
        Some(_) if l.is_new => call.project.introduce(),
        Some(_) if l.state.client_pid != Call::client_pid() => held::stop_the_clock_of_the_dead(&mut l),
        Some(_) => {}
        None => adopt(call, &locked, &mut l, session)?,
    }
    if let Some(outcome) = answered_before(call, &locked, &mut l) {
        return Ok(outcome);
    }
    rule(call, locked, l)
}

/// No loop file. If it was this very stop that ended the loop, reported by another hook, the answer is the same.
fn no_loop(call: &Call) -> Outcome {
    compaction::heal(call);
    match ending::read(&call.project) {
        Some(last) if last.cause == call.event.stop_fingerprint() && call.is_second_report(&last.via, last.uptime_ms) => {
            Outcome::tell("stop.repeated", last.line).of_loop(&last.loop_id)
        }
        _ => Outcome::silent("loop.none"),
    }
}

/// This session has no loop. If it had one, and no person told ralph to take it away, the person is told once.
fn lost_or(call: &Call, session: &str, code: &str, otherwise: impl FnOnce() -> Outcome) -> Outcome {
    let is_archived = |id: &str| call.project.archive().join(format!("{id}.md")).exists();
    let Some(lost) = sessions::lost(&call.project, session).filter(|lost| code != "loop.none" || !is_archived(&lost.id)) else {
        return otherwise();
    };
    let file = file_of(&lost.name);
    let line = match code {
        "session.other" => format!("Ralph: this session's loop ({}) is another session's now: .claude/{file} was edited.", lost.id),
        "loop.none" => format!("Ralph: this session's loop ({}) is gone: .claude/{file} was deleted, and not by ralph.", lost.id),
        _ => format!("Ralph: this session's loop ({}) is not this session's any more: .claude/{file} was edited.", lost.id),
    };
    Outcome::tell("loop.lost", format!("{line} `ralph status` shows what there is.")).of_loop(&lost.id)
}

/// Somebody took the list of a loop that was alive. The agent may stop, and the person is told once why the loop does nothing any more.
fn lost_list(call: &Call, session: &str) -> Result<Outcome, Error> {
    if !Locked::acquire(&call.project)?.note_lost_list(session)? {
        return Ok(no_loop(call));
    }
    let list = words::clean(&folder::list(&call.project));
    let line = format!("Ralph: the list {list} is gone, so the loop is at rest. It goes on once the list is there again.");
    Ok(Outcome::tell("loop.lost-list", line).of_loop(&folder::id(&call.project)))
}

/// S0-4: a file that cannot be read ends the loop. It moves to the archive as it is.
fn corrupt(call: &Call, locked: &Locked<'_>, found: &Found) -> Result<Outcome, Error> {
    let problem = found.parsed.as_ref().err().map(ToString::to_string).unwrap_or_default();
    if found.is_folder() {
        return unreadable_list(call, locked, found, &problem);
    }
    let id = found.id();
    let session = call.event.session();
    let line = format!(
        "Ralph: {} cannot be read: {problem}. The loop has ended; its file is in .ralph/archive/{id}.md. Mend it there, then `ralph resume {id}`.",
        found.path.strip_prefix(call.project.root()).unwrap_or(&found.path).display()
    );
    ending::note(&call.project, &id, &call.event.stop_fingerprint(), Some(call.via()), &line);
    locked.archive_corrupt(found, session, &problem)?;
    Ok(Outcome::tell("loop.corrupt", line).of_loop(&id))
}

/// A list that cannot be read lets the agent stop and changes nothing. It is told once, as long as nothing else is wrong with it.
fn unreadable_list(call: &Call, locked: &Locked<'_>, found: &Found, problem: &str) -> Result<Outcome, Error> {
    let id = found.id();
    if !locked.note_unreadable(found, call.event.session(), problem)? {
        return Ok(Outcome::silent("loop.corrupt").of_loop(&id));
    }
    let line = format!(
        "Ralph: {}. The stop is allowed and nothing is changed; the loop goes on once that is fixed.",
        folder::unreadable(&found.path.strip_prefix(call.project.root()).unwrap_or(&found.path).display().to_string(), problem)
    );
    Ok(Outcome::tell("loop.corrupt", line).of_loop(&id))
}

/// What the journal calls the file of a loop that nobody started.
fn file_name(found: &Found) -> String {
    if found.is_folder() { folder::LIST.to_owned() } else { file_of(&found.name) }
}

/// A loop without an owner belongs to the first session that stops in the project; the file is not touched for it.
fn adopt(call: &Call, locked: &Locked<'_>, l: &mut Loop, session: &str) -> Result<(), Error> {
    let now = clock::now();
    if l.is_new {
        let event = Event::Started { file: file_name(&l.found), by: Actor::File, prompt: words::opening(&l.file.prompt, 200) };
        locked.record(l, now, None, event)?;
    }
    l.state.owner = Some(session.to_owned());
    l.state.client_pid = Call::client_pid();
    l.state.released = false;
    l.state.left_behind = false;
    l.state.arm(now);
    call.project.introduce();
    locked.record(l, now, Some(session), Event::Adopted)
}

/// The same stop, reported by a second hook: the same answer, and nothing is counted.
fn answered_before(call: &Call, locked: &Locked<'_>, l: &mut Loop) -> Option<Outcome> {
    let last = l.state.last.clone().filter(|last| call.is_answered_by(last))?;
    note_second_report(call, locked, l);
    let outcome =
        Outcome { answer: answer(call, l, &last.ruling, last.note.clone(), last.told.as_deref()), ..Outcome::silent("stop.repeated") };
    Some(outcome.of_loop(&l.id))
}

/// Notes that this registration, too, has reported the last stop: when it reports these words again, that is another one. The answer stands without it.
pub(super) fn note_second_report(call: &Call, locked: &Locked<'_>, l: &mut Loop) {
    let via = call.via();
    let place = via.split('-').next().unwrap_or_default();
    let event = Event::Heard { event: SECOND_REPORT.to_owned(), detail: Some(format!("the same stop, by the {place} registration")) };
    if let Some(last) = l.state.last.as_mut() {
        last.via.push(via);
        let _ = locked.record(l, clock::now(), call.event.session(), event);
    }
}

/// What the journal calls the second report of a stop.
pub(super) const SECOND_REPORT: &str = "stop.repeated";

/// The stop as it was ruled on, and what is told about it.
pub(super) struct Ruled {
    at: Millis,
    pub(super) gathered: Gathered,
    pub(super) ruling: Ruling,
    /// What the agent gets besides the prompt, or what the person is told.
    pub(super) note: Option<String>,
    /// What the person is told about the gates; `None`: there are none.
    told: Option<String>,
    /// What the person is told about the loop besides.
    pub(super) more: Vec<String>,
}

/// Measures what the loop has to prove, and whether anything changed, as far as somebody asks. `None`: there is nothing left to answer.
fn measured<'p>(call: &'p Call, locked: Locked<'p>, l: Loop) -> Result<Option<(Locked<'p>, Loop, Measured)>, Error> {
    let declared = declared::of_loop(&call.project, &l.file);
    // What once had to be proven does not vanish with the file that says so.
    let gated = !declared.is_empty() || l.state.gated;
    if !gated && !standstill::is_due(call, &l) {
        return Ok(Some((locked, l, Measured::default())));
    }
    if gated { proof::measure(call, locked, l, &declared, proof::Waiting::Here) } else { standstill::look(call, locked, l) }
}

fn rule(call: &Call, locked: Locked<'_>, l: Loop) -> Result<Outcome, Error> {
    let Some((locked, mut l, measured)) = measured(call, locked, l)? else {
        // A cancel, another hook, or a hand that deleted the file was faster; or the client wants no answer any more.
        return Ok(if signals::asked_to_end() { Outcome::silent("hook.ended") } else { no_loop(call) });
    };
    // Where hooks cannot wait for each other, another one may have ruled on this very stop meanwhile.
    if let Some(outcome) = answered_before(call, &locked, &mut l) {
        return Ok(outcome);
    }
    if l.owner().is_none() {
        // A command removed ralph's files, and with them what was known about the loop.
        adopt(call, &locked, &mut l, call.event.session().unwrap_or_default())?;
    }
    let (l, ruled) = decide(call, &locked, l, measured)?;
    drop(locked);
    let more = match ruled.as_ref().map(|ruled| ruled.ruling.next) {
        Some(Next::GoesOn { .. }) => compaction::after_a_round(call, &l),
        _ if l.file.compact_every() > 0 => {
            compaction::heal(call);
            None
        }
        _ => None,
    };
    let outcome = answered(call, (l, ruled));
    Ok(if let Some(more) = more { Outcome { answer: outcome.answer.and_tell(&more), ..outcome } } else { outcome })
}

/// Rules on a round that a runner reports. `None`: the loop is gone, was paused meanwhile, or has another owner.
pub(super) fn rule_on_round(call: &Call, locked: Locked<'_>, l: Loop) -> Result<Option<(Loop, Ruled)>, Error> {
    let Some((locked, l, measured)) = measured(call, locked, l)? else { return Ok(None) };
    let (l, ruled) = decide(call, &locked, l, measured)?;
    Ok(ruled.map(|ruled| (l, ruled)))
}

/// Ends a loop that has nothing to do before its runner starts a session. `None`: there is something to do, and nothing is written.
pub(super) fn end_if_done(call: &Call, locked: Locked<'_>, l: Loop) -> Result<Option<(Loop, Ruled)>, Error> {
    let declared = declared::of_loop(&call.project, &l.file);
    match proof::measure(call, locked, l, &declared, proof::Waiting::Elsewhere)? {
        Some((locked, l, measured)) if measured.holds() => {
            let (l, ruled) = decide(call, &locked, l, measured)?;
            Ok(ruled.map(|ruled| (l, ruled)))
        }
        _ => Ok(None),
    }
}

/// Rules again on a stop that was parked, for the hook that waited meanwhile.
pub(super) fn rule_again(call: &Call, locked: Locked<'_>, l: Loop) -> Result<Outcome, Error> {
    let declared = declared::of_loop(&call.project, &l.file);
    match proof::measure(call, locked, l, &declared, proof::Waiting::IsOver)? {
        Some((locked, l, measured)) if l.state.is_parked_by(&call.event.stop_fingerprint()) => {
            decide(call, &locked, l, measured).map(|decided| answered(call, decided))
        }
        // Whoever was faster has answered.
        _ => Ok(no_loop(call)),
    }
}

/// Rules, and makes the ruling real. Without one the file is gone: a cancel, or a hand that deleted it, was faster.
fn decide(call: &Call, locked: &Locked<'_>, mut l: Loop, mut measured: Measured) -> Result<(Loop, Option<Ruled>), Error> {
    let at = clock::now();
    locked.note_misfit(&mut l, at, call.event.session())?;
    note_edits(call, locked, &mut l, at)?;
    // A pause by hand is first seen here.
    if l.file.active {
        l.state.arm(at);
    } else {
        l.state.disarm(at);
    }
    let mut gathered = gather(call, &l, at);
    if let Some(parked) = measured.after(&l.state) {
        gathered.evidence.tools = parked.tools;
        gathered.evidence.idle_rounds = parked.idle_rounds;
    }
    spending::count(call, &mut l, at, &mut gathered.evidence);
    context::measure(call, &l, &mut gathered.evidence);
    let tree = measured.tree.take();
    measured.join(&mut gathered.evidence, l.state.unknown_rounds);
    count_items(&mut gathered.evidence, &mut l.state, call.event.session().unwrap_or_default());
    standstill::count(call, &mut gathered, &l, tree.as_deref());
    gathered.failure = Repeated::after(l.state.failure.as_ref(), &gathered.evidence.gates);
    gathered.evidence.same_failure = gathered.failure.as_ref().map_or(0, |failure| failure.times);
    let ruling = judge(&gathered.evidence);
    let note = match ruling.decision {
        Decision::Block => words::hint(&gathered.evidence, l.file.remind()),
        Decision::Allow => words::allowed(&gathered.evidence, &ruling).or_else(|| goes_first(&ruling, &gathered.queue)),
    };
    let note = note.map(|note| secrets::mask(&note));
    // A session of its own is told by its prompt.
    let note = match call.round {
        Some(_) => notes::at_the_end(&l.state, &ruling, note),
        None => notes::tell(&mut l.state, &ruling, &call.event, note),
    };
    let told = (!gathered.evidence.gates.is_empty()).then(|| secrets::mask(&unproven::for_person(&gathered.evidence).unwrap_or_default()));
    let more = std::mem::take(&mut l.state.untold);
    let ruled = Ruled { at, gathered, ruling, note, told, more };
    let ruled = commit(call, locked, &mut l, &ruled)?.then_some(ruled);
    Ok((l, ruled))
}

/// Edits of the loop file are told. One that loosens the loop counts only if a person made it: not in a run, whose person is asked, and not where the agent's own tool calls
/// name the file.
fn note_edits(call: &Call, locked: &Locked<'_>, l: &mut Loop, at: Millis) -> Result<(), Error> {
    if let Some(was) = l.found.known_as.take() {
        // Put right before anything else is written under this name.
        let is_there = locked.set(l, &[("loop_id", Value::Text(&was))])?;
        l.found.known_as = (!is_there).then_some(was);
        l.state.untold.push(format!("Ralph: the loop file named another loop_id. It is still the loop {}, and says so again.", l.id));
    }
    let edits = l.edits();
    if edits.is_empty() {
        l.state.refused.clear();
        return Ok(());
    }
    // What is not in the client's own folder any agent may write, its subagents too.
    let is_within_reach = l.found.own_file().is_some_and(|file| !file.starts_with(call.project.claude()));
    let by_agent = call.round.is_some() || is_within_reach || evidence::named_in_tools(call, l);
    // What did not count once does not count because time has passed; `ralph resume` is how a person says that it does.
    let before = l.state.refused.clone();
    let counts = |edit: &Edit| !(edit.looser && (by_agent || before.contains(&edit.what)));
    l.settle(&edits, counts);
    let (counting, held): (Vec<&Edit>, Vec<&Edit>) = edits.iter().partition(|edit| counts(edit));
    let shown = |edits: Vec<&Edit>| edits.into_iter().map(|edit| edit.what.clone()).collect::<Vec<String>>();
    let (changes, refused) = (shown(counting), shown(held));
    // What does not count stays in the file, and is told once.
    let is_known = changes.is_empty() && l.state.refused == refused;
    l.state.refused.clone_from(&refused);
    if is_known {
        return Ok(());
    }
    l.state.untold.extend(words::edited(&changes, &refused));
    locked.record(l, at, call.event.session(), Event::Edited { changes, refused })
}

/// What the client is told.
fn answered(call: &Call, (l, ruled): (Loop, Option<Ruled>)) -> Outcome {
    let outcome = ruled.map_or_else(
        || Outcome::silent("loop.none"),
        |ruled| {
            let answer = answer(call, &l, &ruled.ruling, ruled.note.clone(), ruled.told.as_deref());
            let answer = if ruled.more.is_empty() { answer } else { answer.and_tell(&ruled.more.join("\n")) };
            Outcome { answer, ..Outcome::silent(ruled.ruling.code.as_str()) }
        },
    );
    outcome.of_loop(&l.id)
}

/// How many items of the loop's lists were done in this session.
fn count_items(evidence: &mut Evidence, state: &mut State, session: &str) {
    let tallies: Vec<Tally> = evidence.gates.iter().filter_map(|f| f.tally).collect();
    if tallies.is_empty() {
        return;
    }
    let items = Items::counted(state.items.as_ref(), session, tallies.iter().map(|t| t.done).sum());
    evidence.items_done = items.done - items.before;
    // A round in a session of its own is followed by another session anyway.
    evidence.items_per_session = tallies.iter().map(|t| t.per_session).filter(|n| *n > 0 && !evidence.fresh).min().unwrap_or(0);
    state.items = Some(items);
}

/// A command that waited is let through. One of ralph's own sees to it that the loop goes on; any other may start no turn, and then nobody does.
fn goes_first(ruling: &Ruling, queue: &[String]) -> Option<String> {
    let (name, _) = slash::split(queue.first()?)?;
    let is_command = name.chars().all(|c| c.is_alphanumeric() || matches!(c, ':' | '-' | '_'));
    let is_others = ruling.code == Code::HostQueuedInput && is_command && slash::verb(name).is_none();
    is_others.then(|| words::goes_first(name))
}

/// Makes the ruling real: the loop's file first, because it is what counts, then the journal. `false`: the file is gone.
fn commit(call: &Call, locked: &Locked<'_>, l: &mut Loop, ruled: &Ruled) -> Result<bool, Error> {
    let Ruled { at, gathered, ruling, note, told, .. } = ruled;
    let stop = call.event.stop_fingerprint();
    let there = match ruling.next {
        Next::GoesOn { iteration } => locked.set(l, &[("iteration", Value::Plain(&iteration.to_string()))])?,
        Next::Stays | Next::Parks => true,
        Next::Pauses => locked.set(l, &[("active", Value::Plain("false"))])?,
        Next::Ends { ending } => {
            let via = call.round.is_none().then(|| call.via());
            ending::note(&call.project, &l.id, &stop, via, note.as_deref().unwrap_or_default());
            end(&call.project, &l.found, &l.id, ending)?
        }
    };
    if !there {
        return Ok(false);
    }
    remember(&mut l.state, &stop, ruled);
    l.state.client_pid = call.carrier_pid();
    if call.round.is_none() {
        l.state.runner = None;
    }
    l.state.turn = call.event.text("prompt_id").map(str::to_owned);
    let via = reporters(call, l.state.last.as_ref().filter(|last| last.stop == stop));
    l.state.last = Some(Answered {
        stop,
        at: *at,
        uptime_ms: clock::uptime_ms(),
        via,
        ruling: ruling.clone(),
        note: note.clone(),
        told: told.clone(),
    });
    let client = call.client.map(|(a, b, c)| format!("{a}.{b}.{c}"));
    let said = secrets::excerpt(&gathered.text, 160);
    let work = call.round.as_ref().map(|round| Box::new(round.work.clone()));
    let event = Event::Stop { evidence: Box::new(gathered.evidence.clone()), ruling: ruling.clone(), said, client, work };
    locked.record(l, *at, call.event.session(), event)?;
    Ok(true)
}

/// The registrations that have reported this stop. After a wait it is ruled on again, and nobody reports it a second time for that.
fn reporters(call: &Call, before: Option<&Answered>) -> Vec<String> {
    match (call.round.is_some(), before.filter(|_| call.invocation.waits())) {
        (true, _) => Vec::new(),
        (false, Some(before)) => before.via.clone(),
        (false, None) => vec![call.via()],
    }
}

/// What the next stop has to know of this one.
fn remember(state: &mut State, stop: &str, ruled: &Ruled) {
    let Ruled { at, gathered, ruling, .. } = ruled;
    let evidence = &gathered.evidence;
    state.stops += 1;
    if evidence.fresh {
        round::remember(state, evidence, ruling);
    } else {
        state.failures = Failures::default();
    }
    state.left_behind = false;
    match ruling.next {
        Next::GoesOn { .. } => {
            if evidence.idle_rounds <= 1 {
                // Idleness that begins with this round began after the ruling before it.
                state.idle_since = state.last.as_ref().map(|last| last.at).or(state.armed_since);
            }
            state.idle_rounds = evidence.idle_rounds;
            state.message = Some(gathered.message.clone());
            state.standstill.clone_from(&gathered.standstill);
            state.blocked_rounds = evidence.blocked_rounds;
        }
        Next::Stays | Next::Parks => {}
        Next::Pauses => {
            state.disarm(*at);
            if let Some(items) = state.items.as_mut().filter(|_| ruling.code == Code::FeaturesPerSession) {
                // Whoever resumes it wants as many again.
                items.before = items.done;
            }
            state.idle_rounds = evidence.idle_rounds;
            state.standstill = None;
            // Whoever resumes it has changed something.
            state.blocked_rounds = 0;
        }
        Next::Ends { ending } => {
            state.disarm(*at);
            state.ended = Some(ending);
            state.doubtful = ending == Ending::Complete && !evidence.suspicions.is_empty();
        }
    }
    if evidence.fresh {
        // Whoever goes on with the run goes on with the count: after a pause for it comes one trial.
        let most = evidence.stall_limit.saturating_sub(1);
        state.standstill = gathered.standstill.clone().map(|s| Standstill { rounds: s.rounds.min(most), ..s });
    }
    state.parked = (ruling.next == Next::Parks).then(|| Parked {
        // Since the stop, however often it was ruled on again.
        since: state.parked.as_ref().filter(|_| state.is_parked_by(stop)).map_or(*at, |before| before.since),
        stop: stop.to_owned(),
        what: unproven::in_short(evidence),
        until: None,
        tools: evidence.tools,
        idle_rounds: evidence.idle_rounds,
    });
    state.gated |= !evidence.gates.is_empty();
    if ruling.next != Next::Parks {
        state.failure.clone_from(&gathered.failure);
    }
    state.unknown_rounds = if ruling.next == Next::Pauses { 0 } else { evidence.unknown_rounds };
    state.queue.clone_from(&gathered.queue);
    state.read.clone_from(&gathered.read);
}

/// The answer to a ruling. `note` is what the agent gets besides the prompt, or what the person is told; `told` is what the person is told about
/// the gates of a loop that goes on; `None`: it has none.
fn answer(call: &Call, l: &Loop, ruling: &Ruling, note: Option<String>, told: Option<&str>) -> Answer {
    match (ruling.next, note) {
        (Next::GoesOn { iteration }, note) => {
            let text = match note {
                Some(note) => format!("{}\n\n{note}", l.file.prompt),
                None => l.file.prompt.clone(),
            };
            let mut line = words::going_on(iteration, l.file.max_iterations(), l.file.completion_promise.as_deref(), told.is_some());
            if let Some(told) = told.filter(|told| !told.is_empty()) {
                line.push(' ');
                line.push_str(told);
            }
            line.push_str(words::going_on_although(ruling.code));
            for warning in &l.file.warnings {
                line.push_str("\nRalph: the loop file, ");
                line.push_str(warning);
            }
            Answer::go_on(text, line, l.file.continue_with(), call.client)
        }
        (_, Some(line)) => Answer::Tell { line },
        (_, None) => Answer::Silent,
    }
}
