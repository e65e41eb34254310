//! The plugin for Claude Code, and the marketplace that offers it, as files. `cargo xtask generate` writes them into the repository; `ralph plugin`
//! writes them with the program inside.

use crate::hosts::{
    PLUGIN,
    claude::{
        commands::Command,
        settings_file::{Problem, Settings},
    },
};

/// The name before the colon in `/ralph:loop`.
pub const NAME: &str = "ralph";
pub const MARKETPLACE: &str = "ralph-loop";

/// The program of the plugin in the repository: built and installed by the user, and found on the PATH.
pub const ON_PATH: &str = "ralph";
/// The program of a plugin that brings its own.
pub const INSIDE: &str = "${CLAUDE_PLUGIN_ROOT}/bin/ralph";

const DESCRIPTION: &str = "Keeps the agent working until the work is proven done: a stop hook that decides in about a millisecond.";

/// All files, by their path from the marketplace's root, for a plugin that runs `program`.
pub fn files(program: &str) -> Result<Vec<(String, String)>, Problem> {
    let mut files = vec![
        (".claude-plugin/marketplace.json".to_owned(), marketplace()),
        ("plugin/.claude-plugin/plugin.json".to_owned(), manifest()),
        ("plugin/hooks/hooks.json".to_owned(), hooks(program)?),
        ("plugin/README.md".to_owned(), readme(program)),
    ];
    files.extend(Command::ALL.iter().map(|command| (format!("plugin/commands/{}.md", command.scoped), command.text())));
    Ok(files)
}

fn marketplace() -> String {
    format!(
        r#"{{
  "name": "{MARKETPLACE}",
  "description": "{DESCRIPTION}",
  "owner": {{ "name": "The ralph-loop authors" }},
  "plugins": [
    {{
      "name": "{NAME}",
      "source": "./plugin",
      "description": "{DESCRIPTION}"
    }}
  ]
}}
"#
    )
}

fn manifest() -> String {
    format!(
        r#"{{
  "name": "{NAME}",
  "version": "{}",
  "description": "{DESCRIPTION}",
  "author": {{ "name": "The ralph-loop authors" }},
  "license": "MIT OR Apache-2.0",
  "keywords": ["ralph", "loop", "stop-hook"]
}}
"#,
        env!("CARGO_PKG_VERSION")
    )
}

/// A plugin's hooks have the shape of a settings file's.
fn hooks(program: &str) -> Result<String, Problem> {
    let settings = Settings::parse(b"{\n}\n")?;
    settings.register(program, PLUGIN)?;
    Ok(settings.to_text())
}

fn readme(program: &str) -> String {
    let needs = if program == ON_PATH {
        "It runs the program `ralph`, which has to be on the `PATH` of Claude Code (`cargo install --locked --profile dist --path crates/ralph` puts it there)."
    } else {
        "It brings its own program, in `bin/`."
    };
    let commands: Vec<String> = Command::ALL.iter().map(|c| format!("| `/{NAME}:{}` | {} |", c.scoped, c.description())).collect();
    format!(
        "# ralph for Claude Code\n\n{DESCRIPTION} {needs}\n\n| command | |\n|---|---|\n{}\n\n\
         The short names, `/ralph-loop` and `/cancel-ralph` among them, are files that a plugin cannot bring: `ralph init` writes them. \
         `ralph doctor` checks that all of it works.\n\nLicensed under MIT or Apache-2.0, at your option.\n",
        commands.join("\n")
    )
}
