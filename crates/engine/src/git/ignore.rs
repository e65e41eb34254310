//! Ignore rules: `.gitignore`, a repository's `info/exclude`, and the person's own list.
//!
//! Written after gitignore(5). Where a rule could be read in two ways, the file is not ignored: what is counted too often costs a second measurement, what is
//! not counted could make an old verdict look true.

use std::{fs, path::Path, rc::Rc};

use super::{Folders, config};
use crate::sys::files;

/// A list of rules is shorter.
const LARGEST: usize = 4 << 20;

/// Longer lines than this are no rules.
const LONGEST: usize = 4 << 10;

/// The rules that hold in one folder: its own, then those of the folders around it.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Where paths begin that these rules are about: the length of the folder's path, with the slash.
    base: usize,
    own: Vec<Rule>,
    around: Option<Rc<Rules>>,
}

#[derive(Debug)]
struct Rule {
    glob: Glob,
    /// It takes back what an earlier rule ignored.
    is_exception: bool,
    only_folders: bool,
    /// It is about a name in any folder, and not about a path.
    is_name: bool,
}

impl Rules {
    /// The rules of a whole repository.
    pub(crate) fn of(folders: &Folders, ignores_case: bool) -> Rc<Self> {
        let mut rules = Vec::new();
        if let Some(file) = config::of_the_person("excludesfile", "ignore") {
            rules.extend(read(&file, ignores_case));
        }
        rules.extend(read(&folders.common.join("info/exclude"), ignores_case));
        Rc::new(Rules { base: 0, own: rules, around: None })
    }

    /// The rules in a folder of it: `path` is seen from the top, and empty or with a slash at its end.
    pub(crate) fn within(self: &Rc<Self>, folder: &Path, path: &str, ignores_case: bool) -> Rc<Self> {
        let file = folder.join(".gitignore");
        // Git does not follow a link there either.
        let is_file = fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file());
        let rules = if is_file { read(&file, ignores_case) } else { Vec::new() };
        if rules.is_empty() {
            return Rc::clone(self);
        }
        Rc::new(Rules { base: path.len(), own: rules, around: Some(Rc::clone(self)) })
    }

    /// Whether a path, seen from the top, is ignored. The folders around it are not.
    pub(crate) fn ignore(&self, path: &str, is_folder: bool) -> bool {
        let below = path.get(self.base..).unwrap_or(path);
        let rule = self.own.iter().rev().find(|rule| rule.is_about(below, is_folder));
        match (rule, &self.around) {
            (Some(rule), _) => !rule.is_exception,
            (None, Some(around)) => around.ignore(path, is_folder),
            (None, None) => false,
        }
    }
}

fn read(file: &Path, ignores_case: bool) -> Vec<Rule> {
    parse(&files::read(file, LARGEST).unwrap_or_default(), ignores_case)
}

fn parse(bytes: &[u8], ignores_case: bool) -> Vec<Rule> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    bytes.split(|byte| *byte == b'\n').filter_map(|line| Rule::read(line, ignores_case)).collect()
}

impl Rule {
    fn read(line: &[u8], ignores_case: bool) -> Option<Self> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.starts_with(b"#") || line.len() > LONGEST {
            return None;
        }
        let line = without_blanks(line);
        let (line, is_exception) = line.strip_prefix(b"!").map_or((line, false), |rest| (rest, true));
        let (line, only_folders) = line.strip_suffix(b"/").map_or((line, false), |rest| (rest, true));
        let is_name = !line.contains(&b'/');
        let line = line.strip_prefix(b"/").unwrap_or(line);
        (!line.is_empty()).then(|| Rule { glob: Glob::new(line, ignores_case), is_exception, only_folders, is_name })
    }

    fn is_about(&self, path: &str, is_folder: bool) -> bool {
        if self.only_folders && !is_folder {
            return false;
        }
        let text = if self.is_name { path.rsplit('/').next().unwrap_or(path) } else { path };
        self.glob.matches(text.as_bytes())
    }
}

/// Blanks at the end do not count, unless a backslash is before them.
fn without_blanks(mut line: &[u8]) -> &[u8] {
    while let Some(rest) = line.strip_suffix(b" ") {
        let escapes = rest.iter().rev().take_while(|byte| **byte == b'\\').count();
        if escapes % 2 == 1 {
            break;
        }
        line = rest;
    }
    line
}

/// A pattern of paths as gitignore(5) has it.
#[derive(Debug)]
struct Glob {
    parts: Vec<Part>,
    ignores_case: bool,
    /// `fo**/x`: for git the stars after a beginning without wildcards are at the start of a name. The place of that part.
    odd_start: Option<usize>,
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Byte(u8),
    /// `?`
    Any,
    /// `[a-z]`: the bytes that are in it.
    OneOf(Box<[bool; 256]>),
    /// `*`
    Some,
    /// `**/`: any number of folders, none too.
    Folders,
    /// `**` at the end: everything below.
    Everything,
    /// A set without an end: nothing matches.
    Never,
}

impl Glob {
    fn new(pattern: &[u8], ignores_case: bool) -> Self {
        let mut parts = Vec::new();
        let mut at = 0;
        let plain = pattern.iter().take_while(|byte| !matches!(byte, b'*' | b'?' | b'[' | b'\\')).count();
        let is_start = |at: usize| at == 0 || pattern[at - 1] == b'/';
        while let Some(byte) = pattern.get(at) {
            let rest = &pattern[at..];
            let (part, length) = match byte {
                b'\\' if rest.len() > 1 => (Part::Byte(rest[1]), 2),
                b'\\' => (Part::Never, 1),
                b'?' => (Part::Any, 1),
                b'*' => stars(rest, is_start(at) || at == plain),
                b'[' => set(rest, ignores_case),
                other => (Part::Byte(*other), 1),
            };
            parts.push(part);
            at += length;
        }
        if ignores_case {
            for part in &mut parts {
                if let Part::Byte(byte) = part {
                    byte.make_ascii_lowercase();
                }
            }
        }
        Glob { parts, ignores_case, odd_start: (!is_start(plain)).then_some(plain) }
    }

    fn matches(&self, text: &[u8]) -> bool {
        let lower;
        let text = if self.ignores_case {
            lower = text.to_ascii_lowercase();
            lower.as_slice()
        } else {
            text
        };
        // The places in the pattern that the text so far can have led to: no pattern makes this slow.
        let mut places = vec![false; self.parts.len() + 1];
        let mut next = places.clone();
        places[0] = true;
        for at in 0..=text.len() {
            self.skip_what_may_be_nothing(&mut places, at, at == 0 || text[at - 1] == b'/');
            let Some(byte) = text.get(at) else { break };
            next.fill(false);
            for (n, part) in self.parts.iter().enumerate().filter(|(n, _)| places[*n]) {
                match part {
                    Part::Byte(wanted) => next[n + 1] |= wanted == byte,
                    Part::Any => next[n + 1] |= *byte != b'/',
                    Part::OneOf(set) => next[n + 1] |= set[usize::from(*byte)] && *byte != b'/',
                    Part::Some => next[n] |= *byte != b'/',
                    Part::Folders | Part::Everything => next[n] = true,
                    Part::Never => {}
                }
            }
            std::mem::swap(&mut places, &mut next);
            if !places.contains(&true) {
                return false;
            }
        }
        places[self.parts.len()]
    }

    fn skip_what_may_be_nothing(&self, places: &mut [bool], at: usize, at_a_name: bool) {
        for (n, part) in self.parts.iter().enumerate() {
            let may_end = match part {
                Part::Some | Part::Everything => true,
                Part::Folders => at_a_name || (self.odd_start == Some(n) && at == n),
                _ => false,
            };
            places[n + 1] |= places[n] && may_end;
        }
    }
}

/// One or more stars, and how many bytes they take.
fn stars(rest: &[u8], at_a_name: bool) -> (Part, usize) {
    let count = rest.iter().take_while(|byte| **byte == b'*').count();
    match rest.get(count) {
        Some(b'/') if count == 2 && at_a_name => (Part::Folders, 3),
        None if count == 2 && at_a_name => (Part::Everything, 2),
        _ => (Part::Some, count),
    }
}

/// `[a-z]`, `[!a]`, `[[:alpha:]]`, and how many bytes it takes.
fn set(rest: &[u8], ignores_case: bool) -> (Part, usize) {
    let mut bytes = Box::new([false; 256]);
    let mut at = 1;
    let is_negated = matches!(rest.get(at), Some(b'!' | b'^'));
    at += usize::from(is_negated);
    let mut is_first = true;
    loop {
        let Some(byte) = rest.get(at) else { return (Part::Never, rest.len()) };
        if *byte == b']' && !is_first {
            break;
        }
        is_first = false;
        if let Some((name, length)) = class(&rest[at..]) {
            let Some(holds) = holds(name) else { return (Part::Never, rest.len()) };
            (0..=255).filter(holds).for_each(|byte| bytes[usize::from(byte)] = true);
            at += length;
            continue;
        }
        let Some((low, length)) = member(&rest[at..]) else { return (Part::Never, rest.len()) };
        at += length;
        let is_range = rest.get(at) == Some(&b'-') && rest.get(at + 1).is_some_and(|byte| *byte != b']');
        let high = if is_range {
            let Some((high, length)) = member(&rest[at + 1..]) else { return (Part::Never, rest.len()) };
            at += 1 + length;
            high
        } else {
            low
        };
        // The first one is in it even where the range is empty.
        bytes[usize::from(low)] = true;
        (low..=high).for_each(|byte| bytes[usize::from(byte)] = true);
    }
    if ignores_case {
        for upper in b'A'..=b'Z' {
            let either = bytes[usize::from(upper)] || bytes[usize::from(upper.to_ascii_lowercase())];
            bytes[usize::from(upper.to_ascii_lowercase())] = either;
        }
    }
    if is_negated {
        bytes.iter_mut().for_each(|is_in| *is_in = !*is_in);
    }
    (Part::OneOf(bytes), at + 1)
}

fn member(rest: &[u8]) -> Option<(u8, usize)> {
    match rest {
        [b'\\', byte, ..] => Some((*byte, 2)),
        [b'\\'] | [] => None,
        [byte, ..] => Some((*byte, 1)),
    }
}

fn class(rest: &[u8]) -> Option<(&[u8], usize)> {
    let name = rest.strip_prefix(b"[:")?;
    let length = name.windows(2).position(|two| two == b":]")?;
    let is_name = name[..length].iter().all(u8::is_ascii_alphabetic);
    is_name.then(|| (&name[..length], length + 4))
}

fn holds(class: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match class {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        git::command::in_test,
        sys::{files::write_whole, temp_dir::Scratch},
    };

    /// What git says about these paths under these rules, and what we say.
    fn compared(rules: &[u8], paths: &[&str]) -> (Vec<String>, Vec<String>) {
        let scratch = Scratch::create("ralph-ignore-", false).unwrap();
        in_test(scratch.path(), &["init", "-q"], &[]);
        write_whole(&scratch.path().join(".gitignore"), rules).unwrap();
        for path in paths {
            write_whole(&scratch.path().join(path), b"x").unwrap();
        }
        let told = in_test(scratch.path(), &["ls-files", "-z", "--others", "--exclude-standard"], &[]);
        let mut theirs: Vec<String> =
            told.split(|b| *b == 0).filter(|p| !p.is_empty()).map(|p| String::from_utf8_lossy(p).into_owned()).collect();
        theirs.retain(|path| path != ".gitignore");
        let all = Rc::new(Rules { base: 0, own: parse(rules, false), around: None });
        let is_kept = |path: &&&str| {
            let folders = path.match_indices('/').map(|(n, _)| &path[..n]);
            !folders.into_iter().any(|folder| all.ignore(folder, true)) && !all.ignore(path, false)
        };
        let mut ours: Vec<String> = paths.iter().filter(is_kept).map(|path| (*path).to_owned()).collect();
        ours.sort();
        theirs.sort();
        (ours, theirs)
    }

    const PATHS: [&str; 24] = [
        "a",
        "b",
        "a.o",
        "b.rs",
        "x/a",
        "x/a.o",
        "x/y/a",
        "x/y/b.rs",
        "x/y/z/a.o",
        "build/a",
        "build/b.o",
        "x/build/a",
        "foo/bar/baz",
        "foo/baz",
        "foo/bar/qux/baz",
        "trail ",
        "#hash",
        "!bang",
        "[set]",
        "A",
        "Makefile",
        "deep/x/y/z/w/a",
        "back\\slash",
        "star*",
    ];

    #[test]
    fn t8_ignore_rules_are_read_as_git_reads_them() {
        let table: &[&str] = &[
            "a",
            "/a",
            "a/",
            "*.o",
            "!*.o",
            "*.o\n!x/*.o",
            "build/",
            "/build",
            "x/",
            "x/*\n!x/y",
            "**/a",
            "x/**",
            "x/**/a.o",
            "**/y/**",
            "foo/**/baz",
            "foo/*/baz",
            "foo/**baz",
            "**",
            "*",
            "/*\n!/foo",
            "trail\\ ",
            "trail ",
            "\\#hash",
            "#hash",
            "\\!bang",
            "[ab]",
            "[!ab]*",
            "[^a]",
            "\\[set\\]",
            "[[:upper:]]",
            "[[:alpha:]].rs",
            "[a-c].o",
            "[z-a]",
            "[",
            "[a",
            "a[",
            "x/y/",
            "x/y",
            "x//y",
            "/",
            "//a",
            "***",
            "x/***",
            "**/",
            "**/build/",
            "?",
            "x?a",
            "back\\\\slash",
            "star\\*",
            "a\\",
            "[]a]",
            "[a-]",
            "[\\]]",
            "[[:nope:]]",
            "*/a",
            "*/*/a",
            "  a",
            "a\r",
            "A",
            "makefile",
            "deep/**/a",
            "deep/**/**/a",
            "**/**/a",
            "x/**/",
            "**foo",
            "fo**/baz",
            "fo**",
            "x/y**",
            "b**/a",
            "f?o**/baz",
            "[/]a",
            "x[/]a",
            "!",
            "!/",
            "x/y/*.rs\n!b.rs",
            "*\n!*/\n!*.rs",
            "\u{feff}a",
        ];
        for rules in table {
            let (ours, theirs) = compared(rules.as_bytes(), &PATHS);
            assert_eq!(ours, theirs, "{rules:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn t8_any_rules_are_read_as_git_reads_them(rules in "([!/]?[abxyo.*?/\\[\\]\\\\-]{1,7}\n){1,4}") {
            let (ours, theirs) = compared(rules.as_bytes(), &PATHS);
            prop_assert_eq!(ours, theirs, "{:?}", rules);
        }
    }

    #[test]
    fn t8_no_pattern_is_slow() {
        let glob = Glob::new(&b"*a".repeat(2_000), false);
        let begun = std::time::Instant::now();
        assert!(!glob.matches(&b"a".repeat(1_900)));
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    #[test]
    fn t8_case_counts_unless_the_repository_says_otherwise() {
        let rule = |ignores_case| Rule::read(b"/Build[A-C]", ignores_case).unwrap();
        assert!(rule(true).is_about("bUILDb", false) && !rule(false).is_about("bUILDb", false) && rule(false).is_about("BuildB", false));
    }
}
