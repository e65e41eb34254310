//! A notification on the desktop, through the system's program for it. The texts are always arguments, never part of a script.

use std::{ffi::OsString, path::PathBuf, time::Instant};

use super::{
    Kind, News,
    programs::{problem, run},
};
use crate::sys::{env, process};

pub(super) fn tell(news: &News<'_>, until: Instant) -> Result<(), String> {
    let (program, args) = match std::env::consts::OS {
        "macos" => (find("osascript", news)?, for_osascript(news)),
        "windows" => return Err("ralph shows no desktop notifications on Windows: use a command or a webhook".to_owned()),
        _ if !env::has_desktop() => {
            return Err("no desktop notification: there is no desktop in this session (no DISPLAY, no WAYLAND_DISPLAY)".to_owned());
        }
        _ => (find("notify-send", news)?, for_notify_send(news)),
    };
    let args = args.into_iter().map(OsString::from).collect();
    let ran = run(program.into(), args, news.folder, Vec::new(), Vec::new(), until);
    problem(ran).map(drop).map_err(|why| format!("no desktop notification: its program {why}"))
}

/// Never a program of the project's.
fn find(program: &str, news: &News<'_>) -> Result<PathBuf, String> {
    process::which_outside(program, news.folder).ok_or_else(|| {
        let package = if program == "notify-send" { " (Debian, Ubuntu: apt install libnotify-bin)" } else { "" };
        format!("no desktop notification: {program} is not installed{package}")
    })
}

/// A notification that needs a person stays on the screen until it is seen.
fn for_notify_send(news: &News<'_>) -> Vec<String> {
    let urgency = if news.kind == Kind::NeedsPerson { "critical" } else { "normal" };
    // Servers take the body for markup, and the program undoes backslashes in it.
    let body = news.body().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\\', "\\\\");
    vec!["--app-name=ralph".to_owned(), format!("--urgency={urgency}"), "--".to_owned(), news.title(), body]
}

fn for_osascript(news: &News<'_>) -> Vec<String> {
    const SCRIPT: [&str; 3] = ["on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run"];
    let script = SCRIPT.into_iter().flat_map(|line| ["-e".to_owned(), line.to_owned()]);
    // A title that began with a dash would be taken for an option.
    script.chain([format!("ralph: {}", news.title()), news.body()]).collect()
}
