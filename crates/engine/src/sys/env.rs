//! The environment: every variable that ralph reads, but those of an agent (`hosts/`).

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::OnceLock,
};

#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub(crate) fn os(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|v| !v.is_empty())
}

/// All variables that are text.
pub(crate) fn all() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

pub(crate) fn text(name: &str) -> Option<String> {
    os(name)?.into_string().ok()
}

/// Where the client was started; it does not change when the model changes directories. Other agents set it too.
pub fn project_dir() -> Option<PathBuf> {
    os("CLAUDE_PROJECT_DIR").map(PathBuf::from)
}

/// The server that gh asks, if that is not github.com.
pub(crate) fn gh_host() -> Option<String> {
    text("GH_HOST")
}

/// Whether hooks are switched off: `RALPH_DISABLE=1`. Empty and `0` do not.
pub fn is_disabled() -> bool {
    os(DISABLE).is_some_and(|value| is_on(&value.to_string_lossy()))
}

pub const DISABLE: &str = "RALPH_DISABLE";

/// Whether a value of [`DISABLE`] switches ralph off.
pub fn is_on(value: &str) -> bool {
    !matches!(value.trim(), "" | "0")
}

/// Set for every command of a gate, to the gate's name.
pub(crate) const GATE: &str = "RALPH_GATE";

/// How many commands of gates may run at a time on this machine; `None`: any number. A fleet sets it for all that it starts.
pub(crate) fn gates_at_once() -> Option<u64> {
    text("RALPH_GATES_AT_ONCE")?.trim().parse().ok().filter(|most| *most > 0)
}

/// Set by ralph's plugin for whatever an agent's tools run.
pub(crate) const AGENTS_SHELL: &str = "RALPH_AGENTS_SHELL";

/// Whether a gate's command started this process.
pub(crate) fn is_within_gate() -> bool {
    os(GATE).is_some()
}

/// Set for every session of `ralph run` and all its children: which loop, and which run.
pub(crate) const RUN: &str = "RALPH_RUN";

/// The mark of the run that this process's session belongs to.
pub(crate) fn run_mark() -> Option<String> {
    text(RUN)
}

/// Set for every command of a gate that a run measures: which loop, and which run.
pub(crate) const RUNNER: &str = "RALPH_RUNNER";

static RUNNER_MARK: OnceLock<String> = OnceLock::new();

/// This process is a run, with this mark.
pub(crate) fn note_runner(mark: &str) {
    RUNNER_MARK.get_or_init(|| mark.to_owned());
}

/// The mark of the run that this process is.
pub(crate) fn runner_mark() -> Option<&'static str> {
    RUNNER_MARK.get().map(String::as_str)
}

/// A file that gets a line for every hook call, in projects without ralph too.
pub(crate) fn log_file() -> Option<PathBuf> {
    os("RALPH_LOG").map(PathBuf::from)
}

/// The path of a feature folder in another place than the usual one, relative to the project.
pub(crate) fn loop_dir() -> Option<PathBuf> {
    os("RALPH_LOOP_DIR").map(PathBuf::from)
}

pub fn home() -> Option<PathBuf> {
    os(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).map(PathBuf::from)
}

/// The user's configuration folder. A relative one would be another in every project.
pub(crate) fn config_home() -> Option<PathBuf> {
    os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute())
}

/// The user who called `sudo`.
#[cfg(unix)]
pub(crate) fn sudo_user() -> Option<u32> {
    os("SUDO_UID")?.to_str()?.parse().ok()
}

/// Ralph's state folder for this user.
pub fn state_dir() -> Option<PathBuf> {
    let of_platform = || {
        let home = home()?;
        Some(match std::env::consts::OS {
            "macos" => home.join("Library/Application Support"),
            "windows" => os("LOCALAPPDATA").map_or_else(|| home.join("AppData/Local"), PathBuf::from),
            _ => home.join(".local/state"),
        })
    };
    let base = os("XDG_STATE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute()).or_else(of_platform);
    // A relative one would be another in every project, and a repository could fill it.
    let base = base.filter(|dir| dir.is_absolute())?;
    Some(base.join("ralph"))
}

/// Ralph's cache folder for this user: what is there can be made anew.
pub fn cache_dir() -> Option<PathBuf> {
    let of_platform = || match std::env::consts::OS {
        "macos" => home().map(|home| home.join("Library/Caches")),
        "windows" => os("LOCALAPPDATA").map(PathBuf::from),
        _ => home().map(|home| home.join(".cache")),
    };
    let base = os("XDG_CACHE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute()).or_else(of_platform);
    Some(base.filter(|dir| dir.is_absolute())?.join("ralph"))
}

/// What the environment says about a NATS server: `NATS_NKEY` and the like.
pub fn of_nats(name: &str) -> Option<OsString> {
    name.starts_with("NATS_").then(|| os(name)).flatten()
}

/// The user's browsers, the preferred one first.
pub(crate) fn browsers() -> Vec<String> {
    let named = os("BROWSER").unwrap_or_default();
    let names = std::env::split_paths(&named).filter_map(|name| name.to_str().map(|name| name.trim_end_matches("%s").trim().to_owned()));
    names.filter(|name| !name.is_empty()).collect()
}

/// Whether there is a screen that a browser could be drawn on.
pub(crate) fn has_display() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| os(name).is_some_and(|value| !value.is_empty()))
}

/// Whether `TZ` says in which zone the person reads times; empty, it says UTC.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub(crate) fn names_a_zone() -> bool {
    std::env::var_os("TZ").is_some()
}

/// The folders in which programs are looked for.
pub(crate) fn search_path() -> Vec<PathBuf> {
    os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// The variables that a program needs to run at all.
pub(crate) fn for_any_program() -> Vec<(&'static str, OsString)> {
    ["PATH", "SystemRoot"].into_iter().filter_map(|name| Some((name, os(name)?))).collect()
}

pub fn shell() -> Option<PathBuf> {
    os("SHELL").map(PathBuf::from)
}

/// Set for the command whose status line `ralph statusline` goes on with.
pub const STATUSLINE: &str = "RALPH_STATUSLINE";

/// Whether such a command started this process.
pub fn is_within_statusline() -> bool {
    os(STATUSLINE).is_some()
}

pub fn wants_no_colour() -> bool {
    os("NO_COLOR").is_some()
}

/// Whether the terminal cannot move its cursor. Outside of Unix TERM is not set.
pub fn is_dumb_terminal() -> bool {
    text("TERM").map_or(cfg!(unix), |term| term == "dumb")
}

/// Whether the locale is not UTF-8. Without a locale UTF-8 is assumed.
pub fn is_ascii_only() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(text).map(|locale| locale.to_lowercase());
    locale.is_some_and(|locale| !locale.contains("utf-8") && !locale.contains("utf8"))
}

/// The width of a terminal that does not tell it itself.
pub fn columns() -> Option<usize> {
    text("COLUMNS")?.parse().ok()
}

/// The file that a step of GitHub Actions adds its summary to.
pub fn step_summary() -> Option<PathBuf> {
    os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Whether the page of a loop is written when the loop ends, pauses or parks.
pub fn wants_pages() -> bool {
    let is_no = |word: &OsString| ["off", "0", "no", "false"].iter().any(|no| word.eq_ignore_ascii_case(no));
    !os("RALPH_REPORT").as_ref().is_some_and(is_no)
}

/// The notifications for every run, in the words of `--notify`.
pub fn notify() -> Option<String> {
    text("RALPH_NOTIFY")
}

/// Whether programs started here reach a desktop.
pub(crate) fn has_desktop() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"].into_iter().any(|name| os(name).is_some())
}

/// Whether the terminal is in tmux, which needs sequences wrapped.
pub(crate) fn is_in_tmux() -> bool {
    os("TMUX").is_some()
}

pub(crate) fn is_in_screen() -> bool {
    os("STY").is_some()
}

/// Whether this machine is a sandbox; otherwise the client refuses to skip permissions as root.
pub(crate) fn is_sandbox() -> bool {
    text("IS_SANDBOX").as_deref() == Some("1")
}

/// Whether a container is around this process, as far as the usual signs tell.
pub fn is_container() -> bool {
    is_sandbox() || os("container").is_some() || ["/.dockerenv", "/run/.containerenv"].iter().any(|sign| Path::new(sign).exists())
}

/// Lets a test that an agent runs act as a person. In builds with debug assertions only.
pub(crate) fn stands_alone() -> bool {
    cfg!(debug_assertions) && os("RALPH_ALONE").is_some()
}

/// How many times faster than usual waits for the model's service go by, in builds with debug assertions only.
pub(crate) fn time_scale() -> i64 {
    let asked = || text("RALPH_HASTE")?.parse().ok().filter(|times| *times > 0);
    if cfg!(debug_assertions) { asked().unwrap_or(1) } else { 1 }
}

/// A fault to provoke, in builds with debug assertions only: `panic`.
pub(crate) fn fault() -> Option<String> {
    if cfg!(debug_assertions) { text("RALPH_FAULT") } else { None }
}
