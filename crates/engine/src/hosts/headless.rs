//! How an agent is started for one session without a person, as data: its program, its flags, its words for what it may do.

use std::{ffi::OsString, path::Path};

use ralph_core::money::{Micros, in_dollars};

use super::{acp::AcpClient, prices::Prices, stream::Decode};

/// An agent's way to work without a person. The prompt comes on its standard input.
pub struct Headless {
    /// The program's name.
    pub program: &'static str,
    /// The line that installs it.
    pub install: &'static str,
    /// Arguments before and after those of one session.
    pub(crate) before: &'static [&'static str],
    pub(crate) after: &'static [&'static str],
    /// The option for its model, if it has one.
    pub(crate) model: Option<&'static str>,
    /// The option for an id that ralph chooses; `None`: the agent chooses one.
    pub(crate) session: Option<&'static str>,
    /// The option for the money that is left, where the agent counts it itself.
    pub(crate) budget: Option<&'static str>,
    /// Its arguments for each permission mode that it knows.
    pub modes: &'static [(&'static str, &'static [&'static str])],
    /// In no mode at all it may not change a file.
    pub(crate) needs_mode: bool,
    /// Variables that it gets.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// An interrupt makes it tell what it used before it ends.
    pub(crate) heeds_interrupts: bool,
    /// Of a longer prompt, in bytes, it reads only a part.
    pub(crate) longest: Option<usize>,
    /// What it prints says which calls were denied.
    pub(crate) tells_denials: bool,
    /// What it prints.
    pub(crate) stream: fn(&Launch<'_>) -> Box<dyn Decode>,
}

impl Headless {
    /// What most of them have; an agent's row says what is its own.
    pub(super) const PLAIN: Self = Headless {
        program: "",
        install: "",
        before: &[],
        after: &[],
        model: None,
        session: None,
        budget: None,
        modes: &[],
        needs_mode: false,
        variables: &[],
        heeds_interrupts: false,
        longest: None,
        tells_denials: true,
        stream: |launch| Box::new(AcpClient::new(launch, true)),
    };
}

/// The settings of one session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch<'a> {
    /// A UUID that no session has had.
    pub session: &'a str,
    pub model: Option<&'a str>,
    pub permission_mode: Option<&'a str>,
    /// 0 means no limit.
    pub usd_micros_left: Micros,
    pub prices: &'a Prices,
    /// Where it works, and what on: for an agent that is told so in a conversation.
    pub folder: &'a Path,
    pub prompt: &'a str,
}

impl<'a> Launch<'a> {
    /// For a decoder that only reads a log.
    pub(crate) fn of_log(prices: &'a Prices) -> Self {
        Launch { session: "", model: None, permission_mode: None, usd_micros_left: 0, prices, folder: Path::new(""), prompt: "" }
    }
}

impl Headless {
    /// The whole command line but the program.
    pub(crate) fn args(&self, launch: &Launch<'_>) -> Vec<OsString> {
        let budget = (launch.usd_micros_left > 0).then(|| in_dollars(launch.usd_micros_left).to_string());
        let options = [(self.session, Some(launch.session)), (self.model, launch.model), (self.budget, budget.as_deref())];
        let options = options.into_iter().filter_map(|(name, value)| Some([name?, value?])).flatten();
        let mode = self.mode(launch.permission_mode).unwrap_or_default();
        let all = self.before.iter().copied().chain(options).chain(mode.iter().copied()).chain(self.after.iter().copied());
        all.map(OsString::from).collect()
    }

    /// Its arguments for a permission mode; `None`: it has no such mode.
    pub fn mode(&self, mode: Option<&str>) -> Option<&'static [&'static str]> {
        match mode {
            None => Some(&[]),
            Some(mode) => self.modes.iter().find(|(name, _)| *name == mode).map(|(_, args)| *args),
        }
    }
}
