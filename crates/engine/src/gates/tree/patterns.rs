//! Which files are meant: `src/**`, `*.rs`, `docs`, and `!docs/**` for all but those.

use fast_glob::{glob_match, validate};

/// Patterns of files. A file is selected if one of the patterns matches, or if there are only exclusions, and no exclusion matches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patterns {
    wanted: Vec<String>,
    unwanted: Vec<String>,
}

impl Patterns {
    /// The error says which pattern is broken.
    pub(crate) fn new(patterns: &[String]) -> Result<Self, String> {
        let mut all = Patterns::default();
        for pattern in patterns {
            let (list, glob) = match pattern.strip_prefix('!') {
                Some(rest) => (&mut all.unwanted, rest),
                None => (&mut all.wanted, pattern.as_str()),
            };
            let glob = glob.strip_prefix("./").unwrap_or(glob).trim_matches('/');
            validate(glob).map_err(|_| format!("`{pattern}` is not a pattern of files"))?;
            if !matches!(glob, "" | ".") {
                list.push(glob.to_owned());
            }
        }
        Ok(all)
    }

    pub(crate) fn select(&self, path: &str) -> bool {
        let any = |globs: &[String]| globs.iter().any(|glob| matches(glob, path));
        (self.wanted.is_empty() || any(&self.wanted)) && !any(&self.unwanted)
    }
}

/// A pattern without a wildcard means the file or everything below the folder; one without a slash means the name in any folder, as in `.gitignore`.
fn matches(glob: &str, path: &str) -> bool {
    if !glob.contains(['*', '?', '[', '{', '\\']) {
        return path.strip_prefix(glob).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    glob_match(glob, path) || (!glob.contains('/') && glob_match(glob, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_select_files() {
        #[rustfmt::skip]
        let table: &[(&[&str], &str, bool)] = &[
            (&[], "any/file", true),
            (&["src/**"], "src/a/b.rs", true),
            (&["src/**"], "srcs/a.rs", false),
            (&["src"], "src/a/b.rs", true),
            (&["src/"], "src/a/b.rs", true),
            (&["./src"], "src/a.rs", true),
            (&["src"], "srcs/a.rs", false),
            (&["src"], "lib/src/a.rs", false),
            (&["Cargo.toml"], "Cargo.toml", true),
            (&["*.rs"], "a.rs", true),
            (&["*.rs"], "deep/down/a.rs", true),
            (&["src/*.rs"], "src/deep/a.rs", false),
            (&["{src,lib}/**"], "lib/a", true),
            (&["!docs/**"], "docs/a.md", false),
            (&["!docs/**"], "src/a.rs", true),
            (&["!docs"], "docs/a.md", false),
            (&["**/*.md", "!docs"], "docs/a.md", false),
            (&["!docs", "**/*.md"], "docs/a.md", false),
            (&["**/*.md", "!docs"], "README.md", true),
            (&["."], "any", true),
        ];
        for (patterns, path, selected) in table {
            let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
            assert_eq!(Patterns::new(&patterns).unwrap().select(path), *selected, "{patterns:?} {path}");
        }
    }

    #[test]
    fn a_broken_pattern_is_named() {
        assert_eq!(Patterns::new(&["src/{a".to_owned()]).unwrap_err(), "`src/{a` is not a pattern of files");
    }
}
