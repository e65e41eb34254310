//! Test bed for ralph: sealed projects, a scripted model server, the real client, a scripted GitHub and the real `gh`, a
//! pseudo terminal, a browser, a crash injector.
//!
//! Nothing here is shipped. The point is that ralph's tests can drive the *real* Claude Code client offline: the client
//! talks to [`ModelServer`] on the loopback interface, lives in a [`Project`] with a home folder of its own, and runs
//! the hook exactly as it would on somebody's machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "test code: a broken test bed should fail loudly, and the product's own ways to files and processes are under test"
)]

mod actionlint;
pub mod agent;
pub mod browser;
pub mod client;
mod fetch;
pub mod gh;
pub mod github;
mod http;
#[cfg(target_os = "linux")]
pub mod killer;
pub mod model_server;
pub mod nats;
pub mod nightly;
pub mod origin;
pub mod process;
pub mod project;
pub mod prometheus;
pub mod pty;
pub mod settings;
pub mod skip;
pub mod story;
pub mod webhook;

pub use actionlint::actionlint;
pub use agent::{Agent, InstalledAgent, SharedServer};
pub use browser::{Browser, Medium, Page, Theme};
pub use client::{Client, PrintOutput, PrintRun, SignIn, Tui, TuiRun, Version};
pub use gh::Gh;
pub use github::{Check, Fault, GitHub, PullRequest};
pub use model_server::{Cached, Gate, Kind, ModelServer, Reply, Request};
pub use nats::{NatsServer, NatsVersion};
pub use origin::Origin;
pub use process::Output;
pub use project::{Project, Run};
pub use pty::Pty;
pub use settings::{Hook, Settings, write_plugin};
pub use skip::Skip;
pub use webhook::{Manner, Webhook};
