//! The options that describe a new loop: what to work on, what ends it, what has to be proven.

use std::{
    fs,
    io::{IsTerminal, Read, stdin},
    path::PathBuf,
};

use ralph_core::loop_file::Preset;
use ralph_engine::ops::{resume, start};

use crate::{
    commands::{amount, count, name},
    exit::Failure,
    ui,
};

/// A loop that is wanted.
#[derive(clap::Args)]
pub(super) struct NewLoop {
    /// What the agent shall work on
    #[arg(value_name = "PROMPT", help_heading = None::<&'static str>)]
    pub(super) prompt: Vec<String>,
    /// Take the prompt from a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "stdin"])]
    pub(super) prompt_file: Option<PathBuf>,
    /// Take the prompt from standard input
    #[arg(long, conflicts_with = "prompt")]
    pub(super) stdin: bool,
    /// End after this many iterations; 0 means no limit
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub(super) max_iterations: Option<u64>,
    /// The words that the agent must put between <promise> and </promise> when all is done
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(super) completion_promise: Option<String>,
    /// A command that must pass before the loop may end; may be given several times
    #[arg(long, value_name = "CMD", value_parser = words)]
    pub(super) verify: Vec<String>,
    /// How long each --verify command may run: 90s, 10m, 2h, or seconds [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = ralph_core::config::time_limit, requires = "verify")]
    pub(super) deadline: Option<u64>,
    /// Gates that need no ralph.toml: the commands of a worktree.yaml, the list that is in the project, the way to an open pull request, or from red checks
    /// to the merge
    #[arg(long, value_parser = Preset::ALL.map(Preset::as_str))]
    pub(super) preset: Option<String>,
    /// End after this many hours; 0 means no limit [default: 8]
    #[arg(long, value_name = "H", value_parser = amount, allow_hyphen_values = true)]
    pub(super) hours: Option<f64>,
    /// End when about this many dollars are spent, estimated from the tokens that the client reports; 0 means no limit [default: 50 with the presets pre-pr
    /// and after-pr, else no limit]
    #[arg(long, value_name = "X", value_parser = amount, allow_hyphen_values = true)]
    pub(super) usd: Option<f64>,
    /// End when fresh sessions (`ralph run`) have used this many tokens of all kinds; 0 means no limit
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub(super) tokens: Option<u64>,
    /// Pause after this many rounds in a row without any tool call
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub(super) idle_rounds: Option<u64>,
    /// Pause after this many rounds in a row that change nothing: no commit, no file, no finding; 0 means never [default: 6 with the presets pre-pr
    /// and after-pr, else 4 in fresh sessions (`ralph run`) and 10 in a session of your own]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub(super) stall_rounds: Option<u64>,
    /// A name, for more than one loop in a project
    #[arg(long, value_parser = name)]
    pub(super) name: Option<String>,
    /// How the prompt goes back to the agent
    #[arg(long, value_name = "FORM", value_parser = ["auto", "block", "context"])]
    pub(super) continue_with: Option<String>,
}

/// A text that is not empty.
pub(super) fn words(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("needs words".to_owned()) } else { Ok(text.to_owned()) }
}

impl NewLoop {
    /// Somebody said where the prompt is, even if there is none.
    pub(super) fn has_prompt(&self) -> bool {
        !self.prompt.is_empty() || self.prompt_file.is_some() || self.stdin
    }

    /// An option that says nothing about a loop that is there already.
    pub(super) fn only_for_a_new_one(&self) -> Option<&'static str> {
        let given = [
            ("--completion-promise", self.completion_promise.is_some()),
            ("--verify", !self.verify.is_empty()),
            ("--preset", self.preset.is_some()),
            ("--continue-with", self.continue_with.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// The loop, with its prompt read from wherever it is.
    pub(super) fn request(self) -> Result<start::Request, Failure> {
        let prompt = self.prompt()?;
        Ok(start::Request {
            name: self.name,
            prompt,
            max_iterations: self.max_iterations,
            completion_promise: self.completion_promise,
            hours: self.hours,
            usd: self.usd,
            tokens: self.tokens,
            idle_rounds: self.idle_rounds,
            stall_rounds: self.stall_rounds,
            continue_with: self.continue_with,
            verify: self.verify,
            deadline_ms: self.deadline,
            preset: self.preset,
        })
    }

    /// The loop that is there already, with the new limits.
    pub(super) fn again(self) -> resume::Request {
        resume::Request {
            which: self.name,
            max_iterations: self.max_iterations,
            hours: self.hours,
            usd: self.usd,
            tokens: self.tokens,
            idle_rounds: self.idle_rounds,
            stall_rounds: self.stall_rounds,
            goes_on: true,
            ..resume::Request::default()
        }
    }

    fn prompt(&self) -> Result<String, Failure> {
        let raw = if let Some(path) = &self.prompt_file {
            fs::read(path).map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))?
        } else if self.stdin {
            if stdin().is_terminal() {
                ui::note("the prompt is read from the terminal; end it with Ctrl-D on a line of its own");
            }
            let mut bytes = Vec::new();
            stdin().lock().read_to_end(&mut bytes).map_err(|e| Failure::new(format!("cannot read standard input: {e}")))?;
            bytes
        } else {
            self.prompt.join(" ").into_bytes()
        };
        let text = String::from_utf8(raw).map_err(|_| Failure::usage("the prompt is not UTF-8 text"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let prompt = text.trim_matches(['\r', '\n']);
        if prompt.trim().is_empty() {
            return Err(Failure::usage(match (&self.prompt_file, self.stdin) {
                (Some(path), _) => format!("there is no prompt in {}", path.display()),
                (None, true) => "standard input was empty: there is no prompt".to_owned(),
                (None, false) => "there is no prompt: give it as words, with --prompt-file FILE or with --stdin".to_owned(),
            }));
        }
        Ok(prompt.to_owned())
    }
}
