//! A question to the person at the terminal.

use std::io::{BufRead, IsTerminal, Write as _, stdin, stdout};

use ralph_engine::sys::terminal;

use crate::ui;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    /// The person wants to end the command (q, Ctrl-C), or the terminal is gone.
    Quit,
}

/// Whether there is a person who can see a question and answer it.
pub(crate) fn is_possible() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Asks until the answer is clear. An empty line means `usual`; `?` shows what the question is about.
pub(crate) fn ask(question: &str, usual: Answer, about: &str) -> Answer {
    let choice = if usual == Answer::Yes { "[Y/n]" } else { "[y/N]" };
    loop {
        let typed = typed(&ui::fitted(&format!("{} {choice}", ui::bold(question)), 0));
        match typed.as_deref().map(|typed| typed.trim().to_lowercase()).as_deref() {
            None | Some("q" | "quit") => return Answer::Quit,
            Some("") => return usual,
            Some("y" | "yes") => return Answer::Yes,
            Some("n" | "no") => return Answer::No,
            Some("?" | "h" | "help") => ui::paragraph(about, 2),
            Some(_) => {}
        }
        let enter = if usual == Answer::Yes { "yes" } else { "no" };
        ui::paragraph(format!("  Type y for yes, n for no, q to quit, or ? to see what this is about; Enter means {enter}."), 2);
    }
}

/// Asks for words. An empty line is an answer; `None`: the person wants to end the command.
pub(crate) fn ask_for(question: &str, about: &str) -> Option<String> {
    loop {
        let typed = typed(&ui::fitted(&ui::bold(question), 0))?;
        match typed.trim() {
            "q" | "quit" => return None,
            "?" => ui::paragraph(about, 2),
            words => return Some(words.to_owned()),
        }
    }
}

/// A line that was typed; `None`: Ctrl-C, or the terminal is gone.
fn typed(prompt: &str) -> Option<String> {
    let mut line = String::new();
    let ask = || {
        let mut out = anstream::stdout().lock();
        let _ = write!(out, "{prompt} ");
        let _ = out.flush();
    };
    let read = terminal::wait_for_answer(ask).then(|| stdin().lock().read_line(&mut line));
    if !line.ends_with('\n') {
        // No line break was typed, so what follows would begin behind the question.
        ui::line("");
    }
    read.is_some_and(|read| read.is_ok_and(|bytes| bytes > 0)).then_some(line)
}
