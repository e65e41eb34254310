//! The client's result and its meaning: it stopped, it was ended, or something is in its way.

use ralph_core::{
    judge::session_outcome::{Cut, Outcome, Tokens, Trouble},
    money::{self, Micros},
    text::time::Millis,
};
use serde_json::Value;

use crate::hosts::stream::Exit;

use super::fields::{status, tail, text, whole};

/// An error that the client reports in the place of a message.
#[derive(Debug)]
pub(super) struct Fault {
    class: String,
    quota: Option<Quota>,
}

impl Fault {
    pub(super) fn of(event: &Value) -> Option<Self> {
        let class = text(event, "error")?.to_owned();
        let info = &event["api_error_params"]["rate_limit_info"];
        Some(Fault { class, quota: info.is_object().then(|| Quota::of(info)) })
    }
}

/// The account's quota, as the service reports it.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    pub(crate) name: Option<String>,
    /// In hundredths.
    pub(super) used: Option<u64>,
    pub(crate) resets_at: Option<Millis>,
    /// Nothing is left, and nothing can be paid for beyond it.
    pub(super) is_rejected: bool,
}

impl Quota {
    pub(crate) fn of(info: &Value) -> Self {
        let name = text(info, "rateLimitType");
        let window = &info["unifiedWindows"][name.unwrap_or_default()];
        let used = info.get("utilization").or_else(|| window.get("utilization")).and_then(Value::as_f64);
        Quota {
            name: name.map(str::to_owned),
            used: used.map(|used| whole(&(used * 100.0).round().into())),
            resets_at: info["resetsAt"].as_i64().map(|seconds| seconds.saturating_mul(1_000)),
            is_rejected: info["status"] == "rejected" && info["isUsingOverage"] != true,
        }
    }

    /// Any refusal comes with this; only that of a quota says which, and until when.
    fn is_used_up(&self) -> bool {
        self.is_rejected && self.resets_at.is_some() && self.name.is_some()
    }
}

/// A result.
#[derive(Debug)]
pub(super) struct Verdict {
    subtype: String,
    is_error: bool,
    status: Option<u16>,
    api_error: Option<String>,
    terminal_reason: String,
    stop_reason: String,
    pub(super) text: Option<String>,
    pub(super) turns: u64,
    /// Of all that this process has done until then.
    pub(super) tokens: Tokens,
    pub(super) usd_micros: Micros,
    /// The model that cost most, and the context of the session's own.
    pub(super) model: Option<String>,
    pub(super) context_window: u64,
}

impl Verdict {
    /// `model` is the session's own.
    pub(super) fn of(event: &Value, model: Option<&str>) -> Self {
        let own = |key| text(event, key).unwrap_or_default().to_owned();
        let is_error = event["is_error"] == true;
        let by_model = event["modelUsage"].as_object();
        let all = || by_model.into_iter().flatten();
        let cost = |usage: &Value| usage["costUSD"].as_f64().unwrap_or(0.0);
        let usd = event["total_cost_usd"].as_f64().unwrap_or_else(|| all().map(|(_, usage)| cost(usage)).sum());
        let dearest = all().max_by(|a, b| cost(a.1).total_cmp(&cost(b.1)));
        let own_usage = model.and_then(|model| by_model?.get(model)).or(dearest.map(|(_, usage)| usage));
        Verdict {
            subtype: own("subtype"),
            is_error,
            status: status(&event["api_error_status"]),
            api_error: text(event, "api_error").map(str::to_owned),
            terminal_reason: own("terminal_reason"),
            stop_reason: own("stop_reason"),
            text: text(event, "result").filter(|text| !is_error && !text.trim().is_empty()).map(|text| tail(text).to_owned()),
            turns: event["num_turns"].as_u64().unwrap_or(0),
            tokens: all().fold(Tokens::default(), |sum, (_, usage)| sum.plus(tokens(usage))),
            usd_micros: money::of_reported(usd),
            model: dearest.map(|(name, _)| name.clone()),
            context_window: own_usage.map_or(0, |usage| usage["contextWindow"].as_u64().unwrap_or(0)),
        }
    }

    /// A process only ever uses more.
    pub(super) fn count_on(&mut self, before: &Verdict) {
        self.usd_micros = self.usd_micros.max(before.usd_micros);
        if self.tokens.total() < before.tokens.total() {
            self.tokens = before.tokens;
        }
    }

    /// It was interrupted; the request that was under way is not in its figures.
    pub(super) fn is_aborted(&self) -> bool {
        self.subtype == "error_during_execution"
    }

    pub(super) fn outcome(&self, fault: Option<&Fault>, quota: Option<&Quota>, exit: Exit, model: Option<&str>) -> Outcome {
        let failed = |trouble| Outcome::Failed { trouble };
        match self.subtype.as_str() {
            "error_max_budget_usd" => return Outcome::Cut { by: Cut::Money },
            "error_max_turns" => return Outcome::Cut { by: Cut::Turns },
            _ if !self.is_error => return Outcome::Stopped,
            "success" => {}
            _ => return failed(Trouble::Crash { code: exit.code, signal: exit.signal }),
        }
        let status = self.status;
        failed(match fault.map(|fault| fault.class.as_str()).unwrap_or_default() {
            "rate_limit" => self.limit_or_rate(fault.and_then(|fault| fault.quota.as_ref()).or(quota)),
            "server_error" => Trouble::Service { status },
            "authentication_failed" => Trouble::SignIn { status },
            "billing_error" => Trouble::Billing { status },
            "model_not_found" => Trouble::Model { name: model.map(str::to_owned) },
            "max_output_tokens" => Trouble::Refused { status, too_long: false },
            _ if self.terminal_reason == "prompt_too_long" => Trouble::Refused { status, too_long: true },
            _ if self.stop_reason == "refusal" || self.terminal_reason == "image_error" => Trouble::Refused { status, too_long: false },
            _ => by_status(status),
        })
    }

    fn limit_or_rate(&self, quota: Option<&Quota>) -> Trouble {
        let used_up = quota.filter(|quota| quota.is_used_up());
        if used_up.is_none() && self.api_error.as_deref() != Some("usage_limit_reached") {
            return Trouble::Service { status: self.status };
        }
        Trouble::Limit { until: used_up.and_then(|quota| quota.resets_at), quota: used_up.and_then(|quota| quota.name.clone()) }
    }
}

/// An error of a class that is not known.
fn by_status(status: Option<u16>) -> Trouble {
    match status {
        Some(401 | 403) => Trouble::SignIn { status },
        Some(402) => Trouble::Billing { status },
        Some(429 | 500..) | None => Trouble::Service { status },
        Some(_) => Trouble::Refused { status, too_long: false },
    }
}

fn tokens(usage: &Value) -> Tokens {
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    Tokens {
        input: count("inputTokens"),
        output: count("outputTokens"),
        cache_read: count("cacheReadInputTokens"),
        cache_written: count("cacheCreationInputTokens"),
    }
}
