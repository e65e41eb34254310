//! The client in a terminal: what a person types and what the screen shows.

use std::thread;
use std::time::{Duration, Instant};

use ralph_testkit::{ModelServer, Tui};

use super::{Bed, SOON};

/// Time in which a loop that wrongly goes on would show itself.
pub(crate) const QUIET: Duration = Duration::from_millis(1200);

pub(crate) fn open(bed: &Bed, server: &ModelServer) -> Tui {
    bed.client.interactive(&bed.project, server).env("PATH", &bed.path).skip_permissions().size(50, 150).start()
}

/// The screen as one line, so that wrapping hides nothing.
pub(crate) fn flat(screen: &str) -> String {
    // Once a file has changed, 2.1.325 shows what on the right half of a wide screen: that is no part of the conversation.
    let left = |line: &str| line.char_indices().skip(40).find(|(_, c)| *c == '│').map_or(line.len(), |(at, _)| at);
    screen.lines().flat_map(|line| line[..left(line)].split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// Waits until the screen shows `text`, wrapped or not.
pub(crate) fn sees(tui: &Tui, text: &str) -> String {
    flat(&tui.expect(text, SOON, |screen| flat(screen).contains(text)))
}

/// Types a line while the agent is busy, and waits until the client has noted in its transcript that it waits.
pub(crate) fn queue(bed: &Bed, tui: &Tui, text: &str) {
    tui.submit(text);
    let noted = |transcript: String| transcript.lines().any(|line| line.contains("\"enqueue\"") && line.contains(text));
    wait_until("the queued line", || bed.project.transcripts().iter().any(|path| noted(std::fs::read_to_string(path).unwrap())));
}

pub(crate) fn wait_until(what: &str, happened: impl Fn() -> bool) {
    wait_until_within(SOON, what, happened);
}

pub(crate) fn wait_until_within(limit: Duration, what: &str, happened: impl Fn() -> bool) {
    let deadline = Instant::now() + limit;
    while !happened() {
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Enters `command` with `args`: typed, or, if they have line ends, pasted as a terminal does it, in brackets, so that these send nothing.
pub(crate) fn enter(tui: &Tui, command: &str, args: &str) {
    let in_input = |wanted: &str| {
        let has = |(_, input): (&str, &str)| input.contains(wanted) || input.contains("[Pasted text");
        tui.expect(wanted, SOON, |screen| screen.rsplit_once(command).is_some_and(has));
    };
    tui.pty.send(&format!("{command} "));
    // The hint comes with the blank.
    in_input("[--max-iterations");
    tui.pty.send(&if args.contains('\n') { format!("\x1b[200~{args}\x1b[201~") } else { args.to_owned() });
    in_input(args.split_whitespace().next_back().unwrap_or_default());
    tui.submit("");
}
