//! The slash commands, as files that Claude Code lists. What a person types after a command goes to ralph's hook with the event, byte for byte;
//! these files only make the client know the commands, and say what the model gets.

/// One command, under its short name (a file that `ralph init` writes) and its name in the plugin (`/ralph:loop`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    pub short: &'static str,
    pub scoped: &'static str,
    description: &'static str,
    hint: &'static str,
    body: Body,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// The model gets to work on what was typed.
    Task,
    /// The hook tells the model what to work on.
    Resume,
    /// The hook answers in the model's place.
    Answered,
}

const OPTIONS: &str = "TASK [--promise TEXT] [--verify CMD] [--max-iterations N] [--hours H] [--usd X] [--name NAME]";

impl Command {
    pub const ALL: [Command; 6] = [
        Command {
            short: "ralph-loop",
            scoped: "loop",
            description: "Work on a task until it is done: starts a ralph loop in this session",
            hint: OPTIONS,
            body: Body::Task,
        },
        Command {
            short: "ralph",
            scoped: "ralph",
            description: "Start a ralph loop, or: status, pause, resume, cancel",
            hint: "[--mode hook] TASK [--promise TEXT] [--verify CMD] [--max-iterations N] | status | pause | resume | cancel",
            body: Body::Task,
        },
        Command {
            short: "cancel-ralph",
            scoped: "cancel",
            description: "End the ralph loop; its file goes to the archive",
            hint: "[NAME]",
            body: Body::Answered,
        },
        Command {
            short: "ralph-status",
            scoped: "status",
            description: "Show where the ralph loops stand",
            hint: "",
            body: Body::Answered,
        },
        Command {
            short: "ralph-pause",
            scoped: "pause",
            description: "Pause the ralph loop: the agent may stop",
            hint: "[NAME]",
            body: Body::Answered,
        },
        Command {
            short: "ralph-resume",
            scoped: "resume",
            description: "Go on with a paused or ended ralph loop",
            hint: "[NAME] [--max-iterations N] [--hours H] [--usd X]",
            body: Body::Resume,
        },
    ];

    /// The file that makes the client know the short name.
    pub fn file_name(&self) -> String {
        format!("{}.md", self.short)
    }

    pub fn description(&self) -> &'static str {
        self.description
    }

    /// The file's text. The model must not start or end loops by itself.
    pub fn text(&self) -> String {
        let hint = if self.hint.is_empty() { String::new() } else { format!("argument-hint: \"{}\"\n", self.hint) };
        format!("---\ndescription: \"{}\"\n{hint}disable-model-invocation: true\n---\n\n{}\n", self.description, self.body())
    }

    /// The same as a skill, which has its name in its text.
    pub fn skill(&self) -> String {
        format!(
            "---\nname: {}\ndescription: \"{}\"\ndisable-model-invocation: true\n---\n\n{}\n",
            self.short,
            self.description,
            self.body()
        )
    }

    /// The client adds what was typed below a body that has no place for it.
    fn body(&self) -> &'static str {
        match self.body {
            Body::Task => {
                "Work on the task in the arguments below. Ralph's hook has started a loop with it, and says so in this message. If it does not, \
                 the hook is not at work: tell the person that no loop was started, and that `ralph doctor` in a terminal finds out why."
            }
            Body::Resume => {
                "Go on with the task that ralph's hook names in this message. If it names none, the hook is not at work: tell the person so, and \
                 that `ralph doctor` in a terminal finds out why."
            }
            Body::Answered => {
                "This command is for ralph's hook. If nothing in this message comes from ralph, the hook is not at work and nothing was done: tell the \
                 person so, and that `ralph doctor` in a terminal finds out why."
            }
        }
    }
}
