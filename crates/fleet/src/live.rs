//! The screen as it goes, on the whole terminal: whatever ends the program, the terminal is as it was.

use std::{
    io::{Write as _, stdout},
    sync::Arc,
    time::{Duration, Instant},
};

use crossterm::{
    cursor::{Hide, MoveTo, Show},
    event::{self, Event, KeyCode, KeyModifiers},
    queue,
    style::Print,
    terminal::{
        Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
        size,
    },
};
use ralph_engine::{hosts, sys::signals};

use crate::{
    board::Board,
    people::Act,
    problem::{Problem, Result},
    records::Wish,
    screen::{self, Around},
    settings::{Place, Settings},
    signing::Pen,
    store::Store,
};

/// How often the queue is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long the last line says what came of a key.
const READING: Duration = Duration::from_secs(3);

/// Shows it until a person has seen enough.
pub(crate) fn show(place: &Place, settings: &Settings, store: &Arc<dyn Store>, pen: &Pen, board: &mut Board) -> Result<()> {
    let cannot =
        |e: std::io::Error| Problem::new(format!("the terminal cannot be drawn on: {e}; `ralph fleet status` prints the screen once"));
    let told = signals::Told::listen();
    let _screen = Screen::take().map_err(cannot)?;
    let mut said: Option<(Instant, String)> = None;
    while told.interrupts() == 0 && !told.ended() {
        // A queue that cannot be asked now is asked again, and what was known stays.
        let trouble = board.refresh(&**store).err().map(|e| e.to_string());
        said = said.filter(|(at, _)| at.elapsed() < READING);
        let line = trouble.as_deref().or(said.as_ref().map(|(_, line)| line.as_str()));
        draw(place, settings, store, board, line).map_err(cannot)?;
        if !event::poll(LOOK_EVERY).map_err(cannot)? {
            continue;
        }
        let Event::Key(key) = event::read().map_err(cannot)? else { continue };
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => break,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => break,
            KeyCode::Char('p') => said = Some((Instant::now(), pause(&**store, pen, board))),
            _ => {}
        }
    }
    Ok(())
}

/// Pauses all, or takes that back.
fn pause(store: &dyn Store, pen: &Pen, board: &Board) -> String {
    if hosts::of_an_agent().is_some() {
        return "this is an agent's shell: only a person commands a fleet".to_owned();
    }
    let act = if board.want.wish == Wish::Pause { Act::Resume { job: None } } else { Act::Pause { job: None } };
    act.run(store, pen, board).unwrap_or_else(|problem| problem.to_string())
}

fn draw(place: &Place, settings: &Settings, store: &Arc<dyn Store>, board: &Board, said: Option<&str>) -> std::io::Result<()> {
    let (columns, rows) = size()?;
    let (width, height) = (usize::from(columns), usize::from(rows));
    let around = Around::read(&**store, place).unwrap_or_default();
    let mut lines = screen::lines(board, &around, settings, place, (width, height.saturating_sub(2)));
    lines.resize(height.saturating_sub(1), String::new());
    let keys =
        if board.want.wish == Wish::Pause { "q leaves, the fleet goes on · p resumes" } else { "q leaves, the fleet goes on · p pauses" };
    lines.push(screen::footer(said.unwrap_or(keys), width));
    // Only styles are left out where they are not wanted: the cursor moves all the same.
    let is_plain = anstream::stdout().current_choice() == anstream::ColorChoice::Never;
    let mut out = stdout().lock();
    for (line, at) in lines.into_iter().take(height).zip(0..) {
        let line = if is_plain { anstream::adapter::strip_str(&line).to_string() } else { line };
        queue!(out, MoveTo(0, at), Print(line), Clear(ClearType::UntilNewLine))?;
    }
    out.flush()
}

struct Screen;

impl Screen {
    fn take() -> std::io::Result<Self> {
        enable_raw_mode()?;
        let screen = Screen;
        queue!(stdout(), EnterAlternateScreen, Clear(ClearType::All), Hide, DisableLineWrap)?;
        stdout().flush()?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = queue!(stdout(), EnableLineWrap, Show, LeaveAlternateScreen);
        let _ = stdout().flush();
        let _ = disable_raw_mode();
    }
}
