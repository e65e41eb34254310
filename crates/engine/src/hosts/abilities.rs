//! The table of agents and what ralph can do in each, for the documentation: made from the rows of [`Host::ALL`], with the test that proves each line of it.

use super::{
    acp,
    host::{Clear, Context, Host, Registration, Typed},
};

/// One line of the table.
struct Ability {
    what: &'static str,
    /// What a person reads in an agent's column.
    cell: fn(&Host) -> String,
    proofs: &'static [Proof],
    /// It is in the short table, too.
    in_short: bool,
}

/// The test that proves a line.
struct Proof {
    /// Below `crates/ralph/tests`.
    file: &'static str,
    name: &'static str,
    /// The agents that it runs with; empty: all but Claude Code, which has its own.
    agents: &'static [&'static str],
}

const CLIENT: &str = "client/hosts.rs";
const SCREENS: &str = "client/host_screens.rs";
/// Beside this file.
const STREAMS: &str = "../../engine/src/hosts/agent_stream/tests.rs";
const SESSIONS: &str = "../../engine/src/hosts/session_files.rs";
const RUN: &str = "client/run_agents.rs";
const RUN_ACP: &str = "client/run_acp.rs";
const EVENTS: &str = "spec/hosts.rs";

const fn by(file: &'static str, name: &'static str, agents: &'static [&'static str]) -> Proof {
    Proof { file, name, agents }
}

/// The agents whose real clients work over ACP.
const RUN_OVER_ACP: &[&str] = &["gemini", "copilot", "qwen", "droid", "grok", "opencode"];

/// The agents that run commands as hooks.
const HOOKED: &[&str] = &["codex", "gemini", "copilot", "qwen", "droid", "grok"];
const OPENCODE: &[&str] = &["opencode"];
const ON_SCREEN: &str = "h3_h4_a_typed_command_starts_a_loop_that_goes_on_to_its_claim_on_the_screen";
const OPENCODES_ESC: &str = "h3_an_error_costs_nothing_and_esc_pauses_the_loop_in_opencode";

const ABILITIES: [Ability; 18] = [
    Ability {
        what: "`ralph init --agent`",
        cell: |host| if host.is_claude() { "`ralph init`".to_owned() } else { format!("`{}`", host.name) },
        proofs: &[
            by(EVENTS, "h7_init_registers_with_every_agent_and_uninstall_gives_the_bytes_back", HOOKED),
            by(EVENTS, "h7_the_plugin_of_opencode_comes_and_goes", OPENCODE),
        ],
        in_short: true,
    },
    Ability {
        what: "goes on until its claim",
        cell: |_| YES.to_owned(),
        proofs: &[by(CLIENT, "h3_a_loop_goes_on_until_the_claim", &[])],
        in_short: true,
    },
    Ability {
        what: "the claim needs its proof",
        cell: |_| YES.to_owned(),
        proofs: &[by(CLIENT, "h3_a_claim_counts_when_its_proof_holds", &[])],
        in_short: true,
    },
    Ability {
        what: "an error costs no iteration, another session is left alone",
        cell: |_| YES.to_owned(),
        proofs: &[by(CLIENT, "h2_h3_an_error_costs_no_iteration_and_another_session_is_left_alone", &[])],
        in_short: false,
    },
    Ability {
        what: "`ralph doctor` tries the registration",
        cell: |_| YES.to_owned(),
        proofs: &[by("spec/doctor/agents.rs", "h7_an_agent_that_is_here_is_named_and_its_registration_is_tried", &[])],
        in_short: false,
    },
    Ability {
        what: "a new hook waits for your review",
        cell: |host| yes(host.registration.as_ref().is_some_and(|registration| registration.review.is_some())),
        proofs: &[by(CLIENT, "h7_the_doctor_knows_which_hooks_codex_has_reviewed", &["codex"]), by(SCREENS, ON_SCREEN, &[])],
        in_short: false,
    },
    Ability {
        what: "typed command",
        cell: |host| match host.typed {
            Typed::Everywhere => format!("`{}ralph-loop`", host.command_mark),
            Typed::OnScreen => format!("`{}ralph-loop`, on its screen", host.command_mark),
        },
        proofs: &[by(EVENTS, "h4_typed_commands_start_and_cancel_without_a_model_call", &[]), by(SCREENS, ON_SCREEN, &[])],
        in_short: true,
    },
    Ability {
        what: "cancel and status without a model call",
        cell: |_| YES.to_owned(),
        proofs: &[by(EVENTS, "h4_typed_commands_start_and_cancel_without_a_model_call", &[]), by(SCREENS, ON_SCREEN, &[])],
        in_short: false,
    },
    Ability {
        what: "a new session hears of a loop that waits",
        cell: |host| yes(host.answers.context != Context::Ignored),
        proofs: &[by(EVENTS, "h3_a_session_that_begins_hears_of_a_loop_that_waits", &[]), by(CLIENT, OPENCODES_ESC, OPENCODE)],
        in_short: false,
    },
    Ability {
        what: "`/clear` takes the loop along",
        cell: |host| match host.clear {
            Clear::Told | Clear::ToldAtEnd => YES.to_owned(),
            Clear::Untold => "if it is paused".to_owned(),
            Clear::NotSeen => NO.to_owned(),
        },
        proofs: &[
            by(EVENTS, "h3_a_loop_goes_along_with_clear", &["gemini", "qwen", "codex", "droid"]),
            by(SCREENS, "h3_clear_takes_the_loop_along_where_the_agent_tells_of_it", &[]),
        ],
        in_short: false,
    },
    Ability {
        what: "Esc pauses the loop",
        cell: |host| match &host.registration {
            None => "at the next message".to_owned(),
            Some(registration) if registration.events.contains(&"Interrupt") => "at once".to_owned(),
            Some(_) => NO.to_owned(),
        },
        proofs: &[by(EVENTS, "h3_an_interrupt_that_is_told_pauses_the_loop", &["codex"]), by(CLIENT, OPENCODES_ESC, OPENCODE)],
        in_short: false,
    },
    Ability {
        what: "the loop pauses before its own cap on stops that are sent back",
        cell: |host| match host.cap {
            Some(cap) if host.is_claude() => format!("{} without a tool call", cap.honours),
            Some(cap) => format!("{} in a turn", cap.honours),
            None => "none".to_owned(),
        },
        proofs: &[
            by(EVENTS, "h3_a_loop_pauses_one_block_before_the_agents_own_cap", &["copilot", "qwen", "grok"]),
            by(CLIENT, "h3_a_loop_pauses_before_the_agents_own_cap", &[]),
        ],
        in_short: false,
    },
    Ability {
        what: "the loop in its status line",
        cell: |host| yes(host.registration.as_ref().is_none_or(|registration| registration.status_line.is_some())),
        proofs: &[
            by("spec/eyes_statusline.rs", "h4_the_status_line_of_other_agents_has_the_sessions_loop", &["copilot", "qwen", "grok"]),
            by(SCREENS, ON_SCREEN, &["copilot", "qwen", "grok"]),
        ],
        in_short: false,
    },
    Ability {
        what: "the work of check agents is verified",
        cell: |host| {
            let tells = |registration: &Registration| registration.events.contains(&"SubagentStop");
            yes(host.is_claude() || host.registration.as_ref().is_some_and(tells))
        },
        proofs: &[by(EVENTS, "h3_a_check_agents_work_is_verified", &["codex", "qwen"])],
        in_short: false,
    },
    Ability {
        what: "tokens and cost of its own sessions are in the report",
        cell: |host| yes(host.is_claude() || host.session_files.is_some()),
        proofs: &[by(SESSIONS, "h8_what_a_session_used_is_read_from_its_file", &["codex", "gemini", "copilot", "qwen", "grok"])],
        in_short: false,
    },
    Ability {
        what: "`ralph run --agent`",
        cell: |host| if host.is_claude() { "`ralph run`".to_owned() } else { format!("`{}`", host.name) },
        proofs: &[by(RUN, "h5_a_run_goes_on_until_its_claim_is_proven", &[])],
        in_short: true,
    },
    Ability {
        what: "the same, over ACP",
        cell: |host| {
            if acp::AcpAgent::by_name(&format!("acp:{}", host.name)).is_some() { format!("`acp:{}`", host.name) } else { NO.to_owned() }
        },
        proofs: &[by(RUN_ACP, "h6_a_run_over_acp_goes_on_until_its_claim_is_proven", RUN_OVER_ACP)],
        in_short: false,
    },
    Ability {
        what: "a run tells which calls were denied",
        cell: |host| yes(host.headless.as_ref().is_some_and(|headless| headless.tells_denials)),
        proofs: &[by(STREAMS, "h5_what_was_denied_is_told", &["gemini", "copilot", "qwen", "grok", "opencode"])],
        in_short: false,
    },
];

const YES: &str = "yes";
const NO: &str = "no";

fn yes(is: bool) -> String {
    if is { YES } else { NO }.to_owned()
}

impl Host {
    /// The table of agents, for the documentation: every line, each with its test.
    pub fn table() -> String {
        let rows = ABILITIES.iter().map(|ability| (ability, ability.proven_by()));
        let legend = "`*`: no test shows this cell; it is what we saw by hand. The last column names the tests of the others: *client*, with the real program; \
                  *events*, without it, by events in its form. Claude Code has [its own tests](requirements.md).";
        format!("{}\n{legend}\n", markdown(rows.collect(), Some("proven by")))
    }

    /// The lines of it that a person wants to know first.
    pub fn short_table() -> String {
        let rows = ABILITIES.iter().filter(|ability| ability.in_short).map(|ability| (ability, String::new()));
        markdown(rows.collect(), None)
    }
}

fn markdown(rows: Vec<(&Ability, String)>, last: Option<&str>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | ").trim_end());
    let titles = Host::ALL.iter().map(|host| host.title.to_owned());
    let head: Vec<String> = std::iter::once(String::new()).chain(titles).chain(last.map(str::to_owned)).collect();
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    let body = rows.into_iter().map(|(ability, proof)| {
        let cells = Host::ALL.iter().map(|host| ability.of(host));
        line(std::iter::once(ability.what.to_owned()).chain(cells).chain(last.map(|_| proof)).collect())
    });
    line(head) + &rule + &body.collect::<String>()
}

impl Ability {
    /// The cell of an agent, marked where no test shows it.
    fn of(&self, host: &Host) -> String {
        let cell = (self.cell)(host);
        let is_shown = host.is_claude() || self.proofs.iter().any(|proof| proof.agents.is_empty() || proof.agents.contains(&host.name));
        if is_shown { cell } else { format!("{cell}*") }
    }

    /// `client h3, events h7`.
    fn proven_by(&self) -> String {
        let mut all: Vec<String> = self.proofs.iter().map(Proof::in_short).collect();
        all.dedup();
        all.join(", ")
    }
}

impl Proof {
    /// `client h3 h4`.
    fn in_short(&self) -> String {
        let is_id = |word: &&str| word.strip_prefix('h').is_some_and(|n| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()));
        let ids: Vec<&str> = self.name.split('_').take_while(is_id).collect();
        format!("{} {}", if self.file.starts_with("client/") { "client" } else { "events" }, ids.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of the table is not better than its tests: each exists, and runs with the agents that it stands for.
    #[test]
    fn h9_every_proof_of_the_table_is_a_test() {
        for proof in ABILITIES.iter().flat_map(|ability| ability.proofs) {
            let text = of_test(proof.file);
            let others = Host::ALL.iter().filter(|host| !host.is_claude()).map(|host| host.name);
            let agents: Vec<&str> = if proof.agents.is_empty() { others.collect() } else { proof.agents.to_vec() };
            for agent in agents {
                assert!(Host::by_name(agent).is_some(), "{agent}");
                assert!(runs_with(&text, proof.name, agent), "{}: {} does not run with {agent}", proof.file, proof.name);
            }
        }
        for agent in &acp::AGENTS {
            let name = agent.name.trim_start_matches("acp:");
            let has_test = runs_with(&of_test(RUN_ACP), "h6_a_run_over_acp_goes_on_until_its_claim_is_proven", name);
            assert_eq!(has_test, agent.is_in_tests(), "{}", agent.name);
        }
        // It does find mistakes.
        assert!(!runs_with(&of_test(CLIENT), "h3_a_loop_goes_on_until_the_claim", "kimi"));
        assert!(!runs_with(&of_test(EVENTS), "h3_an_interrupt_that_is_told_pauses_the_loop", "qwen"));
        assert!(!runs_with(&of_test(EVENTS), "h3_no_such_test", "qwen"));
    }

    fn of_test(file: &str) -> String {
        std::fs::read_to_string(format!("{}/../ralph/tests/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    /// Whether the test of that name in that text runs with the agent: a case of the list that `in_every_agent!` makes tests of, or else a test that names it, or that
    /// goes through a table of its file that does.
    fn runs_with(text: &str, test: &str, agent: &str) -> bool {
        let Some((before, rest)) = text.split_once(&format!("fn {test}(")) else { return false };
        let is_word = |text: &str, word: &str| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|one| one == word);
        let (params, body) = rest.split_once(") ").unwrap();
        let body = body.split("\n    }\n}\n").next().unwrap().split("\n}\n").next().unwrap();
        if params.contains("Agent") {
            let mut lists = text.split("\nin_every_agent! {").skip(1).filter_map(|list| list.split('}').next());
            let Some(list) = lists.find(|list| is_word(list, test)) else { return false };
            let agents = list.split(':').next().unwrap();
            return is_word(agents, agent);
        }
        let is_test = before.rsplit_once("#[test]").is_some_and(|(_, between)| between.trim().is_empty());
        let named = format!("\"{agent}\"");
        let tables = text.split("\nconst ").chain(text.split("\n    const ")).skip(1);
        // Not one of its rows.
        let goes_through = |table: &str| !table.is_empty() && body.split(table).skip(1).any(|after| !after.starts_with('['));
        let mut tables = tables.filter(|table| goes_through(table.split(':').next().unwrap()));
        is_test && (body.contains(&named) || tables.any(|table| table.split("];\n").next().unwrap().contains(&named)))
    }

    /// `docs/hosts.md` tells what an agent takes, with Qwen Code as the example: its file, and a line where agents are listed. Nothing else knows it.
    #[test]
    fn h1_an_agent_is_one_file_and_a_line_where_agents_are_listed() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let (mut folders, mut files) = (vec![crates.join("core/src"), crates.join("engine/src"), crates.join("ralph/src")], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        let knows = |path: &std::path::PathBuf| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            code.lines().any(|line| line.to_lowercase().contains("qwen") && !line.trim_start().starts_with("//"))
        };
        let mut found: Vec<String> = files
            .iter()
            .filter(|path| !path.ends_with("tests.rs") && knows(path))
            .map(|path| path.strip_prefix(crates).unwrap().display().to_string())
            .collect();
        found.sort();
        let places = ["abilities.rs", "acp/mod.rs", "acp/permission.rs", "host.rs", "mod.rs", "qwen.rs", "signs.rs"]
            .map(|name| format!("engine/src/hosts/{name}"));
        let others = ["engine/src/run/preflight.rs", "ralph/src/commands/init.rs"].map(str::to_owned);
        assert_eq!(found, [&places[..], &others].concat());
        let guide = std::fs::read_to_string(crates.join("../docs/hosts.md")).unwrap();
        for name in
            ["qwen.rs", "hosts/mod.rs", "host.rs", "signs.rs", "abilities.rs", "acp/mod.rs", "acp/permission.rs", "run/preflight.rs"]
        {
            assert!(guide.contains(name), "docs/hosts.md does not name {name}");
        }
    }

    /// `docs/run.md` names the command that opens a session again in each agent that has one.
    #[test]
    fn h5_the_page_says_how_a_session_is_opened_again() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run.md")).unwrap();
        for resume in Host::ALL.iter().filter_map(|host| host.advice.resume) {
            assert!(page.contains(&format!("`{resume}`")), "{resume}");
        }
    }

    /// Each agent's row shows in the table.
    #[test]
    fn h9_the_table_has_a_column_for_every_agent() {
        let table = Host::table();
        let lines: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(lines.len(), ABILITIES.len() + 2);
        assert!(lines.iter().skip(2).all(|line| line.matches(" | ").count() == Host::ALL.len() + 1), "{table}");
        assert!(Host::ALL.iter().all(|host| lines[0].contains(host.title)), "{table}");
    }
}
