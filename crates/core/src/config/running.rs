//! `[run]` and `[notify]` in `ralph.toml`: how fresh sessions are run, and who is notified.

use super::{
    Problem, deadline,
    keys::{Kind, table},
    pull_requests::told,
    reader::Field,
};

/// The client's own words.
const PERMISSION_MODES: [&str; 5] = ["default", "acceptEdits", "auto", "dontAsk", "bypassPermissions"];

table! {
    /// How `ralph run` runs fresh sessions.
    pub struct Run = "[run]";
    /// The model of every session, unless an item of a list names another. The client's own choice if not given.
    model: Option<String> = None, Kind::Text, told;
    /// The client's permission mode; what its own settings say if not given. Counts once this file is trusted.
    permission_mode: Option<String> = None, Kind::Choice(&PERMISSION_MODES), |field| field.pick(PERMISSION_MODES).map(str::to_owned);
    /// So many times a session's own stop hook sends it back while gates fail, before its iteration ends. 0 if not given.
    inner: u64 = 0, Kind::Count, Field::count;
    /// A session of which nothing is heard for so long is ended. 15m if not given.
    silence_ms as "silence": u64 = 15 * 60_000, Kind::Time, deadline;
    /// One iteration may not take longer; 0 means no limit. 2h if not given.
    round_ms as "round": u64 = 2 * 3_600_000, Kind::Time, or_none;
    /// So many crashes of the agent in a row are borne. 3 if not given.
    retries: u64 = 3, Kind::Count, Field::count;
    /// So many sessions are started within an hour; 0 means no limit.
    calls_per_hour: u64 = 0, Kind::Count, Field::count;
    /// After so many failing iterations in a row `escalate_model` gets its turn; 0 means never.
    escalate_after: u64 = 0, Kind::Count, Field::count;
    /// The model for iterations after failing ones.
    escalate_model: Option<String> = None, Kind::Text, told;
    /// Keep the files after every iteration under refs/ralph/, for `ralph diff` and `ralph rollback`. True if not given.
    snapshots: bool = true, Kind::Bool, Field::bool;
    /// What models cost where ralph's own list is wrong or has no price: dollars for a million tokens of input, output and cached input. Counts once this file is trusted.
    prices: Vec<(String, [u64; 3])> = Vec::new(), Kind::Prices, prices;
    /// How long nothing is tried after too many iterations without progress; then comes one last try. 1m if not given.
    cooldown_ms as "cooldown": u64 = 60_000, Kind::Time, or_none;
}

table! {
    /// Who is told when a run ends, waits for long, or needs a person.
    pub struct Notify = "[notify]";
    /// A notification on the desktop.
    desktop: bool = false, Kind::Bool, Field::bool;
    /// One through the terminal that the run is shown in, also over ssh.
    terminal: bool = false, Kind::Bool, Field::bool;
    /// A line for the shell, with the news in its environment and as JSON on its input. Runs once this file is trusted.
    command: Option<String> = None, Kind::Text, told;
    /// An address that gets the news as JSON, by POST. Asked once this file is trusted.
    webhook: Option<String> = None, Kind::Text, address;
}

pub(super) fn run(field: Field<'_>) -> Result<Run, Problem> {
    let run = Run::of(field)?;
    match (run.escalate_after, &run.escalate_model) {
        (0, Some(_)) => Err(field.problem("`escalate_model` needs `escalate_after`: after how many failing iterations")),
        (1.., None) => Err(field.problem("`escalate_after` needs `escalate_model`: which model gets its turn then")),
        _ => Ok(run),
    }
}

/// A length of time; 0 means none.
fn or_none(field: Field<'_>) -> Result<u64, Problem> {
    if field.count().is_ok_and(|seconds| seconds == 0) { Ok(0) } else { deadline(field) }
}

/// Prices in thousandths of a dollar for a million tokens.
fn prices(field: Field<'_>) -> Result<Vec<(String, [u64; 3])>, Problem> {
    let thousandths = |text: &str| {
        let dollars = text.trim().parse::<f64>().ok().filter(|dollars| (0.0..100_000.0).contains(dollars))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        let thousandths = (dollars * 1_000.0).round() as u64;
        Some(thousandths)
    };
    let price = |(model, text): (String, String)| {
        let numbers: Option<Vec<u64>> = text.split(',').map(thousandths).collect();
        let price = numbers.and_then(|numbers| <[u64; 3]>::try_from(numbers).ok());
        price.map(|price| (model.clone(), price)).ok_or_else(|| {
            let model = model.escape_default();
            field.problem(format!("the price of \"{model}\" must be three numbers such as \"5, 30, 0.5\": dollars for a million tokens of input, output and cached input"))
        })
    };
    field.pairs()?.into_iter().map(price).collect()
}

fn address(field: Field<'_>) -> Result<String, Problem> {
    let text = told(field)?;
    if Notify::is_address(&text) {
        Ok(text)
    } else {
        Err(field.problem("`webhook` must be an address such as \"https://example.org/hook\""))
    }
}

impl Notify {
    /// Whether a text can be the address of a webhook.
    pub fn is_address(text: &str) -> bool {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        rest.is_some_and(|rest| {
            !rest.is_empty() && text.len() <= 2_000 && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\\'))
        })
    }
}
