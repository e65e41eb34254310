//! The options that describe a new loop: what to work on, what ends it, what has to be proven.

use std::{
    fs,
    io::{IsTerminal, Read, stdin},
    path::PathBuf,
};

use ralph_engine::ops::{resume, start};

use crate::{
    commands::{loop_flags::LoopFlags, name},
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
    #[command(flatten)]
    pub(super) settings: LoopFlags<true>,
    /// A name, for more than one loop in a project
    #[arg(long, value_parser = name)]
    pub(super) name: Option<String>,
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

    /// The loop, with its prompt read from wherever it is.
    pub(super) fn request(self) -> Result<start::Request, Failure> {
        let prompt = self.prompt()?;
        Ok(start::Request { name: self.name, prompt, settings: self.settings.0 })
    }

    /// The loop that exists, with the new limits.
    pub(super) fn again(self) -> resume::Request {
        resume::Request { which: self.name, settings: self.settings.0, goes_on: true, ..resume::Request::default() }
    }

    fn prompt(&self) -> Result<String, Failure> {
        let raw = if let Some(path) = &self.prompt_file {
            fs::read(path).map_err(Failure::cannot_read(&path))?
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
