//! Git's configuration, read without git: which settings of a repository are harmless, and what the person's own configuration says about ignored files.
//!
//! A repository's setting counts only if it is in the table of harmless ones: they are values and never name a program. What the repository includes from
//! other files does not count at all.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{Folders, repository::path_of};
use crate::sys::{env, files};

/// A configuration is a few hundred bytes long.
const LARGEST: usize = 8 << 20;

/// Files that a person's configuration includes, and those that these include.
const DEEPEST: usize = 5;

/// Section and key; `*` where there is a name in between.
const HARMLESS: [(&str, &str); 22] = [
    ("core", "filemode"),
    ("core", "ignorecase"),
    ("core", "precomposeunicode"),
    ("core", "symlinks"),
    ("core", "autocrlf"),
    ("core", "eol"),
    ("core", "protectntfs"),
    ("core", "protecthfs"),
    ("core", "sharedrepository"),
    ("core", "bigfilethreshold"),
    ("core", "sparsecheckout"),
    ("core", "sparsecheckoutcone"),
    ("extensions", "objectformat"),
    ("extensions", "refstorage"),
    ("remote.*", "url"),
    ("remote.*", "pushurl"),
    ("remote.*", "gh-resolved"),
    ("branch.*", "remote"),
    ("branch.*", "pushremote"),
    ("branch.*", "merge"),
    ("url.*", "insteadof"),
    ("url.*", "pushinsteadof"),
];

/// Extensions of the repository's format that change nothing about what is asked here. With others it cannot be read safely.
const EXTENSIONS: [&str; 9] = [
    "noop",
    "noop-v1",
    "preciousobjects",
    "partialclone",
    "worktreeconfig",
    "objectformat",
    "refstorage",
    "compatobjectformat",
    "relativeworktrees",
];

/// One setting. Section and key are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    section: String,
    name: Option<Vec<u8>>,
    key: String,
    value: Vec<u8>,
}

impl Setting {
    fn is(&self, section: &str, key: &str) -> bool {
        self.section == section && self.name.is_none() && self.key == key
    }

    fn is_true(&self) -> bool {
        !matches!(self.value.to_ascii_lowercase().as_slice(), b"false" | b"no" | b"off" | b"0" | b"")
    }

    fn is_harmless(&self) -> bool {
        HARMLESS.iter().any(|(section, key)| {
            let (section, has_name) = section.strip_suffix(".*").map_or((*section, false), |section| (section, true));
            self.section == section && self.name.is_some() == has_name && self.key == *key
        })
    }
}

/// A repository's own settings, as far as they are harmless.
#[derive(Debug, Default)]
pub(crate) struct Harmless {
    settings: Vec<Setting>,
    /// Where it says that its files are. That is only compared with where they are.
    worktree: Option<Vec<u8>>,
}

impl Harmless {
    /// The error says which file cannot be read, and why.
    pub(crate) fn of(folders: &Folders) -> Result<Self, String> {
        let mut all = read(&folders.common.join("config"))?;
        if all.iter().rfind(|setting| setting.is("extensions", "worktreeconfig")).is_some_and(Setting::is_true) {
            all.extend(read(&folders.git_dir.join("config.worktree"))?);
        }
        if let Some(odd) = all.iter().find(|setting| setting.section == "extensions" && !EXTENSIONS.contains(&setting.key.as_str())) {
            return Err(format!("the repository needs a git with the extension {}, which is not known here", odd.key));
        }
        let worktree = all.iter().rfind(|setting| setting.is("core", "worktree")).map(|setting| setting.value.clone());
        all.retain(Setting::is_harmless);
        Ok(Harmless { settings: all, worktree })
    }

    fn last(&self, section: &str, key: &str) -> Option<&Setting> {
        self.settings.iter().rfind(|setting| setting.is(section, key))
    }

    /// Another folder than its top that it takes for its working tree: a home folder, for instance.
    pub(super) fn other_worktree(&self, folders: &Folders) -> Option<PathBuf> {
        let named = folders.git_dir.join(path_of(self.worktree.as_deref()?));
        let real = named.canonicalize().unwrap_or(named);
        (real != folders.top).then_some(real)
    }

    pub(crate) fn ignores_case(&self) -> bool {
        self.last("core", "ignorecase").is_some_and(Setting::is_true)
    }

    pub(crate) fn is_sparse(&self) -> bool {
        self.last("core", "sparsecheckout").is_some_and(Setting::is_true)
    }

    /// How many bytes an id has.
    pub(crate) fn id_length(&self) -> usize {
        if self.last("extensions", "objectformat").is_some_and(|setting| setting.value == b"sha256") { 32 } else { 20 }
    }

    /// The whole of a configuration that says this, and that the repository is an ordinary one.
    pub(super) fn written(&self) -> Vec<u8> {
        let mut out = b"[core]\n\trepositoryformatversion = 1\n\tbare = false\n".to_vec();
        for setting in &self.settings {
            out.extend(b"[");
            out.extend(setting.section.as_bytes());
            if let Some(name) = &setting.name {
                out.extend([b" ".as_slice(), &quoted(name)].concat());
            }
            out.extend([b"]\n\t".as_slice(), setting.key.as_bytes(), b" = ", &quoted(&setting.value), b"\n"].concat());
        }
        out
    }
}

fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            b'\t' => out.extend(b"\\t"),
            8 => out.extend(b"\\b"),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
    out
}

/// A file of the person's that counts in all repositories: the one that the setting `core.<key>` names, or else the one of that name beside their configuration.
pub(crate) fn of_the_person(key: &str, name: &str) -> Option<PathBuf> {
    let home = env::home()?;
    let base = env::config_home().unwrap_or_else(|| home.join(".config")).join("git");
    let mut all = Vec::new();
    for file in [PathBuf::from("/etc/gitconfig"), base.join("config"), home.join(".gitconfig")] {
        collect(&file, 0, &mut all);
    }
    let named = all.iter().rfind(|setting| setting.is("core", key)).map(|setting| expanded(&setting.value, &home));
    Some(named.unwrap_or_else(|| base.join(name)))
}

/// Reads a person's file with the files that it includes, in their place. What cannot be read says nothing.
fn collect(file: &Path, depth: usize, all: &mut Vec<Setting>) {
    for setting in read(file).unwrap_or_default() {
        if setting.is("include", "path") && depth < DEEPEST {
            let home = env::home().unwrap_or_default();
            let path = file.parent().unwrap_or(Path::new("/")).join(expanded(&setting.value, &home));
            collect(&path, depth + 1, all);
        } else {
            all.push(setting);
        }
    }
}

fn expanded(path: &[u8], home: &Path) -> PathBuf {
    path.strip_prefix(b"~/").map_or_else(|| path_of(path).to_owned(), |rest| home.join(path_of(rest)))
}

fn read(path: &Path) -> Result<Vec<Setting>, String> {
    let cannot = |e: &dyn std::fmt::Display| format!("git's configuration cannot be read: {}: {e}", path.display());
    let bytes = match files::read(path, LARGEST) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|e| cannot(&e))?,
    };
    Reader { bytes: bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes), at: 0 }
        .all()
        .map_err(|line| cannot(&format!("line {line} is broken")))
}

/// Reads git's own format: `[section "name"]`, `key = value`, comments, quotes, continued lines.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn all(mut self) -> Result<Vec<Setting>, usize> {
        let mut settings = Vec::new();
        let mut header: Option<(String, Option<Vec<u8>>)> = None;
        while let Some(byte) = self.next() {
            match byte {
                _ if byte.is_ascii_whitespace() => {}
                b'#' | b';' => self.skip_line(),
                b'[' => header = Some(self.header().ok_or_else(|| self.line())?),
                _ if byte.is_ascii_alphabetic() => {
                    let (section, name) = header.clone().ok_or_else(|| self.line())?;
                    let (key, value) = self.setting(byte).ok_or_else(|| self.line())?;
                    settings.push(Setting { section, name, key, value });
                }
                _ => return Err(self.line()),
            }
        }
        Ok(settings)
    }

    /// The next byte. A carriage return before a newline is no part of the text.
    fn next(&mut self) -> Option<u8> {
        if self.bytes.get(self.at) == Some(&b'\r') && self.bytes.get(self.at + 1) == Some(&b'\n') {
            self.at += 1;
        }
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }

    fn line(&self) -> usize {
        1 + memchr::memchr_iter(b'\n', &self.bytes[..self.at.saturating_sub(1)]).count()
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// `section]`, `section "name"]` or the old `section.name]`.
    fn header(&mut self) -> Option<(String, Option<Vec<u8>>)> {
        let mut section = String::new();
        loop {
            match self.next()? {
                b']' => break,
                b' ' | b'\t' => return Some((section, Some(self.name()?))),
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => section.push(char::from(byte.to_ascii_lowercase())),
                _ => return None,
            }
        }
        match section.split_once('.') {
            Some((section, name)) => Some((section.to_owned(), Some(name.as_bytes().to_vec()))),
            None => Some((section, None)),
        }
    }

    fn name(&mut self) -> Option<Vec<u8>> {
        let mut byte = self.next()?;
        while matches!(byte, b' ' | b'\t') {
            byte = self.next()?;
        }
        if byte != b'"' {
            return None;
        }
        let mut name = Vec::new();
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                b'\\' => name.push(self.next().filter(|byte| *byte != b'\n')?),
                byte => name.push(byte),
            }
        }
        (self.next()? == b']').then_some(name)
    }

    fn setting(&mut self, first: u8) -> Option<(String, Vec<u8>)> {
        let mut key = String::from(char::from(first.to_ascii_lowercase()));
        let mut byte = self.next();
        while let Some(part) = byte.filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            key.push(char::from(part.to_ascii_lowercase()));
            byte = self.next();
        }
        while matches!(byte, Some(b' ' | b'\t')) {
            byte = self.next();
        }
        match byte {
            None | Some(b'\n') => Some((key, b"true".to_vec())),
            Some(b'#' | b';') => {
                self.skip_line();
                Some((key, b"true".to_vec()))
            }
            Some(b'=') => Some((key, self.value()?)),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        // Blanks count in quotes and between words.
        let (mut is_quoted, mut blanks) = (false, Vec::new());
        loop {
            match self.next() {
                None | Some(b'\n') if is_quoted => return None,
                None | Some(b'\n') => return Some(value),
                Some(byte) if !is_quoted && byte.is_ascii_whitespace() => {
                    if !value.is_empty() {
                        blanks.push(byte);
                    }
                }
                Some(b'#' | b';') if !is_quoted => {
                    self.skip_line();
                    return Some(value);
                }
                Some(b'"') => {
                    value.append(&mut blanks);
                    is_quoted = !is_quoted;
                }
                Some(b'\\') => {
                    let byte = match self.next()? {
                        b'\n' => continue,
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'b' => 8,
                        byte @ (b'"' | b'\\') => byte,
                        _ => return None,
                    };
                    value.append(&mut blanks);
                    value.push(byte);
                }
                Some(byte) => {
                    value.append(&mut blanks);
                    value.push(byte);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8]) -> Result<Vec<Setting>, usize> {
        Reader { bytes: text, at: 0 }.all()
    }

    fn setting(section: &str, name: Option<&[u8]>, key: &str, value: &[u8]) -> Setting {
        Setting { section: section.to_owned(), name: name.map(<[u8]>::to_vec), key: key.to_owned(), value: value.to_vec() }
    }

    #[test]
    fn t8_a_configuration_is_read_as_git_reads_it() {
        let text = b"# first\n[Core]\n\tFileMode = false ; no\n bare\n[remote \"a \\\"b\\\\ \xff\"] url = \"x  y\" # z\r\n\tpushurl = one \\\n  two  \n[url.Old]insteadOf=a\\tb\n";
        let expected = [
            setting("core", None, "filemode", b"false"),
            setting("core", None, "bare", b"true"),
            setting("remote", Some(b"a \"b\\ \xff"), "url", b"x  y"),
            setting("remote", Some(b"a \"b\\ \xff"), "pushurl", b"one   two"),
            setting("url", Some(b"old"), "insteadof", b"a\tb"),
        ];
        assert_eq!(parse(text).unwrap(), expected);
        for (broken, line) in [("[a\n", 1), ("[a]\n=b\n", 2), ("[a]\nb = \"c\n", 2), ("x = y\n", 1), ("[a]\nb = \\x\n", 2)] {
            assert_eq!(parse(broken.as_bytes()), Err(line), "{broken:?}");
        }
    }

    #[test]
    fn t8_only_harmless_settings_are_written_again() {
        let text = b"[core]\n\tfsmonitor = x\n\tautocrlf = input\n\tpager = x\n\tsshCommand = x\n\thooksPath = x\n\tworktree = /\n\
            [filter \"\xff\"]\n\tclean = x\n[include]\n\tpath = x\n[diff \"d\"]\n\ttextconv = x\n[alias]\n\tst = !x\n\
            [remote \"o\"]\n\turl = \"a\\nb\\\"c\\\\\"\n\tvcs = x\n\treceivepack = x\n[remote]\n\tpushDefault = o\n[credential]\n\thelper = x\n";
        let harmless = Harmless { settings: parse(text).unwrap().into_iter().filter(Setting::is_harmless).collect(), worktree: None };
        let again = parse(&harmless.written()).unwrap();
        let expected = [
            setting("core", None, "repositoryformatversion", b"1"),
            setting("core", None, "bare", b"false"),
            setting("core", None, "autocrlf", b"input"),
            setting("remote", Some(b"o"), "url", b"a\nb\"c\\"),
        ];
        assert_eq!(again, expected);
    }
}
