//! Tests of the transcript reader: made-up lines in the client's shape, and any bytes at all.

use proptest::prelude::*;

use ralph_core::{judge::ToolUse, text::time};

use super::{
    backwards::{BLOCK, LINE_COST, LINES_A_LOOK, REACH},
    *,
};

fn assistant(id: &str, block: &str) -> String {
    format!(
        r#"{{"isSidechain":false,"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{block}]}},"timestamp":"2026-11-15T10:00:05.000Z"}}"#
    )
}

fn text(id: &str, text: &str) -> String {
    assistant(id, &format!(r#"{{"type":"text","text":{}}}"#, serde_json::Value::from(text)))
}

fn tool(id: &str) -> String {
    assistant(id, r#"{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}"#)
}

fn result() -> String {
    r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"ok"}]},"timestamp":"2026-11-15T10:00:05.000Z"}"#.to_owned()
}

fn typed(text: &str) -> String {
    format!(
        r#"{{"type":"user","message":{{"role":"user","content":{}}},"timestamp":"2026-11-15T10:00:00.000Z"}}"#,
        serde_json::Value::from(text)
    )
}

fn queue(operation: &str) -> String {
    format!(r#"{{"type":"queue-operation","operation":"{operation}","content":"/cancel-ralph"}}"#)
}

fn file(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|l| l.bytes().chain(*b"\n")).collect()
}

fn after(at: Option<Millis>) -> Before<'static> {
    Before { at, ..Before::default() }
}

fn round(lines: &[String], event_text: Option<&str>) -> Iteration {
    last_iteration(file(lines).as_slice(), &Before::default(), event_text)
}

#[test]
fn s0_7_all_text_blocks_of_the_last_message_are_joined() {
    let lines = [typed("go"), text("m1", "AAA"), tool("m1"), result(), text("m2", "<promise>X</promise>"), text("m2", "BBB")];
    let got = round(&lines, Some("BBB"));
    assert_eq!(got.text.as_deref(), Some("<promise>X</promise>\n\u{c}BBB"));
    assert_eq!((got.tools, got.caught_up), (ToolUse::Used, true));
}

#[test]
fn pains_2_the_event_carries_what_the_transcript_lags_behind() {
    let lagging = [typed("go"), text("m1", "first block")];
    assert_eq!(round(&lagging, Some("last block")).text.as_deref(), Some("first block\n\u{c}last block"));
    let older_message = [typed("go"), text("m1", "<promise>X</promise>"), tool("m1"), result()];
    assert_eq!(round(&older_message, Some("later")).text.as_deref(), Some("later"));
    assert_eq!(round(&[], Some("only")).text.as_deref(), Some("only"));
    assert_eq!(round(&[], None), Iteration { tools: ToolUse::Unknown, ..Iteration::default() });
}

#[test]
fn pains_3_text_of_an_earlier_turn_or_of_a_subagent_never_counts() {
    let stale = [
        typed("a"),
        text("m1", "<promise>X</promise>"),
        typed("b"),
        tool("m2"),
        result(),
        assistant("m3", r#"{"type":"thinking","thinking":"hm"}"#),
    ];
    assert_eq!(round(&stale, None).text, None);
    let sidechain = text("m9", "<promise>X</promise>").replace("\"isSidechain\":false", "\"isSidechain\":true");
    assert_eq!(round(&[typed("a"), text("m1", "working"), sidechain], None).text.as_deref(), Some("working"));
    let feedback = typed("Stop hook feedback:\ngo on").replace("\"type\":\"user\"", "\"type\":\"user\",\"isMeta\":true");
    assert_eq!(round(&[typed("a"), text("m1", "<promise>X</promise>"), feedback, tool("m2")], None).text, None);
}

#[test]
fn the_time_of_the_last_ruling_begins_a_round() {
    let lines = [text("m1", "<promise>X</promise>"), tool("m1"), text("m2", "new").replace("10:00:05", "10:00:09")];
    let since = time::parse("2026-11-15T10:00:07Z");
    let got = last_iteration(file(&lines).as_slice(), &after(since), None);
    assert_eq!((got.text.as_deref(), got.tools), (Some("new"), ToolUse::None));
    let behind = last_iteration(file(&lines[..2]).as_slice(), &after(since), Some("event"));
    assert_eq!(
        (behind.text.as_deref(), behind.tools),
        (Some("event"), ToolUse::Unknown),
        "nothing is concluded from lines that are not there"
    );
    assert!(used_tools_since(file(&lines).as_slice(), 0));
    assert!(!used_tools_since(file(&lines).as_slice(), since.unwrap_or(0)));
}

#[test]
fn an_interrupt_since_the_last_ruling_is_seen_beyond_the_turn() {
    let esc = typed("[Request interrupted by user]").replace("10:00:00", "10:00:08");
    let lines = [text("m1", "x"), esc, typed("then").replace("10:00:00", "10:00:09"), text("m2", "y").replace("10:00:05", "10:00:09")];
    let interrupted = |since: &str| last_iteration(file(&lines).as_slice(), &after(time::parse(since)), Some("y")).interrupted;
    assert!(interrupted("2026-11-15T10:00:07Z"));
    assert!(!interrupted("2026-11-15T10:00:08Z"), "an older one has been dealt with");
}

#[test]
fn a_message_without_text_falls_back_to_the_last_one_that_has_some() {
    let nudge = typed("[Your previous response had no visible output.]").replace("\"type\":\"user\"", "\"type\":\"user\",\"isMeta\":true");
    let lines = [
        typed("go"),
        text("m1", "<promise>X</promise>"),
        tool("m1"),
        result(),
        nudge,
        assistant("m2", r#"{"type":"thinking","thinking":"hm"}"#),
    ];
    assert_eq!(round(&lines, None).text.as_deref(), Some("<promise>X</promise>"));
}

#[test]
fn input_that_waits_in_the_queue_is_seen() {
    let queued = |ops: &[&str]| {
        let mut lines = vec![typed("go")];
        lines.extend(ops.iter().map(|o| queue(o)));
        lines.push(text("m1", "x"));
        !round(&lines, None).queue.is_empty()
    };
    assert!(queued(&["enqueue"]));
    assert!(!queued(&["enqueue", "dequeue"]));
    assert!(queued(&["enqueue", "enqueue", "remove"]));
    assert!(queued(&["enqueue", "enqueue", "popAll"]), "one line for each item");
    assert!(queued(&["enqueue", "dequeue", "enqueue"]));
    let waiting = |before: &[&str], lines: &[String]| {
        let before: Vec<String> = before.iter().map(|text| (*text).to_owned()).collect();
        last_iteration(file(lines).as_slice(), &Before { at: Some(0), upto: Some(0), queue: &before, ..Before::default() }, None).queue
    };
    let put =
        |c: &str| format!(r#"{{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-15T10:00:00.000Z","content":{c}}}"#);
    let (a, b, taken) = (put(r#""fix  that""#), put(r#""/context""#), queue("dequeue"));
    assert_eq!(waiting(&[], &[a.clone(), b.clone()]), ["fix that", "/context"], "the oldest first");
    assert_eq!(waiting(&[], &[a, b.clone(), taken.clone()]), ["/context"]);
    assert_eq!(waiting(&["fix that"], &[b.clone(), taken.clone()]), ["/context"], "what waited before is taken first");
    assert_eq!(waiting(&["fix that", "/context"], std::slice::from_ref(&taken)), ["/context"]);
    assert_eq!(waiting(&["fix that"], &[b]), ["/context"], "a new turn began without it");
    assert_eq!(waiting(&[], &[put(r#"[{"type":"text"}]"#)]), [""]);
}

#[test]
fn torn_and_garbled_lines_are_passed_over() {
    let mut bytes = file(&[typed("go"), text("m1", "said"), "not json".to_owned(), "{\"type\":\"user\",".to_owned()]);
    bytes.extend_from_slice(b"{\"type\":\"assistant\",\"message\":{\"id\":\"m2\",\"content\":[{\"type\":\"te");
    let got = last_iteration(bytes.as_slice(), &Before::default(), None);
    assert_eq!((got.text.as_deref(), got.torn), (Some("said"), true));
    let control = text("m1", "Q").replace('Q', "\u{1}\u{7}<promise>X</promise>");
    assert!(round(&[typed("go"), control], None).text.is_some_and(|t| t.contains("<promise>X</promise>")));
}

#[test]
fn a_line_of_megabytes_is_passed_over_and_still_tells_of_the_tool() {
    let huge = result().replace("\"ok\"", &format!("\"{}\"", "x".repeat(3 * 1024 * 1024)));
    let got = round(&[typed("go"), text("m1", "said"), tool("m1"), huge], None);
    assert_eq!((got.text.as_deref(), got.tools), (Some("said"), ToolUse::Used));
}

#[test]
fn an_interrupt_is_the_last_thing_that_happened() {
    let esc = typed("[Request interrupted by user]");
    assert!(was_interrupted(file(&[typed("go"), text("m1", "half"), esc.clone()]).as_slice(), "stop it"));
    assert!(was_interrupted(file(&[typed("go"), esc.clone(), typed("stop it")]).as_slice(), "stop it"));
    assert!(!was_interrupted(file(&[typed("go"), esc, typed("then"), text("m2", "on")]).as_slice(), "stop it"));
    assert!(!was_interrupted(file(&[typed("go"), text("m1", "x")]).as_slice(), "stop it"));
    assert!(!was_interrupted([].as_slice(), "stop it"));
}

proptest! {
    #[test]
    fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = last_iteration(bytes.as_slice(), &after(Some(0)), None);
        let _ = was_interrupted(bytes.as_slice(), "x");
    }

    /// Lines come back in reverse order and complete, whatever their lengths.
    #[test]
    fn lines_are_those_of_a_naive_reader(lengths in proptest::collection::vec(0usize..90_000, 1..8), torn in any::<bool>()) {
        let mut bytes: Vec<u8> = Vec::new();
        for (i, n) in lengths.iter().enumerate() {
            bytes.extend(std::iter::repeat_n(b'a' + u8::try_from(i).unwrap_or(0), *n));
            bytes.push(b'\n');
        }
        if torn {
            bytes.pop();
        }
        let naive: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()).rev().map(<[u8]>::to_vec).collect();
        let mut lines = LinesBack::new(bytes.as_slice());
        let mut got = Vec::new();
        while let Some(place) = lines.next() {
            let (start, end) = (usize::try_from(place.start).unwrap_or(0), usize::try_from(place.end).unwrap_or(0));
            got.push(bytes[start..end].to_vec());
        }
        prop_assert_eq!(got, naive);
    }
}

/// What the client does with its queue, and what else it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Enqueue(usize),
    Dequeue,
    /// Takes out by name, as newer clients do.
    Remove(usize),
    Talk(&'static str),
}

/// The line that an act leaves. Time stamps say nothing: they are before the ruling or after it, as it happens.
fn line_of(act: Act, time: &str) -> String {
    let operation = |name: &str, content: Option<usize>| {
        let content = content.map(|n| format!(r#","content":"text {n}""#)).unwrap_or_default();
        format!(r#"{{"type":"queue-operation","operation":"{name}"{content},"timestamp":"{time}"}}"#)
    };
    match act {
        Act::Enqueue(n) => operation("enqueue", Some(n)),
        Act::Dequeue => operation("dequeue", None),
        Act::Remove(n) => operation("remove", Some(n)),
        Act::Talk("user") => typed("go").replace("2026-11-15T10:00:00.000Z", time),
        Act::Talk("attachment") => format!(r#"{{"type":"attachment","attachment":{{"type":"date"}},"timestamp":"{time}"}}"#),
        Act::Talk(said) => text("m1", said).replace("2026-11-15T10:00:05.000Z", time),
    }
}

/// What waits after these acts.
fn waits_after(acts: &[Act]) -> Vec<String> {
    let mut queue: Vec<usize> = Vec::new();
    for act in acts {
        match act {
            Act::Enqueue(n) => queue.push(*n),
            Act::Dequeue => {
                queue.remove(0);
            }
            Act::Remove(n) => queue.retain(|waiting| waiting != n),
            Act::Talk(_) => {}
        }
    }
    queue.iter().map(|n| format!("text {n}")).collect()
}

const BEFORE: &str = "2026-11-15T09:59:59.000Z";
const AFTER: &str = "2026-11-15T10:00:30.000Z";

/// Rules after each of these numbers of lines, as one loop would, and says whether the queue was right each time.
fn rules_right(lines: &[String], acts: &[Act], rulings: &[usize]) -> bool {
    let (mut upto, mut queue): (Option<u64>, Vec<String>) = (None, Vec::new());
    rulings.iter().all(|n| {
        let before = Before {
            at: upto.and_then(|_| time::parse("2026-11-15T10:00:10Z")),
            upto,
            queue: &queue,
            same_turn: true,
            born: time::parse("2026-11-15T09:00:00Z"),
            armed: None,
        };
        let iteration = last_iteration(file(&lines[..*n]).as_slice(), &before, Some("said"));
        (upto, queue) = (Some(iteration.upto), iteration.queue);
        queue == waits_after(&acts[..*n])
    })
}

/// t3: every order of the queue's lines among the others, every time stamp, and rulings at any two places: what was put in and not taken out waits, wherever
/// its line stands. The line of what was typed before a ruling may well be written after it.
#[test]
fn t3_what_was_enqueued_and_not_taken_out_waits_in_every_interleaving() {
    const ALL: u32 = 0b11_1111;
    let of_queue = [Act::Enqueue(1), Act::Enqueue(2), Act::Dequeue];
    let others = [Act::Talk("user"), Act::Talk("said"), Act::Talk("attachment")];
    let mut tried = 0;
    // Which of the six places are the queue's.
    for places in (0..=ALL).filter(|places| places.count_ones() == 3) {
        let (mut queued, mut other) = (of_queue.iter(), others.iter());
        let acts: Vec<Act> = (0..6)
            .map(|n| if places & (1 << n) == 0 { other.next() } else { queued.next() }.copied().unwrap_or(Act::Talk("more")))
            .collect();
        for late in 0..=ALL {
            // Too many otherwise: the stamps of the queue's lines, and all the others at once.
            if late & !places != 0 && late & !places != !places & ALL {
                continue;
            }
            let lines: Vec<String> =
                acts.iter().enumerate().map(|(n, act)| line_of(*act, if late & (1 << n) == 0 { AFTER } else { BEFORE })).collect();
            for first in 0..=6 {
                for second in first..=6 {
                    tried += 1;
                    assert!(rules_right(&lines, &acts, &[first, second]), "{acts:?} {late:06b} ruled after {first} and {second}");
                }
            }
        }
    }
    assert_eq!(tried, 20 * 16 * 28);
}

proptest! {
    /// t3: longer ones, with any number of rulings.
    #[test]
    fn t3_what_waits_is_what_the_transcript_says(
        wishes in proptest::collection::vec((0_usize..5, any::<bool>()), 0..40),
        rulings in proptest::collection::vec(0_usize..40, 1..6),
    ) {
        let (mut acts, mut inside): (Vec<Act>, Vec<usize>) = (Vec::new(), Vec::new());
        for (n, (wish, _)) in wishes.iter().enumerate() {
            acts.push(match wish {
                0 | 1 => { inside.push(n); Act::Enqueue(n) }
                2 if !inside.is_empty() => { inside.remove(0); Act::Dequeue }
                3 if !inside.is_empty() => Act::Remove(inside.remove(inside.len() / 2)),
                _ => Act::Talk("said"),
            });
        }
        let lines: Vec<String> = acts.iter().zip(&wishes).map(|(act, (_, late))| line_of(*act, if *late { BEFORE } else { AFTER })).collect();
        let mut rulings: Vec<usize> = rulings.into_iter().map(|n| n.min(lines.len())).collect();
        rulings.sort_unstable();
        prop_assert!(rules_right(&lines, &acts, &rulings), "{:?} {:?}", acts, rulings);
    }
}

/// t3: a line that is still being written is not lost: it is new once it is complete.
#[test]
fn t3_a_torn_line_is_read_when_it_is_complete() {
    let put = queue("enqueue");
    let whole = file(&[typed("go"), text("m1", "x"), put.clone()]);
    for cut in 1..=put.len() {
        let torn = &whole[..whole.len() - cut];
        let first = last_iteration(torn, &Before { born: Some(0), ..Before::default() }, None);
        let before = Before { at: Some(i64::MAX), upto: Some(first.upto), queue: &first.queue, same_turn: true, ..Before::default() };
        let second = last_iteration(whole.as_slice(), &before, None);
        assert_eq!(second.queue, ["/cancel-ralph"], "{cut}");
    }
}

/// t3: what an earlier process of the client left in its queue is gone, and so is what a turn began without.
#[test]
fn t3_what_an_earlier_client_left_in_its_queue_does_not_wait() {
    let put = queue("enqueue").replace("\"type\"", "\"timestamp\":\"2026-11-15T08:00:00.000Z\",\"type\"");
    let lines = [put, typed("go"), text("m1", "x")];
    let look = |born: &str| last_iteration(file(&lines).as_slice(), &Before { born: time::parse(born), ..Before::default() }, None).queue;
    assert_eq!((look("2026-11-15T07:00:00Z").len(), look("2026-11-15T09:00:00Z").len()), (1, 0));
    let waited = ["x".to_owned()];
    let later = |same_turn| {
        last_iteration(
            file(&lines).as_slice(),
            &Before { upto: Some(0), queue: &waited, same_turn, at: Some(i64::MAX), ..Before::default() },
            None,
        )
    };
    assert_eq!((later(true).queue.len(), later(false).queue.len()), (2, 1));
}

/// A user's line, with where it comes from.
fn said_by(text: &str, more: &str) -> String {
    typed(text).replacen("{\"type\"", &format!("{{{more},\"type\""), 1)
}

/// t4: the person's last word counts, and only the person's.
#[test]
fn t4_only_the_persons_own_stop_counts() {
    let told = |lines: &[String]| last_iteration(file(lines).as_slice(), &Before { upto: Some(0), ..Before::default() }, None).told_to_stop;
    let human = r#""origin":{"kind":"human"},"promptSource":"typed""#;
    for source in
        [human, r#""origin":{"kind":"human"},"promptSource":"queued","turnOrigin":"human""#, r#""promptSource":"sdk""#, r#""x":1"#]
    {
        assert!(told(&[said_by("stop", source), text("m1", "Well.")]), "{source}");
    }
    for source in [
        r#""isMeta":true,"promptSource":"system""#,
        r#""promptSource":"system""#,
        r#""turnOrigin":"scheduled""#,
        r#""origin":{"kind":"task-notification"},"promptSource":"typed""#,
        r#""origin":{"kind":"peer"}"#,
        r#""isSidechain":true"#,
    ] {
        assert!(!told(&[said_by("stop", source), text("m1", "Well.")]), "{source}");
    }
    let delivered = |prompt: &str, kind: &str| {
        format!(
            r#"{{"type":"attachment","attachment":{{"type":"queued_command","commandMode":"prompt","origin":{{"kind":"{kind}"}},"prompt":"{prompt}"}}}}"#
        )
    };
    assert!(told(&[typed("go"), tool("m1"), result(), delivered("halt", "human"), text("m2", "Well.")]));
    assert!(!told(&[typed("go"), tool("m1"), result(), delivered("halt", "peer"), text("m2", "Well.")]));
    // Whatever came later from the person counts instead.
    assert!(!told(&[said_by("stop", human), text("m1", "Well."), said_by("no, go on", human), text("m2", "On.")]));
    assert!(told(&[said_by("go on", human), text("m1", "Well."), said_by("Stop!", human), text("m2", "Oh.")]));
    // What a tool printed, and what the client says of a turn, is nobody's word.
    let printed = result().replace("\"ok\"", "\"stop\"");
    assert!(!told(&[typed("go"), tool("m1"), printed, text("m2", "Well.")]));
    assert!(told(&[said_by("stop", human), typed("[Request interrupted by user]"), text("m2", "Well.")]));
    // What was said before the loop was armed was about something else.
    let lines = file(&[said_by("stop", human), text("m1", "x")]);
    let armed = |at: &str| {
        last_iteration(lines.as_slice(), &Before { armed: time::parse(at), upto: Some(0), ..Before::default() }, None).told_to_stop
    };
    assert!(armed("2026-11-15T09:59:00Z") && !armed("2026-11-15T10:00:01Z"));
}

/// A source that counts what is read of it, and whose time is over after so many bytes.
struct Counted<'a> {
    bytes: &'a [u8],
    session: Option<&'a str>,
    most: u64,
    read: std::cell::Cell<u64>,
}

impl<'a> Counted<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Counted { bytes, session: None, most: u64::MAX, read: std::cell::Cell::new(0) }
    }
}

impl Source for Counted<'_> {
    fn size(&self) -> u64 {
        self.bytes.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize {
        self.read.set(self.read.get() + buf.len() as u64);
        self.bytes.read_at(offset, buf)
    }

    fn session(&self) -> Option<&str> {
        self.session
    }

    fn is_over(&self) -> bool {
        self.read.get() > self.most
    }
}

#[test]
fn t24_blank_lines_are_passed_over_and_nothing_is_concluded_from_what_is_behind_them() {
    let mut bytes = file(&[typed("go"), tool("m1"), result(), text("m1", "Done.")]);
    let blank = usize::try_from(REACH).unwrap();
    bytes.extend(std::iter::repeat_n(b'\n', blank - 200));
    let near = Counted::of(&bytes);
    assert_eq!(last_iteration(&near, &Before::default(), None).text.as_deref(), Some("Done."), "within reach");
    assert!(near.read.get() <= REACH + 2 * BLOCK as u64, "read once: {}", near.read.get());
    bytes.extend(std::iter::repeat_n(b'\n', 4 * blank));
    for (source, most) in [(Counted::of(&bytes), REACH), (Counted { most: 3 * BLOCK as u64, ..Counted::of(&bytes) }, 6 * BLOCK as u64)] {
        let iteration = last_iteration(&source, &Before::default(), Some("Later."));
        assert_eq!((iteration.text.as_deref(), iteration.tools), (Some("Later."), ToolUse::Unknown));
        assert!(source.read.get() <= most + 2 * BLOCK as u64, "{}", source.read.get());
    }
}

#[test]
fn t24_short_lines_cost_more_than_their_bytes_and_the_clock_ends_them() {
    let mut bytes = file(&[typed("go"), text("m1", "Done.")]);
    for line in ["x\n", "\"user\"\n", "\r\n", "{\"type\":\"user\"\n"] {
        bytes.extend(line.repeat(400_000).bytes());
        let source = Counted::of(&bytes);
        let mut lines = LinesBack::new(&source);
        let mut count = 0;
        while lines.next().is_some() {
            count += 1;
        }
        assert!(count <= REACH / LINE_COST && lines.cut, "{line:?}: {count}");
        let hurried = Counted { most: 0, ..Counted::of(&bytes) };
        let mut lines = LinesBack::new(&hurried);
        let mut count = 0;
        while lines.next().is_some() {
            count += 1;
        }
        assert!(count <= LINES_A_LOOK && lines.cut, "{line:?}: {count}");
        assert_eq!(last_iteration(&hurried, &Before::default(), Some("Now.")).tools, ToolUse::Unknown);
    }
}

#[test]
fn t24_a_round_that_was_read_to_its_beginning_tells_that_no_tool_was_used() {
    let lines = [typed("go"), text("m1", "Done.")];
    assert_eq!(round(&lines, Some("Done.")).tools, ToolUse::None);
    let tail = file(&[typed("go"), text("m1", "Done.")]);
    let huge = [vec![b'x'; usize::try_from(REACH).unwrap()], b"\n".to_vec(), tail].concat();
    assert_eq!(
        last_iteration(huge.as_slice(), &Before::default(), Some("Done.")).tools,
        ToolUse::None,
        "what is before the turn is not looked at"
    );
}

/// The same line, of a session.
fn of_session(id: &str, line: &str) -> String {
    line.replacen('{', &format!("{{\"sessionId\":\"{id}\","), 1)
}

#[test]
fn t14_lines_of_another_session_are_not_this_ones() {
    let claim = text("m1", "<promise>X</promise>");
    let heard = |lines: &[String], session: Option<&str>, event_text: Option<&str>| {
        let bytes = file(lines);
        last_iteration(&Counted { session, ..Counted::of(&bytes) }, &Before::default(), event_text)
    };
    let of_other = [typed("go"), claim.clone(), tool("m2"), queue("enqueue")].map(|line| of_session("other", &line));
    let iteration = heard(&of_other, Some("mine"), None);
    assert_eq!((iteration.text, iteration.tools, iteration.queue.len()), (None, ToolUse::Unknown, 0));
    // A fork begins with the lines of the session that it was forked from.
    let forked = [of_other.as_slice(), &[of_session("mine", &typed("on")), of_session("mine", &text("m3", "Mine."))]].concat();
    for event_text in [None, Some("Mine.")] {
        let iteration = heard(&forked, Some("mine"), event_text);
        assert_eq!((iteration.text.as_deref(), iteration.tools), (Some("Mine."), ToolUse::None), "{event_text:?}");
    }
    // Whoever writes no session's name is believed, and so is everybody where nobody asks.
    let unnamed = [typed("go"), claim];
    assert!(heard(&unnamed, Some("mine"), None).text.is_some());
    assert!(heard(&of_other, None, None).text.is_some());
}
