//! What a command runs that lies in the project: scripts, targets, entries of a `package.json`.

use std::collections::BTreeSet;

use crate::gate::Run;

/// Something that a command names, and that decides what the command proves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    /// A file that is run.
    File(String),
    /// An entry of the section `scripts` in `package.json`.
    Script(String),
    /// The first of these files that is there.
    FirstOf(&'static [&'static str]),
}

const INTERPRETERS: [&str; 13] =
    ["sh", "bash", "zsh", "dash", "python", "python3", "node", "ruby", "perl", "php", "tsx", "ts-node", "pwsh"];
const BEFORE_OTHERS: [&str; 7] = ["env", "exec", "time", "nice", "command", "nohup", "timeout"];
const MAKEFILES: &[&str] = &["GNUmakefile", "makefile", "Makefile"];
const JUSTFILES: &[&str] = &["justfile", "Justfile", ".justfile"];

/// What a command names.
pub fn named(run: &Run) -> Vec<Named> {
    match run {
        Run::Argv(words) => named_by(words).into_iter().collect(),
        Run::Shell(line) => in_line(line),
    }
}

/// What the commands of a line for the shell name.
pub fn in_line(line: &str) -> Vec<Named> {
    let all: BTreeSet<Named> = commands(line).iter().filter_map(|words| named_by(words)).collect();
    all.into_iter().collect()
}

fn named_by(words: &[String]) -> Option<Named> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_flag = |word: &&&str| word.starts_with('-');
    let is_setting = |word: &&&str| word.split_once('=').is_some_and(|(name, _)| !name.contains('/') && !name.is_empty());
    // `timeout 60 make`
    let is_measure = |word: &&&str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut words = words.iter().skip_while(|word| BEFORE_OTHERS.contains(word) || is_flag(word) || is_setting(word) || is_measure(word));
    let program = *words.next()?;
    let mut plain = words.clone().filter(|word| !is_flag(word)).copied();
    match program {
        "make" | "gmake" => Some(Named::FirstOf(MAKEFILES)),
        "just" => Some(Named::FirstOf(JUSTFILES)),
        "npm" => match plain.next()? {
            "run" | "run-script" => Some(Named::Script(plain.next()?.to_owned())),
            "t" | "tst" | "test" => Some(Named::Script("test".to_owned())),
            _ => None,
        },
        "pnpm" | "yarn" => match plain.next()? {
            "run" => Some(Named::Script(plain.next()?.to_owned())),
            script => Some(Named::Script(script.to_owned())),
        },
        "bun" => (plain.next()? == "run").then(|| plain.next()).flatten().map(|script| Named::Script(script.to_owned())),
        // Code on the command line is part of the command; a module is none of the project's files.
        _ if INTERPRETERS.contains(&program) => {
            let first = words.find(|word| !is_flag(word) || matches!(**word, "-c" | "-m" | "-e"))?;
            (!is_flag(&first)).then(|| Named::File((*first).to_owned()))
        }
        _ => program.contains('/').then(|| Named::File(program.to_owned())),
    }
}

/// The simple commands of a line, each as its words without quotes.
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
        let file = |path: &str| vec![Named::File(path.to_owned())];
        let script = |name: &str| vec![Named::Script(name.to_owned())];
        #[rustfmt::skip]
        let table = [
            ("./verify.sh", file("./verify.sh")),
            ("CI=1 ./verify.sh --all", file("./verify.sh")),
            ("timeout 60 bash -eu scripts/check.sh x.sh", file("scripts/check.sh")),
            ("sh 'my checks.sh'", file("my checks.sh")),
            ("python3 -m pytest tests", vec![]),
            ("bash -c 'true'", vec![]),
            ("node --test scripts/run.js", file("scripts/run.js")),
            ("cargo test --manifest-path crates/x/Cargo.toml", vec![]),
            ("pytest tests/test_a.py", vec![]),
            ("npm test", script("test")),
            ("npm run --silent lint", script("lint")),
            ("pnpm lint", script("lint")),
            ("yarn run check", script("check")),
            ("npm ci", vec![]),
            ("bun test", vec![]),
            ("make -j4 check", vec![Named::FirstOf(MAKEFILES)]),
            ("cd web && npm run a; (./b.sh | tee log)", vec![Named::File("./b.sh".to_owned()), Named::Script("a".to_owned())]),
            ("", vec![]),
            ("'", vec![]),
        ];
        for (line, expected) in table {
            assert_eq!(named(&Run::Shell(line.to_owned())), expected, "{line}");
        }
        assert_eq!(named(&Run::Argv(vec!["./a b.sh".to_owned(), "x".to_owned()])), file("./a b.sh"));
    }
}
