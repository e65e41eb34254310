//! Tool calls in a few words, and the permission rules that would have allowed them, as Claude Code spells rules.

use ralph_core::{judge::session_outcome::Denied, text::opening};
use serde_json::Value;

use crate::sys::secrets;

/// The longest subject of a call.
const MOST_WORDS: usize = 200;

/// Programs whose second word says what they do: allowing all that they can do would allow too much.
const WITH_COMMANDS: &str = "apt apt-get aws brew bun bundle cargo composer conda deno docker dotnet flutter gcloud gem gh git go \
    helm kubectl make mix mvn npm pip pnpm poetry rails terraform uv yarn";

/// Whose second word needs a third: `npm run build`.
const RUNS: [&str; 3] = ["run", "exec", "tool"];

/// The subject of a call: the command, the file, the address.
pub(crate) fn what(input: &Value) -> String {
    const KEYS: [&str; 12] =
        ["command", "file_path", "notebook_path", "url", "query", "pattern", "path", "description", "skill", "prompt", "task_id", "name"];
    let named = KEYS.iter().find_map(|key| input.get(key)?.as_str());
    let first = || input.as_object()?.values().find_map(Value::as_str);
    secrets::opening(named.or_else(first).unwrap_or_default(), MOST_WORDS)
}

/// A denied call: one entry for each rule that it needs.
pub(crate) fn denied(tool: &str, input: &Value) -> Vec<Denied> {
    let tool = opening(tool, MOST_WORDS);
    rules(&tool, input).into_iter().map(|rule| Denied { tool: tool.clone(), what: what(input), rule }).collect()
}

fn rules(tool: &str, input: &Value) -> Vec<String> {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let rule = match tool {
        "Bash" => return text("command").map_or_else(|| vec![tool.to_owned()], of_command),
        "WebFetch" => text("url").and_then(host).map(|host| format!("WebFetch(domain:{host})")),
        "Read" => text("file_path").and_then(folder).map(|folder| format!("Read(/{folder}/**)")),
        "Skill" => text("skill").map(|skill| format!("Skill({})", opening(skill, 100))),
        _ => None,
    };
    vec![rule.unwrap_or_else(|| tool.to_owned())]
}

fn host(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    let host = rest.split(['/', '?', '#']).next()?.rsplit('@').next()?.split(':').next()?;
    (!host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-')).then_some(host)
}

/// The folder of a file with an absolute path. A rule writes the root as `//`.
fn folder(path: &str) -> Option<&str> {
    let folder = path.rsplit_once('/')?.0;
    (folder.starts_with('/') && !folder.contains(|c: char| c.is_control() || c == ')')).then_some(folder)
}

/// The rules for a shell's line: the client looks at each of its commands by itself.
fn of_command(line: &str) -> Vec<String> {
    let mut rules: Vec<String> = match commands(line) {
        Some(commands) => commands.iter().filter_map(|words| prefix(words)).map(|prefix| format!("Bash({prefix}:*)")).collect(),
        None => Vec::new(),
    };
    rules.sort();
    rules.dedup();
    match line.lines().count() {
        _ if !rules.is_empty() => rules,
        // A line that cannot be taken apart can be allowed as a whole.
        1 if line.chars().count() <= MOST_WORDS && !line.chars().any(char::is_control) => {
            vec![format!("Bash({})", secrets::mask(line.trim()))]
        }
        _ => vec!["Bash".to_owned()],
    }
}

/// The commands of a line, as words. `None` where the shell does more than running them one after the other.
fn commands(line: &str) -> Option<Vec<Vec<String>>> {
    let mut all = vec![vec![String::new()]];
    let mut quote = None;
    let mut chars = line.trim().chars().peekable();
    while let Some(c) = chars.next() {
        let words = all.last_mut()?;
        let word = words.last_mut()?;
        match (c, quote) {
            ('`', None | Some('"')) | ('(' | ')' | '{' | '}', None) => return None,
            ('$', None | Some('"')) if chars.peek() == Some(&'(') => return None,
            ('<', None) if chars.peek() == Some(&'<') => return None,
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            ('\\', None | Some('"')) => word.extend(chars.next()),
            // `2>&1` is no end of a command.
            ('&', None) if word.ends_with('>') => word.push(c),
            ('&' | '|' | ';' | '\n', None) => all.push(vec![String::new()]),
            (c, None) if c.is_whitespace() => words.push(String::new()),
            (c, _) => word.push(c),
        }
    }
    let commands = all.into_iter().map(|words| words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>());
    quote.is_none().then(|| commands.filter(|words| !words.is_empty()).collect())
}

/// The words with which a command begins, as far as they say what it does. What moves to another folder needs no rule.
fn prefix(words: &[String]) -> Option<String> {
    let is_plain = |word: &&String| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@+".contains(c));
    let is_command = |word: &&String| is_plain(word) && word.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_setting =
        |word: &&String| word.split_once('=').is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
    let mut words = words.iter().skip_while(is_setting);
    let program = words.next().filter(is_plain).filter(|program| *program != "cd")?;
    let mut prefix = program.clone();
    if WITH_COMMANDS.split(' ').any(|known| known == program)
        && let Some(command) = words.next().filter(is_command)
    {
        prefix = format!("{prefix} {command}");
        if RUNS.contains(&command.as_str())
            && let Some(script) = words.next().filter(is_command)
        {
            prefix = format!("{prefix} {script}");
        }
    }
    Some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(tool: &str, input: &Value) -> Vec<String> {
        denied(tool, input).into_iter().map(|denied| denied.rule).collect()
    }

    fn of_line(line: &str) -> String {
        of("Bash", &json!({"command": line, "description": "x"})).join(" ")
    }

    #[test]
    fn s4_6_a_denied_command_names_the_rules_that_would_have_allowed_it() {
        assert_eq!(of_line("touch made.txt"), "Bash(touch:*)");
        assert_eq!(of_line("npm test -- --watch=false"), "Bash(npm test:*)");
        assert_eq!(of_line("npm run build"), "Bash(npm run build:*)");
        assert_eq!(of_line("cargo +nightly test"), "Bash(cargo:*)");
        assert_eq!(
            of_line("cd sub && CI=1 npm test 2>&1 | tail -5; git commit -m 'a; b'"),
            "Bash(git commit:*) Bash(npm test:*) Bash(tail:*)"
        );
        assert_eq!(of_line("echo \"$(date)\""), "Bash(echo \"$(date)\")");
        assert_eq!(of_line("cat <<EOF > x\nhello\nEOF"), "Bash");
        assert_eq!(of_line("echo 'open"), "Bash(echo 'open)");
        assert_eq!(of_line(""), "Bash");
    }

    #[test]
    fn s4_6_a_denied_tool_names_its_rule() {
        assert_eq!(of("Write", &json!({"file_path": "/p/a.txt", "content": "x"})), ["Write"]);
        assert_eq!(of("Edit", &json!({"file_path": "a"})), ["Edit"]);
        assert_eq!(of("WebFetch", &json!({"url": "https://docs.example.org:8080/a?b"})), ["WebFetch(domain:docs.example.org)"]);
        assert_eq!(of("WebFetch", &json!({"url": "no address"})), ["WebFetch"]);
        assert_eq!(of("Read", &json!({"file_path": "/etc/ssl/x.pem"})), ["Read(//etc/ssl/**)"]);
        assert_eq!(of("mcp__github__create_issue", &json!({})), ["mcp__github__create_issue"]);
        assert_eq!(denied("Write", &json!({"file_path": "/p/a.txt", "content": "x"}))[0].what, "/p/a.txt");
        assert_eq!(what(&json!({"odd": 1, "other": "this"})), "this");
        assert_eq!(what(&json!("no object")), "");
    }
}
