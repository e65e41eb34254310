//! Listens to a session: writes its log, decodes its lines, hands on what an observer should see, and measures silence.

use std::{
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::SyncSender,
    },
    time::{Duration, Instant},
};

use ralph_core::{
    gate::Stream as Pipe,
    money::{self, Micros},
    text::{Lines, Masking, PlainLines, time::millis},
};

use crate::{
    hosts::{Decode, Line},
    run::events::Heard,
    sys::{capped_log::Growing, files, secrets},
};

/// A session's log holds no more than this.
const MAX_LOG: u64 = 64 << 20;

/// A longer line is no event of a client's.
const MAX_EVENT: usize = 32 << 20;

/// A longer line of a plain program is not told at all.
const MAX_LINE: usize = 1 << 20;

/// More lines at once are not handed on: no person can follow them.
const MOST_AT_ONCE: usize = 500;

/// A process that did not ask for so long was stopped.
const STOPPED_MS: u64 = 1_000;

/// How much is kept of the end of a plain program's output, and of any program's errors.
const MOST_TEXT: usize = 256 << 10;
const MOST_COMPLAINTS: usize = 4 << 10;

/// Of a longer line that ralph sends only the beginning is logged: the prompt is the loop's.
const MOST_SENT: usize = 2 << 10;

/// Listens to one session.
pub(super) struct Ear {
    /// Gone when the session is over: something that holds a pipe may still speak then.
    listening: Mutex<Option<Listening>>,
    tell: SyncSender<Option<Vec<Heard>>>,
    begun: Instant,
    /// When there was last a sign of life, in milliseconds after the beginning.
    last: AtomicU64,
    /// When the silence was last asked for, in milliseconds after the beginning.
    asked: AtomicU64,
    /// How many wait for the observer: that is no silence of the agent.
    telling: AtomicUsize,
    is_over: AtomicBool,
    /// Millionths of a dollar that the session has used, as far as it told.
    spent: AtomicU64,
}

/// Everything that was heard.
pub(super) struct Listening {
    log: Growing,
    /// For the log, of the two outputs, where they are no events.
    masking: [Masking; 2],
    out: Lines,
    err: Lines,
    pub(super) sense: Decoder,
    complaints: Tail,
    /// To the agent's standard input, where a conversation is had over it; gone when that is over.
    answers: Option<SyncSender<Vec<u8>>>,
}

/// Makes sense of the output.
pub(super) enum Decoder {
    /// An agent whose lines are events.
    Events(Box<dyn Decode>),
    /// A plain program: the end of its output is kept.
    Plain(Tail),
}

/// The end of an output.
#[derive(Debug)]
pub(super) struct Tail {
    kept: Vec<u8>,
    most: usize,
}

impl Tail {
    fn new(most: usize) -> Self {
        Tail { kept: Vec::new(), most }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(&bytes[bytes.len().saturating_sub(self.most)..]);
        if self.kept.len() > 2 * self.most {
            self.kept.drain(..self.kept.len() - self.most);
        }
    }

    /// As a terminal would show it: colours around words are none of them.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut plain = PlainLines::new(self.most);
        let mut keep = |line: &str| text.extend([line, "\n"]);
        plain.feed(&self.kept[self.kept.len().saturating_sub(self.most)..], &mut keep);
        plain.finish(&mut keep);
        text
    }
}

impl Decoder {
    pub(super) fn plain() -> Self {
        Decoder::Plain(Tail::new(MOST_TEXT))
    }

    /// The beginning of a conversation with the agent, if one is had.
    pub(super) fn first_words(&mut self) -> Option<Vec<u8>> {
        match self {
            Decoder::Events(stream) => stream.first_words(),
            Decoder::Plain(_) => None,
        }
    }
}

impl Ear {
    /// Begins to listen; `command` is the first line of the log.
    pub(super) fn new(
        sense: Decoder,
        log: &Path,
        command: &str,
        tell: SyncSender<Option<Vec<Heard>>>,
        answers: Option<SyncSender<Vec<u8>>>,
    ) -> Self {
        let mut log = open(log);
        log.write(secrets::mask(&format!("$ {command}\n")).as_bytes());
        let most = if matches!(sense, Decoder::Events(_)) { MAX_EVENT } else { MAX_LINE };
        let (out, err) = (Lines::new(most), Lines::new(MAX_LINE));
        let problem = log.problem().map(|problem| vec![Heard::Line { text: problem.to_owned() }]);
        let (masking, complaints) = ([secrets::masking(), secrets::masking()], Tail::new(MOST_COMPLAINTS));
        let listening = Listening { log, masking, out, err, sense, complaints, answers };
        let ear = Ear {
            listening: Mutex::new(Some(listening)),
            tell,
            begun: Instant::now(),
            last: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            telling: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            spent: AtomicU64::new(0),
        };
        ear.hand_on(problem.unwrap_or_default());
        ear
    }

    pub(super) fn hear(&self, pipe: Pipe, bytes: &[u8]) {
        let mut told = Vec::new();
        let is_alive = {
            let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(listening) = listening.as_mut() else { return };
            let is_alive = listening.take(pipe, bytes, &mut told);
            self.is_over.store(listening.is_over(), Ordering::Relaxed);
            is_alive
        };
        // Each tells the sum.
        if let Some(usd) = told.iter().rev().find_map(|heard| if let Heard::Used { usd, .. } = heard { *usd } else { None }) {
            self.spent.store(money::of_reported(usd), Ordering::Relaxed);
        }
        self.hand_on(told);
        if is_alive {
            self.last.store(millis(self.begun.elapsed()), Ordering::Relaxed);
        }
    }

    fn hand_on(&self, told: Vec<Heard>) {
        if !told.is_empty() {
            self.telling.fetch_add(1, Ordering::Relaxed);
            // The receiver goes when the session is over.
            let _ = self.tell.send(Some(told));
            self.telling.fetch_sub(1, Ordering::Relaxed);
            self.last.store(millis(self.begun.elapsed()), Ordering::Relaxed);
        }
    }

    /// Tells an agent that talks with ralph that its session is to end.
    pub(super) fn cancel(&self) {
        if let Some(listening) = self.listening.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            listening.cancel();
        }
    }

    /// The money that the session has used, as far as it told.
    pub(super) fn spent(&self) -> Micros {
        self.spent.load(Ordering::Relaxed)
    }

    pub(super) fn took(&self) -> Duration {
        self.begun.elapsed()
    }

    /// How long nothing was heard. To be asked again and again: a long time without a question means that this process was stopped, and that is no silence of the
    /// agent.
    pub(super) fn silence(&self) -> Duration {
        let now = millis(self.begun.elapsed());
        if now.saturating_sub(self.asked.swap(now, Ordering::Relaxed)) > STOPPED_MS {
            self.last.fetch_max(now, Ordering::Relaxed);
        }
        match self.telling.load(Ordering::Relaxed) {
            0 => self.begun.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed))),
            _ => Duration::ZERO,
        }
    }

    /// Whether the agent has come to its end, and only the process has not.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// How long its process may live on after its end.
    pub(super) fn patience(&self) -> Duration {
        self.now(Listening::patience).unwrap_or_default()
    }

    /// Whether the agent only repeats an error.
    pub(super) fn is_stuck(&self) -> bool {
        self.now(Listening::is_stuck).unwrap_or(false)
    }

    /// Asks about what was heard until now.
    pub(super) fn now<T>(&self, say: impl FnOnce(&Listening) -> T) -> Option<T> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(say)
    }

    /// Ends the listening. The observer is told nothing any more.
    pub(super) fn finish(&self) -> Option<Listening> {
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        listening.answers = None;
        let mut told = Vec::new();
        listening.last_lines(&mut told);
        self.hand_on(told);
        let _ = self.tell.send(None);
        Some(listening)
    }
}

fn open(path: &Path) -> Growing {
    let folder = path.parent().map_or(Ok(()), files::make_folder);
    match folder.and_then(|()| files::options().write(true).create(true).truncate(true).open(path)) {
        Ok(file) => Growing::new(file, MAX_LOG),
        Err(e) => Growing::none(format!("there is no log: cannot write {}: {e}", path.display())),
    }
}

impl Listening {
    /// Takes what came, and says whether it is a sign of life.
    fn take(&mut self, pipe: Pipe, bytes: &[u8], told: &mut Vec<Heard>) -> bool {
        match (pipe, &mut self.sense) {
            (Pipe::Out, Decoder::Events(stream)) => {
                let (log, answers) = (&mut self.log, &self.answers);
                let mut is_alive = false;
                self.out.feed(bytes, |line| {
                    is_alive |= event(stream.as_mut(), log, line, told);
                    send(stream.words_to_send(), answers.as_ref(), log);
                });
                if stream.is_over() {
                    self.answers = None;
                }
                is_alive
            }
            (Pipe::Out, Decoder::Plain(text)) => {
                text.add(bytes);
                let shown = logged(&mut self.log, &mut self.masking[0], bytes);
                plain_lines(&mut self.out, &shown, told);
                true
            }
            (Pipe::Err, _) => {
                self.complaints.add(bytes);
                let shown = logged(&mut self.log, &mut self.masking[1], bytes);
                plain_lines(&mut self.err, &shown, told);
                true
            }
        }
    }

    /// Lines without an end.
    fn last_lines(&mut self, told: &mut Vec<Heard>) {
        for (masking, lines) in self.masking.iter_mut().zip([&mut self.out, &mut self.err]) {
            let mut rest = Vec::new();
            masking.finish(&mut rest);
            if !rest.is_empty() {
                self.log.write(&rest);
                plain_lines(lines, &rest, told);
            }
        }
        if let Some(line) = self.out.finish() {
            match &mut self.sense {
                Decoder::Events(stream) => {
                    event(stream.as_mut(), &mut self.log, &line, told);
                }
                Decoder::Plain(_) => told.push(Heard::of_line(&line)),
            }
        }
        told.extend(self.err.finish().map(|line| Heard::of_line(&line)));
    }

    fn cancel(&mut self) {
        if let Decoder::Events(stream) = &mut self.sense {
            send(stream.cancel(), self.answers.as_ref(), &mut self.log);
        }
    }

    fn patience(&self) -> Duration {
        match &self.sense {
            Decoder::Events(stream) => stream.patience(),
            Decoder::Plain(_) => Duration::ZERO,
        }
    }

    fn is_stuck(&self) -> bool {
        matches!(&self.sense, Decoder::Events(stream) if stream.is_stuck())
    }

    fn is_over(&self) -> bool {
        matches!(&self.sense, Decoder::Events(stream) if stream.is_over())
    }

    pub(super) fn complaints(&self) -> String {
        self.complaints.text()
    }

    /// Ends the log.
    pub(super) fn close(&mut self, last_line: &str) {
        self.log.write(format!("\n# {last_line}\n").as_bytes());
    }
}

/// Writes what may be written, and gives it back.
fn logged(log: &mut Growing, masking: &mut Masking, bytes: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(bytes.len());
    masking.feed(bytes, &mut shown);
    log.write(&shown);
    shown
}

/// Takes one line of a client's. Pieces of messages are not in the log: they come again as a whole.
fn event(stream: &mut dyn Decode, log: &mut Growing, line: &[u8], told: &mut Vec<Heard>) -> bool {
    let kind = stream.line(line, told);
    if matches!(kind, Line::Event | Line::Plain) {
        log.write(&secrets::mask_bytes(line));
        log.write(b"\n");
    }
    if kind == Line::Plain && !line.trim_ascii().is_empty() {
        told.push(Heard::of_line(line));
    }
    kind != Line::Ping
}

/// Sends lines to the agent, and writes them down.
fn send(lines: Vec<Vec<u8>>, answers: Option<&SyncSender<Vec<u8>>>, log: &mut Growing) {
    for line in lines {
        log.write(b"> ");
        log.write(&secrets::mask_bytes(&line.trim_ascii_end()[..line.trim_ascii_end().len().min(MOST_SENT)]));
        log.write(b"\n");
        if let Some(answers) = answers {
            // An agent that does not read, or reads no more, is not waited for.
            let _ = answers.try_send(line);
        }
    }
}

fn plain_lines(lines: &mut Lines, bytes: &[u8], told: &mut Vec<Heard>) {
    let mut skipped = bytes.split(|byte| *byte == b'\n').count().saturating_sub(MOST_AT_ONCE + 1);
    lines.feed(bytes, |line| match skipped {
        0 => told.push(Heard::of_line(line)),
        _ => skipped -= 1,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn s4_6_what_is_kept_of_a_program_is_its_end() {
        let mut tail = Tail::new(10);
        (0..100).for_each(|n| tail.add(format!("{n} ").as_bytes()));
        assert_eq!(tail.text().trim(), "97 98 99");
        tail.add(&[b'x'; 1_000]);
        assert_eq!(tail.text().trim(), "x".repeat(10));
        assert!(tail.kept.len() <= 20);
    }

    /// Ctrl-Z, and `fg` an hour later.
    #[test]
    fn pains_13_the_time_in_which_this_process_was_stopped_is_no_silence() {
        let folder = crate::sys::temp_dir::Scratch::create("ralph-ear-", false).unwrap();
        let (tell, _told) = sync_channel(8);
        let ear = Ear::new(Decoder::plain(), &folder.path().join("1.log"), "agent", tell, None);
        let stopped = Duration::from_millis(STOPPED_MS + 200);
        std::thread::sleep(stopped);
        assert!(ear.silence() < stopped);
        let listening = Instant::now();
        while listening.elapsed() < Duration::from_millis(300) {
            std::thread::sleep(Duration::from_millis(20));
            ear.silence();
        }
        assert!(ear.silence() >= Duration::from_millis(200), "whoever asks all the time hears silence");
    }

    #[test]
    fn s4_6_a_log_ends_where_it_must_and_says_so() {
        let folder = crate::sys::temp_dir::Scratch::create("ralph-ear-", false).unwrap();
        let path = folder.path().join("logs/1.log");
        let (tell, told) = sync_channel(8);
        let ear = Ear::new(Decoder::plain(), &path, "agent", tell, None);
        let hearing = std::thread::spawn(move || told.into_iter().map_while(|told| told).flatten().count());
        let line = [[b'x'; 1023].as_slice(), b"\n"].concat();
        let part = line.repeat(1024);
        (0..70).for_each(|_| ear.hear(Pipe::Out, &part));
        ear.finish().unwrap().close("stopped");
        ear.hear(Pipe::Out, b"too late");
        assert_eq!(hearing.join().unwrap(), 70 * MOST_AT_ONCE);
        let end = files::read_end(&path, 100).unwrap();
        assert!(String::from_utf8_lossy(&end).ends_with("\n# the log is not whole: it ends after 64 MB\n"));
        assert!(path.metadata().unwrap().len() < MAX_LOG + 100);
    }
}
