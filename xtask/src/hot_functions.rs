//! Which functions a hook call runs, as a linker script that puts them side by side.
//!
//! They are one in twenty, spread over the whole program. The system maps a program in pieces of 64 KB as they are touched, so a call that touches all of them pays
//! for most of the program, in time and in memory. Side by side they are a few pieces. A function that is not in the list, or is gone, does no harm.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::Command,
};

use crate::{Result, cargo};

/// The script, which every build for release gets. `cargo xtask instructions --record` writes it.
pub(crate) fn script() -> PathBuf {
    cargo::root().join("bench/hot-functions.ld")
}

/// Where the linker says which function is where.
pub(crate) fn map() -> Result<PathBuf> {
    Ok(cargo::target_dir()?.join("ralph.map"))
}

/// Has a build linked with the script, where the linker knows such scripts. Returns the flags that the names of functions need for it.
pub(crate) fn link_with(command: &mut Command, target: &str) -> Result<&'static [&'static str]> {
    if !target.contains("linux") {
        return Ok(&[]);
    }
    command.env("RALPH_LINKER_SCRIPT", script()).env("RALPH_LINKER_MAP", map()?);
    Ok(&["-C", "symbol-mangling-version=v0"])
}

/// Functions that a processor runs and valgrind's does not: it has none of the instructions for SHA-256.
const UNSEEN: [&str; 1] = ["_RNvNtNtCs*_4sha26sha2567x86_sha8compress"];

/// The functions that some calls ran, in the order of the calls: those of the first come first.
#[derive(Default)]
pub(crate) struct HotFunctions {
    names: Vec<String>,
    known: BTreeSet<String>,
}

impl HotFunctions {
    /// Adds those of one call, from what callgrind wrote with `--dump-instr=yes --compress-pos=no`.
    pub(crate) fn add(&mut self, profile: &str, functions: &BTreeMap<u64, String>) {
        let addresses = profile.lines().filter_map(|line| u64::from_str_radix(line.strip_prefix("0x")?.split(' ').next()?, 16).ok());
        let run: BTreeSet<&u64> = addresses.filter_map(|at| Some(functions.range(..=at).next_back()?.0)).collect();
        for name in run.into_iter().filter_map(|start| pattern(&functions[start])) {
            if self.known.insert(name.clone()) {
                self.names.push(name);
            }
        }
    }

    pub(crate) fn write(&self) -> Result<()> {
        // Those of the C library are few, and small.
        let of_c = ["*self-contained/crt1.o(.text .text.*)", "*self-contained/libc.a:(.text .text.*)"];
        let own = self.names.iter().map(String::as_str).chain(UNSEEN).map(|name| format!("*(.text.{name} .text.unlikely.{name})"));
        let lines = of_c.map(str::to_owned).into_iter().chain(own).collect::<Vec<_>>().join("\n    ");
        let about = "/* Written by `cargo xtask instructions --record`: the functions that a hook call runs, side by side. */";
        Ok(fs::write(script(), format!("{about}\nSECTIONS\n{{\n  .text.hot :\n  {{\n    {lines}\n  }}\n}}\nINSERT BEFORE .text;\n"))?)
    }
}

/// The functions of a linker's map, by where they begin.
pub(crate) fn functions(map: &str) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    let mut words = map.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let at = words.peek().and_then(|next| u64::from_str_radix(next.strip_prefix("0x")?, 16).ok());
        if let (Some(name), Some(at)) = (word.strip_prefix(".text."), at.filter(|at| *at > 0)) {
            found.insert(at, name.strip_prefix("unlikely.").unwrap_or(name).to_owned());
        }
    }
    found
}

/// The name of a function without the marks of crates, which change with their versions. `None`: all of it may change.
fn pattern(name: &str) -> Option<String> {
    if name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.starts_with("_R") {
        return Some(name.to_owned());
    }
    let mut parts = name.strip_prefix("_R")?.split("Cs");
    let mut pattern = format!("_R{}", parts.next()?);
    for part in parts {
        match part.split_once('_') {
            Some((mark, rest)) if !mark.is_empty() && mark.chars().all(char::is_alphanumeric) && rest.starts_with(char::is_numeric) => {
                pattern.push_str("Cs*_");
                pattern.push_str(rest);
            }
            _ => {
                pattern.push_str("Cs");
                pattern.push_str(part);
            }
        }
    }
    Some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_in_the_map_of_the_linker() {
        let map = " .text.hot      0x0000000000401010       0x20\n .text._RNvCsbzPIK9dIXiL_4sha25first\n                0x0000000000402000       0x5b /o.o\n \
                   .text._RNvCsbzPIK9dIXiL_4sha26second\n                0x0000000000402060       0x5b /o.o\n .text.gone 0x0000000000000000 0x5 /o.o\n";
        let functions = functions(map);
        assert_eq!(functions.len(), 3, "{functions:?}");
        let mut hot = HotFunctions::default();
        hot.add("fn=(1)\n0x402062 5\n0x402064 7\n+3 4\n", &functions);
        assert_eq!(hot.names, ["_RNvCs*_4sha26second"]);
    }
}
