//! A loop in one line: its parts, the most important of which stay where there is little room.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use ralph_core::{
    gate::Verdict,
    money,
    text::{clean, of_limit, time::in_words},
};
use ralph_engine::{
    sys::env,
    view::{GateView, Status, View, Waiter},
};

use crate::{
    journal_lines::in_thousands,
    term::width::{columns, cut, fit},
};

const GOOD: Style = AnsiColor::Green.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const PLAIN: Style = Style::new();

/// More gates than this are counted.
const NAMED: usize = 4;
/// So much of a gate's name tells which it is.
const NAME: usize = 16;
/// So much of what is waited for tells what it is.
const WAIT: usize = 32;

/// How long a part stays while others go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Head,
    State,
    Gates,
    Money,
    Time,
    Context,
}

pub(crate) struct Brief(Vec<(Rank, String)>);

impl Brief {
    /// `called` comes first; `context` is how full the session's context is, if that is known better than from the journal.
    pub(crate) fn of(view: &View, called: &str, context: Option<u64>) -> Self {
        let parts = [
            (Rank::Head, Some(head(view, called))),
            (Rank::Time, Some(time(view))),
            (Rank::Money, money(view)),
            (Rank::Money, tokens(view)),
            (Rank::Context, context.or(view.context).and_then(|context| fill(view, context))),
            (Rank::Gates, gates(&view.gates)),
            (Rank::State, state(view)),
        ];
        Brief(parts.into_iter().filter_map(|(rank, text)| Some((rank, text?))).collect())
    }

    /// A line with nothing but words.
    pub(crate) fn plain(text: String) -> Self {
        Brief(vec![(Rank::Head, text)])
    }

    /// The line in as many columns: without a width, all of it.
    pub(crate) fn fitted(self, width: Option<usize>) -> String {
        fit(self.0, width.unwrap_or(usize::MAX))
    }

    pub(crate) fn shortest(&self) -> usize {
        self.0.first().map_or(0, |(_, head)| columns(head))
    }
}

/// With colour, unless the person wants none; that it goes into a pipe says nothing here.
fn painted(style: Style, text: impl Display) -> String {
    if env::wants_no_colour() { text.to_string() } else { format!("{style}{text}{style:#}") }
}

/// `ralph 4/20`
fn head(v: &View, called: &str) -> String {
    let iteration = if v.max_iterations == 0 { v.iteration.to_string() } else { format!("{}/{}", v.iteration, v.max_iterations) };
    let style = match v.status {
        Status::Active | Status::Waiting => GOOD,
        Status::Corrupt => BAD,
        _ => WARN,
    };
    painted(style.bold(), format!("{called} {iteration}"))
}

/// The use of a limit, in a colour that warns near its end.
fn of_most(spent: f64, most: f64, text: String) -> String {
    painted(if most > 0.0 && spent >= most * 0.9 { WARN } else { PLAIN }, text)
}

#[expect(clippy::cast_precision_loss, reason = "nine tenths need not be exact")]
fn time(v: &View) -> String {
    let limit = if v.max_ms == 0 { String::new() } else { format!(" of {}", in_words(v.max_ms)) };
    of_most(v.spent_ms as f64, v.max_ms as f64, format!("{}{limit}", in_words(v.spent_ms)))
}

fn money(v: &View) -> Option<String> {
    if let Some(uncounted) = v.uncounted_money().filter(|_| v.max_usd > 0.0) {
        return Some(painted(WARN, format!("money {uncounted}")));
    }
    let spent = v.spent_usd.filter(|spent| *spent > 0.0).or((v.max_usd > 0.0).then_some(0.0))?;
    let limit = if v.max_usd > 0.0 { format!(" of {}", money::shown(money::of_dollars(v.max_usd))) } else { String::new() };
    Some(of_most(spent, v.max_usd, format!("{}{limit}", money::shown(money::of_dollars(spent)))))
}

#[expect(clippy::cast_precision_loss, reason = "nine tenths need not be exact")]
fn tokens(v: &View) -> Option<String> {
    if let Some(uncounted) = v.uncounted_tokens().filter(|_| v.max_tokens > 0) {
        return Some(painted(WARN, format!("tokens {uncounted}")));
    }
    let text = || format!("{} of {} tokens", in_thousands(v.tokens), in_thousands(v.max_tokens));
    (v.max_tokens > 0).then(|| of_most(v.tokens as f64, v.max_tokens as f64, text()))
}

/// How full the context is, where the loop ends at a limit.
#[expect(clippy::cast_precision_loss, reason = "percent")]
fn fill(v: &View, context: u64) -> Option<String> {
    let text = || format!("context {} %", of_limit(context, v.max_context));
    (v.max_context > 0).then(|| of_most(context as f64, v.max_context as f64, text()))
}

/// `tests ✗ lint ✓`; where there are many, what holds is counted.
fn gates(all: &[GateView]) -> Option<String> {
    let holds = |gate: &&GateView| gate.verdict == Some(Verdict::Pass);
    let shown = |gate: &GateView| {
        let verdict = gate.verdict?;
        let style = match verdict {
            Verdict::Pass => GOOD,
            Verdict::Fail => BAD,
            Verdict::Wait | Verdict::Unknown => WARN,
        };
        Some(painted(style, format!("{} {}", cut(&clean(&gate.name), NAME), verdict.mark())))
    };
    let mut parts: Vec<String> = if all.len() <= NAMED {
        all.iter().filter_map(shown).collect()
    } else {
        let open: Vec<&GateView> = all.iter().filter(|gate| !holds(gate) && gate.verdict.is_some()).collect();
        let more = open.len().saturating_sub(NAMED);
        let named = open.into_iter().take(NAMED).filter_map(shown);
        named.chain((more > 0).then(|| painted(BAD, format!("+{more}")))).collect()
    };
    let held = all.iter().filter(holds).count();
    if all.len() > NAMED && held > 0 {
        parts.push(painted(GOOD, format!("{held} ✓")));
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// A gate or a wait that goes on beside the agent's work, or why nothing does.
fn state(v: &View) -> Option<String> {
    let text = match (v.status, &v.waits, &v.checking) {
        (Status::Parked, Some(waits), _) => format!("parked: {}", cut(&clean(&waits.what), WAIT)),
        (Status::Active, Some(waits), _) if waits.by == Waiter::Person => format!("waits for {}", waits.words()),
        (Status::Active, Some(waits), _) => format!("waits for {}", cut(&clean(&waits.what), WAIT)),
        (Status::Active, None, Some(checking)) => format!("runs {} {}", cut(&clean(&checking.gate), NAME), in_words(checking.for_ms)),
        (Status::Active, ..) if v.interrupted.is_none() => return None,
        (Status::Waiting, ..) => "begins at the next stop".to_owned(),
        _ => v.stands().to_owned(),
    };
    Some(painted(WARN, text))
}
