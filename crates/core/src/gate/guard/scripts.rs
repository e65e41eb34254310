//! The files of the project that a command runs: scripts, targets, entries of a `package.json`.

use std::collections::BTreeSet;

use crate::gate::Run;

/// Something that a command names, and that decides what the command proves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    /// A file that is run.
    File(String),
    /// An entry of the section `scripts` in `package.json`.
    Script(String),
    /// The same of a package in this repository, which is named and may lie anywhere.
    OfPackage { package: String, script: String },
    /// The first of these files that is there.
    FirstOf(&'static [&'static str]),
}

const SHELLS: [&str; 4] = ["sh", "bash", "zsh", "dash"];
/// Other interpreters; flags after which code or a module comes, and flags that take a word of their own.
const INTERPRETERS: [(&str, &[&str], &[&str]); 9] = [
    ("python", &["-c", "-m"], &["-W", "-X"]),
    ("python3", &["-c", "-m"], &["-W", "-X"]),
    ("node", &["-e", "-p", "--eval", "--print"], &["-r", "--require", "--import"]),
    ("ruby", &["-e"], &["-I", "-r"]),
    ("perl", &["-e", "-E"], &["-I"]),
    ("php", &["-r"], &["-d", "-c"]),
    ("tsx", &["-e", "--eval"], &["-r", "--require", "--import"]),
    ("ts-node", &["-e", "--eval"], &["-r", "-P", "--project"]),
    ("pwsh", &["-c", "-Command"], &[]),
];
const BEFORE_OTHERS: [&str; 7] = ["env", "exec", "time", "nice", "command", "nohup", "timeout"];
const MAKEFILES: &[&str] = &["GNUmakefile", "makefile", "Makefile"];
const JUSTFILES: &[&str] = &["justfile", "Justfile", ".justfile"];
/// Flags of package managers that name a package, and those that name a folder.
const OF_PACKAGE: [&str; 5] = ["--filter", "-F", "-w", "--workspace", "workspace"];
const OF_FOLDER: [&str; 4] = ["-C", "--dir", "--prefix", "--cwd"];

impl Named {
    /// The files that a command names, each with the folder that it is named in.
    pub fn by(run: &Run) -> Vec<(String, Self)> {
        match run {
            Run::Argv(words) => named_by(words).into_iter().map(|named| (String::new(), named)).collect(),
            Run::Shell(line) => Self::in_line(line),
        }
    }

    /// The files that a shell line names, each with the folder that `cd` went to before. After a `cd` that cannot be followed, nothing is named.
    pub fn in_line(line: &str) -> Vec<(String, Self)> {
        let mut all = BTreeSet::new();
        let mut folders: Vec<Option<String>> = vec![Some(String::new())];
        for words in commands(line) {
            match words.first().map(String::as_str) {
                Some("(") => folders.push(folders.last().cloned().flatten()),
                Some(")") if folders.len() > 1 => drop(folders.pop()),
                Some("cd") => {
                    let here = folders.pop().flatten();
                    folders.push(here.and_then(|here| below(&here, words.get(1)?)));
                }
                _ => {
                    let here = folders.last().cloned().flatten();
                    all.extend(here.zip(named_by(&words)));
                }
            }
        }
        all.into_iter().collect()
    }
}

/// The folder that `cd` goes to, if that can be told.
fn below(folder: &str, to: &str) -> Option<String> {
    let is_known = !to.starts_with(['/', '~', '-']) && !to.contains(['$', '`', '*']) && !to.split('/').any(|part| part == "..");
    is_known.then(|| if folder.is_empty() { to.to_owned() } else { format!("{folder}/{to}") })
}

fn is_flag(word: &str) -> bool {
    word.starts_with('-')
}

fn named_by(words: &[String]) -> Option<Named> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_setting = |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.contains('/') && !name.is_empty());
    // `timeout 60 make`
    let is_measure = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let is_before = |word: &str| BEFORE_OTHERS.contains(&word) || is_flag(word) || is_setting(word) || is_measure(word);
    let at = words.iter().position(|word| !is_before(word))?;
    let (program, rest) = (words[at], &words[at + 1..]);
    match program {
        "make" | "gmake" => Some(Named::FirstOf(MAKEFILES)),
        "just" => Some(Named::FirstOf(JUSTFILES)),
        "npm" | "pnpm" | "yarn" | "bun" => script(program, rest),
        _ if SHELLS.contains(&program) => of_shell(rest),
        _ => match INTERPRETERS.iter().find(|(name, ..)| *name == program) {
            Some((_, code, with_word)) => of_interpreter(rest, code, with_word),
            None => program.contains('/').then(|| Named::File(program.to_owned())),
        },
    }
}

/// Code on the command line is part of the command. Flags of a shell can stand together: `-ec`, `-euo pipefail`.
fn of_shell(words: &[&str]) -> Option<Named> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix('-').or_else(|| word.strip_prefix('+')) {
            None => return Some(Named::File((*word).to_owned())),
            Some(flags) if !flags.starts_with('-') && flags.contains('c') => return None,
            Some(flags) if !flags.starts_with('-') && flags.ends_with('o') => drop(words.next()),
            Some(_) => {}
        }
    }
    None
}

fn of_interpreter(words: &[&str], code: &[&str], with_word: &[&str]) -> Option<Named> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if code.contains(word) {
            return None;
        } else if with_word.contains(word) {
            words.next();
        } else if !is_flag(word) {
            return Some(Named::File((*word).to_owned()));
        }
    }
    None
}

/// The script that a package manager runs: `pnpm --filter a test`, `npm run lint`.
fn script(program: &str, words: &[&str]) -> Option<Named> {
    let mut plain = Vec::new();
    let mut package = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            // What follows is for the script.
            _ if *word == "--" => break,
            _ if OF_FOLDER.contains(word) => return None,
            Some((flag, _)) if OF_FOLDER.contains(&flag) => return None,
            Some((flag, name)) if OF_PACKAGE.contains(&flag) => package = Some(name),
            None if OF_PACKAGE.contains(word) && (is_flag(word) || (program == "yarn" && plain.is_empty())) => {
                package = words.next().copied();
            }
            _ if is_flag(word) => {}
            _ => plain.push(*word),
        }
    }
    let name = match (program, plain.first().copied()?) {
        (_, "run" | "run-script") => plain.get(1).copied()?,
        ("npm", "t" | "tst" | "test") => "test",
        ("npm" | "bun", _) => return None,
        (_, name) => name,
    };
    Some(match package {
        None => Named::Script(name.to_owned()),
        Some(package) => Named::OfPackage { package: package.to_owned(), script: name.to_owned() },
    })
}

/// The simple commands of a line, each as its words without quotes; a bracket is one of its own.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, ';' | '&' | '|' | '(' | ')' | '\n' | '{' | '}') => {
                all.last_mut().into_iter().for_each(|words| words.extend(word.take()));
                if matches!(c, '(' | ')') {
                    all.push(vec![c.to_string()]);
                }
                all.push(Vec::new());
            }
            (None, _) if c.is_whitespace() => all.last_mut().into_iter().for_each(|words| words.extend(word.take())),
            _ => word.get_or_insert_default().push(c),
        }
    }
    all.last_mut().into_iter().for_each(|words| words.extend(word.take()));
    all.retain(|words| !words.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_name() {
        let at = |folder: &str, named: Named| vec![(folder.to_owned(), named)];
        let file = |path: &str| at("", Named::File(path.to_owned()));
        let script = |name: &str| at("", Named::Script(name.to_owned()));
        let of_package = |package: &str, script: &str| at("", Named::OfPackage { package: package.to_owned(), script: script.to_owned() });
        #[rustfmt::skip]
        let table = [
            ("./verify.sh", file("./verify.sh")),
            ("CI=1 ./verify.sh --all", file("./verify.sh")),
            ("timeout 60 bash -eu scripts/check.sh x.sh", file("scripts/check.sh")),
            ("bash -e ci/check.sh", file("ci/check.sh")),
            ("bash -euo pipefail ci/check.sh", file("ci/check.sh")),
            ("bash -ec 'ci/check.sh'", vec![]),
            ("sh 'my checks.sh'", file("my checks.sh")),
            ("python3 -m pytest tests", vec![]),
            ("python3 -W error run.py", file("run.py")),
            ("bash -c 'true'", vec![]),
            ("node -e 'x' run.js", vec![]),
            ("perl -e 'x' run.pl", vec![]),
            ("node --test scripts/run.js", file("scripts/run.js")),
            ("cargo test --manifest-path crates/x/Cargo.toml", vec![]),
            ("pytest tests/test_a.py", vec![]),
            ("npm test", script("test")),
            ("npm run --silent lint", script("lint")),
            ("pnpm lint", script("lint")),
            ("pnpm --filter a test", of_package("a", "test")),
            ("pnpm --filter=@x/a run test", of_package("@x/a", "test")),
            ("yarn workspace a test", of_package("a", "test")),
            ("npm test -w a", of_package("a", "test")),
            ("npm --prefix web test", vec![]),
            ("yarn run check", script("check")),
            ("npm ci", vec![]),
            ("bun test", vec![]),
            ("make -j4 check", at("", Named::FirstOf(MAKEFILES))),
            ("cd ci && ./check.sh", at("ci", Named::File("./check.sh".to_owned()))),
            ("cd a; cd b; ./c.sh", at("a/b", Named::File("./c.sh".to_owned()))),
            ("cd \"$X\" && ./check.sh", vec![]),
            ("cd .. && ./check.sh", vec![]),
            ("(cd web && npm run a); (./b.sh | tee log)", vec![(String::new(), Named::File("./b.sh".to_owned())), ("web".to_owned(), Named::Script("a".to_owned()))]),
            ("", vec![]),
            (")", vec![]),
            ("'", vec![]),
        ];
        for (line, expected) in table {
            assert_eq!(Named::by(&Run::Shell(line.to_owned())), expected, "{line}");
        }
        assert_eq!(Named::by(&Run::Argv(vec!["./a b.sh".to_owned(), "x".to_owned()])), file("./a b.sh"));
    }
}
