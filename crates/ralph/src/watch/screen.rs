//! The whole screen, taken and given back: whatever ends the program, the terminal is as it was.

use std::{
    io::{BufWriter, Stdout, Write, stdout},
    mem::ManuallyDrop,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

use crossterm::{
    cursor::{Hide, Show},
    event::{DisableBracketedPaste, EnableBracketedPaste},
    queue,
    terminal::{
        Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
        size,
    },
};
use ratatui::{Frame, Terminal, backend::CrosstermBackend};

/// Whether the screen is ours now; it is given back once.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// More than any screen has.
const MOST_CELLS: u32 = 4_000_000;

pub(super) struct Screen {
    /// Never dropped: it would print what it cannot do, and on a terminal that is gone even that fails.
    terminal: ManuallyDrop<Drawing>,
}

type Drawing = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

fn blank() -> std::io::Result<ManuallyDrop<Drawing>> {
    Terminal::new(CrosstermBackend::new(BufWriter::new(stdout()))).map(ManuallyDrop::new)
}

impl Screen {
    pub(super) fn take() -> std::io::Result<Self> {
        give_back_on_panic();
        refuse_absurd_sizes()?;
        enter().inspect_err(|_| leave())?;
        Ok(Screen { terminal: blank().inspect_err(|_| leave())? })
    }

    pub(super) fn draw(&mut self, drawn: impl FnOnce(&mut Frame<'_>)) -> std::io::Result<()> {
        refuse_absurd_sizes()?;
        self.terminal.draw(drawn).map(|_| ())
    }

    /// Takes it again, or makes sure of it: another program may have drawn on it.
    pub(super) fn again(&mut self) -> std::io::Result<()> {
        enter()?;
        // Not `Terminal::clear`: that asks the terminal where the cursor is, and not every terminal answers.
        self.terminal = blank()?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// A picture takes memory for each cell, and a terminal can say anything about itself.
fn refuse_absurd_sizes() -> std::io::Result<()> {
    let (columns, rows) = size()?;
    if u32::from(columns) * u32::from(rows) <= MOST_CELLS {
        return Ok(());
    }
    Err(std::io::Error::other(format!(
        "the terminal says that it has {columns} columns and {rows} rows: `stty size` shows it, `stty cols 80 rows 24` fixes it"
    )))
}

fn enter() -> std::io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    let mut out = stdout().lock();
    queue!(out, EnterAlternateScreen, Clear(ClearType::All), Hide, DisableLineWrap, EnableBracketedPaste)?;
    out.flush()
}

/// Gives the screen back, as much of it as still works: the terminal may be gone.
pub(super) fn leave() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = stdout().lock();
    let _ = queue!(out, DisableBracketedPaste, EnableLineWrap, Show, LeaveAlternateScreen);
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// A panic's message has to be read on the person's own screen.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            before(panic);
        }));
    });
}
