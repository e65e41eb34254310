//! The `verify:` commands of a `worktree.yaml` or of a loop file (S3-2).
//!
//! Nothing is guessed: a file that cannot be read, or that has something else in the place of a command, is a problem with a line number.

use crate::{
    gate::{Command, MAX_DEADLINE_MS, Run},
    text::{
        Problem, suggest, time, utf8, without_bom,
        yaml::{Document, Node, Value},
    },
};

/// A larger file was not written by hand.
const MAX_BYTES: usize = 1024 * 1024;

/// More commands than this are a mistake, or an attempt to keep the hook busy.
const MAX_COMMANDS: usize = 100;

/// The commands that a `worktree.yaml` asks for, in order; none if it does not say `verify:`.
pub fn worktree_commands(bytes: &[u8]) -> Result<Vec<Command>, Problem> {
    if bytes.len() > MAX_BYTES {
        return Err(Problem::new(None, format!("the file is larger than {MAX_BYTES} bytes")));
    }
    let document = Document::parse(without_bom(utf8(bytes)?), 1)?;
    match document.root() {
        Some(Node { value: Value::Map(_), .. }) | None => {}
        Some(root) if root.is_null() => {}
        Some(root) => return Err(root.problem("the file is not a list of `key: value` lines")),
    }
    if document.get("verify")?.is_none()
        && let Some((key, what)) = document.pairs(document.root()).find_map(|(key, _)| Some((key, instead_of_verify(key.text()?)?)))
    {
        return Err(key.problem(what));
    }
    verify(&document)
}

/// The commands under the key `verify` of a document.
pub(crate) fn verify(document: &Document) -> Result<Vec<Command>, Problem> {
    let Some((_, value)) = document.get("verify")? else { return Ok(Vec::new()) };
    let verify = document.resolved(value);
    match &verify.value {
        _ if verify.is_null() => Ok(Vec::new()),
        Value::Scalar { text, plain: true } if matches!(text.as_str(), "true" | "false") => {
            Err(verify.problem(format!("`verify: {text}` is no command")))
        }
        Value::List(entries) if entries.len() > MAX_COMMANDS => {
            Err(verify.problem(format!("`verify` has more than {MAX_COMMANDS} commands")))
        }
        Value::List(entries) => entries.iter().map(|entry| command(document, document.child(*entry))).collect(),
        _ => Ok(vec![command(document, verify)?]),
    }
}

/// One entry: a line for the shell, or a mapping that also says how long it may take.
fn command(document: &Document, entry: &Node) -> Result<Command, Problem> {
    let usual = Command::shell("");
    match &entry.value {
        Value::List(_) => Err(entry.problem("an entry of `verify` is a list; write the command as one line")),
        Value::Map(_) => of_mapping(document, entry),
        _ => Ok(Command { run: Run::Shell(shell_line(entry)?), ..usual }),
    }
}

fn of_mapping(document: &Document, entry: &Node) -> Result<Command, Problem> {
    let (mut run, mut deadline_ms) = (None, None);
    for (key, value) in document.pairs(Some(entry)) {
        let value = document.resolved(value);
        match key.text() {
            Some("run" | "command") if run.is_none() => run = Some(how_to_run(document, value)?),
            Some("timeout" | "deadline") if deadline_ms.is_none() => deadline_ms = Some(deadline(value)?),
            Some(twice @ ("run" | "command" | "timeout" | "deadline")) => {
                return Err(key.problem(format!("`{twice}` says a second time what the entry says already")));
            }
            _ => return Err(key.problem("a command has `run` and `timeout`, and no other key")),
        }
    }
    let usual = Command::shell("");
    let run = run.ok_or_else(|| entry.problem("the entry has no `run`"))?;
    Ok(Command { run, deadline_ms: deadline_ms.unwrap_or(usual.deadline_ms), ..usual })
}

/// A line for the shell, or a list of a program and its arguments.
fn how_to_run(document: &Document, value: &Node) -> Result<Run, Problem> {
    match &value.value {
        Value::Scalar { .. } => shell_line(value).map(Run::Shell),
        Value::List(words) if !words.is_empty() && words.len() <= MAX_COMMANDS => {
            words.iter().map(|word| shell_line(document.child(*word))).collect::<Result<_, _>>().map(Run::Argv)
        }
        _ => Err(value.problem("`run` is neither a line for the shell nor a list of words")),
    }
}

fn shell_line(node: &Node) -> Result<String, Problem> {
    match node.text().map(str::trim) {
        Some(line) if line.contains('\0') => Err(node.problem("a command has a NUL character in it")),
        Some(line) if !line.is_empty() && !node.is_null() => Ok(line.to_owned()),
        Some(_) => Err(node.problem("a command is empty")),
        None => Err(node.problem("a command is not a single line of text")),
    }
}

fn deadline(node: &Node) -> Result<u64, Problem> {
    let ms = node.text().and_then(|text| time::parse_duration(text).ok()).filter(|ms| *ms <= MAX_DEADLINE_MS);
    ms.ok_or_else(|| node.problem("a limit of time is seconds (`300`), or `90s`, `10m`, `2h`, and at most a day"))
}

/// The mistake in a key that may have been meant as `verify`: commands that never run would pass in silence.
fn instead_of_verify(key: &str) -> Option<String> {
    if key == "<<" {
        return Some("ralph does not follow `<<`; write `verify: *name`".to_owned());
    }
    let near = suggest::nearest(&key.to_lowercase(), std::iter::once("verify"))?;
    Some(format!("`{}` asks for nothing; did you mean `{near}`?", key.chars().filter(|c| !c.is_control()).take(40).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(yaml: &str) -> Vec<String> {
        worktree_commands(yaml.as_bytes()).unwrap_or_else(|e| panic!("{e}: {yaml:?}")).iter().map(|c| c.run.shown()).collect()
    }

    fn problem(yaml: impl AsRef<[u8]>) -> String {
        match worktree_commands(yaml.as_ref()) {
            Err(problem) => problem.to_string(),
            Ok(found) => panic!("{found:?}"),
        }
    }

    #[test]
    fn s3_2_commands_are_read_in_every_form() {
        let lint_and_test = ["pnpm lint", "pnpm test"];
        for yaml in [
            "verify:\n  - pnpm lint\n  - pnpm test\n",
            "verify:\n- pnpm lint\n- pnpm test",
            "worktree_dir: ../x\ncopy: [.env]\nverify: [pnpm lint, pnpm test] # both\npost_create:\n  - npm i\n",
            "# a comment\nverify: # another\n  # and one more\n  - 'pnpm lint' # why\n\n  - \"pnpm test\"\n",
            "\u{feff}verify:\r\n  - pnpm lint\r\n  - pnpm test\r\n",
            "%YAML 1.2\n---\nverify:\n  - pnpm lint\n  - pnpm test\n...\n",
            "---\n\"verify\": [\n  pnpm lint,\n  \"pnpm test\",\n]\n",
            "a: &lint pnpm lint\nb: &t\n  - *lint\n  - pnpm test\nverify: *t\n",
            "verify:\n  - >-\n    pnpm\n    lint\n  - |\n    pnpm test\n",
            "verify:\n  - {run: pnpm lint}\n  - command: pnpm test\n    deadline: 2h\n",
            "{verify: [pnpm lint, {run: pnpm test, timeout: 300}]}",
            "verify:\n  -\tpnpm lint\n  - pnpm test",
        ] {
            assert_eq!(lines(yaml), lint_and_test, "{yaml:?}");
        }
        assert_eq!(lines("verify: pnpm lint && pnpm test"), ["pnpm lint && pnpm test"]);
        assert_eq!(lines("verify: {run: [cargo, test, a b]}"), ["cargo test a b"]);
        assert_eq!(lines("verify:\n  - |\n    set -e\n    a\n    b\n"), ["set -e\na\nb"]);
        assert_eq!(lines("verify:\n  - 'it''s'\n  - \"a\\tb # c\"\n  - a#b # d"), ["it's", "a\tb # c", "a#b"]);
        assert_eq!(lines("verify: [true, 'false', \"null\"]"), ["true", "false", "null"], "these are programs, too");
    }

    #[test]
    fn s3_2_no_commands_where_none_are_given() {
        for yaml in
            ["", "# nothing\n", "---\n", "---\n...\n", "verify:\n", "verify: ~", "verify: null # none", "verify: []", "a: 1\n", "null"]
        {
            assert_eq!(lines(yaml), Vec::<String>::new(), "{yaml:?}");
        }
        assert_eq!(lines("a:\n  verify: [x]\n"), Vec::<String>::new(), "a nested key is another one");
    }

    #[test]
    fn s3_3_a_limit_for_one_command() {
        let limit = |value: &str| worktree_commands(format!("verify: [{{run: x, timeout: {value}}}]").as_bytes()).map(|c| c[0].deadline_ms);
        for (value, ms) in [("300", 300_000), ("'300'", 300_000), ("90s", 90_000), ("10 m", 600_000), ("2h", 7_200_000)] {
            assert_eq!(limit(value), Ok(ms), "{value}");
        }
        for value in ["0", "-1", "1.5", "soon", "", "25h", "99999999999999999999", "18446744073709551615h", "[1]", "m"] {
            assert!(limit(value).is_err_and(|e| e.line == Some(1)), "{value}");
        }
        assert_eq!(worktree_commands(b"verify: x").map(|c| c[0].deadline_ms), Ok(crate::gate::DEFAULT_DEADLINE_MS));
    }

    #[test]
    fn s3_2_what_is_broken_is_said_with_its_line() {
        for (yaml, line) in [
            ("verify:\n\t- pnpm lint\n", 2),
            ("verify:\n  - a\n - b\n", 3),
            ("a: 1\nverify: [pnpm lint\n", 2),
            ("verify: 'open\n", 2),
            ("a: b: c\n", 1),
            ("- pnpm lint\n", 1),
            ("just words", 1),
            ("verify:\n  - a\nverify:\n  - b\n", 3),
            ("verify:\n  - a\n  - [b, c]\n", 3),
            ("verify:\n  - a\n  -\n", 3),
            ("verify:\n  - a\n  - timeout: 3\n", 3),
            ("verify:\n  - run: a\n    command: b\n", 3),
            ("verify:\n  - run: a\n    timout: 3\n", 3),
            ("verify: false", 1),
            ("verify: *nothing", 1),
            ("verify: &a [*a]", 1),
            ("<<: *x\n", 1),
            ("copy: [.env]\nverfy:\n  - a\n", 2),
            ("Verify: [a]\n", 1),
            ("b: &b {}\n<<: *b\n", 2),
            ("verify: [a]\n---\nverify: [b]\n", 2),
            ("verify: \"a\\0b\"", 1),
        ] {
            assert!(problem(yaml).starts_with(&format!("line {line}: ")), "{yaml:?}: {}", problem(yaml));
        }
        assert_eq!(problem("verfy: [a]\n"), "line 1: `verfy` asks for nothing; did you mean `verify`?");
        assert_eq!(lines("verify: [a]\nverfy: [b]\n"), ["a"], "there is one");
        assert!(problem(b"a: 1\n\xff: 2\n").starts_with("line 2: "), "{}", problem(b"a: 1\n\xff: 2\n"));
        assert!(problem(vec![b' '; MAX_BYTES + 1]).contains("larger than"));
    }

    /// S3-2: a file that is made to take up memory or time is refused or read, quickly.
    #[test]
    fn s3_2_bombs() {
        let of = |n: i32| format!("a{n}: &a{n} [{}]\n", format!("*a{}, ", n - 1).repeat(9));
        let laughs: String = ["a0: &a0 [x, x, x]\n".to_owned()].into_iter().chain((1..30).map(of)).collect();
        assert!(problem(format!("{laughs}verify: *a29\n")).contains("is a list"));
        assert!(problem(format!("verify: {}", "[".repeat(200_000))).starts_with("line 1: "));
        assert!(problem(format!("verify: [{}]", "x,".repeat(MAX_COMMANDS + 1))).contains("more than 100 commands"));
        assert!(problem("- ".repeat(200_000)).starts_with("line 1: "));
    }

    proptest! {
        #[test]
        fn s3_2_any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = worktree_commands(&bytes);
        }

        #[test]
        fn s3_2_any_yaml_never_panics(text in "[a-z:\\-\\[\\]{}&*#|>'\" \n\t<?!%,~]{0,80}") {
            let _ = worktree_commands(format!("verify: {text}").as_bytes());
            let _ = worktree_commands(format!("verify:\n{text}").as_bytes());
        }

        #[test]
        fn s3_2_a_quoted_command_comes_back_as_it_was(line in "[ -~é]{0,40}") {
            let yaml = format!("verify:\n  - {}\n", crate::loops::front_matter::quoted(&line));
            match worktree_commands(yaml.as_bytes()) {
                Ok(found) => prop_assert_eq!(found[0].run.shown(), line.trim()),
                Err(_) => prop_assert!(line.trim().is_empty()),
            }
        }
    }
}
