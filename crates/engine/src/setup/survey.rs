//! The current setup: every settings file and plugin that Claude Code would read in this project.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use crate::{
    git::tracked,
    hosts::{
        claude::{
            registration::BLOCK_CAP,
            settings_file::{Registered, as_the_client_reads},
        },
        client,
    },
    setup::{
        file_change,
        places::{Places, Scope},
        record::real,
    },
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Managed,
    Settings(Scope),
    Plugin(String),
}

impl Origin {
    /// Settings outside of the project, which no checkout can bring.
    fn is_own(&self) -> bool {
        matches!(self, Origin::Managed | Origin::Settings(Scope::User))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Managed => f.write_str("managed settings"),
            Origin::Settings(scope) => write!(f, "{} settings", scope.word()),
            Origin::Plugin(id) => write!(f, "plugin {id}"),
        }
    }
}

/// A settings file as it is.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    pub origin: Origin,
    pub path: PathBuf,
    /// Its text; `None` if there is no such file.
    pub text: Option<String>,
    /// As the client reads it, or why it cannot: `is not …`, `cannot be …`.
    pub parsed: Result<Value, String>,
}

impl SettingsFile {
    fn read(origin: Origin, path: PathBuf) -> Self {
        let (text, parsed) = match file_change::read(&path) {
            Ok(None) => (None, Ok(Value::Null)),
            Ok(Some(text)) => {
                let parsed = as_the_client_reads(&text).map_err(|p| p.to_string());
                (Some(text), parsed)
            }
            Err(problem) => (None, Err(problem.what)),
        };
        SettingsFile { origin, path, text, parsed }
    }
}

/// A plugin that is installed and enabled.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// `name@marketplace`
    pub id: String,
    /// The value of `${CLAUDE_PLUGIN_ROOT}` in its hooks.
    pub root: PathBuf,
    /// Only the project's settings name its marketplace: the person did not choose it.
    pub of_project: bool,
    pub hooks: Vec<Registered>,
}

impl Plugin {
    pub fn name(&self) -> &str {
        self.id.split('@').next().unwrap_or(&self.id)
    }
}

#[derive(Debug, Clone)]
pub struct Registration {
    pub origin: Origin,
    pub path: PathBuf,
    /// The value of `${CLAUDE_PLUGIN_ROOT}` in it.
    pub root: Option<PathBuf>,
    pub hook: Registered,
}

#[derive(Debug, Clone)]
pub struct Survey {
    /// From the weakest to the strongest.
    pub files: Vec<SettingsFile>,
    pub plugins: Vec<Plugin>,
    /// The client's own file about projects and answers.
    memory: Map<String, Value>,
}

impl Survey {
    pub fn take(places: &Places) -> Self {
        let scopes = Scope::ALL.into_iter().filter_map(|scope| Some((Origin::Settings(scope), places.settings(scope)?)));
        let all = scopes.chain([(Origin::Managed, Places::managed())]);
        let mut files: Vec<SettingsFile> = all.map(|(origin, path)| SettingsFile::read(origin, path)).collect();
        // In the home folder the user's settings are also the project's; count them once.
        let of_user = places.settings(Scope::User).map(|path| real(&path));
        files.retain(|file| file.origin == Origin::Settings(Scope::User) || Some(real(&file.path)) != of_user);
        let plugins = places.config.as_deref().map(|config| plugins(config, places.project.root(), &files)).unwrap_or_default();
        Survey { files, plugins, memory: client::memory_file().map(|path| json(&path)).unwrap_or_default() }
    }

    pub fn file(&self, scope: Scope) -> Option<&SettingsFile> {
        self.files.iter().find(|file| file.origin == Origin::Settings(scope))
    }

    /// Every hook that the client would run, ralph's own and others.
    pub fn hooks(&self) -> Vec<Registration> {
        let of_files = self.files.iter().flat_map(|file| {
            let hooks = file.parsed.as_ref().map(Registered::all_in).unwrap_or_default();
            hooks.into_iter().map(|hook| Registration { origin: file.origin.clone(), path: file.path.clone(), root: None, hook })
        });
        let of_plugins = self.plugins.iter().flat_map(|plugin| {
            let path = plugin.root.join("hooks/hooks.json");
            let one = move |hook: &Registered| Registration {
                origin: Origin::Plugin(plugin.id.clone()),
                path: path.clone(),
                root: Some(plugin.root.clone()),
                hook: hook.clone(),
            };
            plugin.hooks.iter().map(one)
        });
        of_files.chain(of_plugins).collect()
    }

    /// Ralph's own registrations.
    pub fn ours(&self) -> Vec<Registration> {
        self.hooks().into_iter().filter(|r| r.hook.line.is_ralphs()).collect()
    }

    /// The plugin that registers ralph's hook, if there is one.
    pub fn our_plugin(&self) -> Option<&Plugin> {
        self.plugins.iter().find(|plugin| plugin.hooks.iter().any(|hook| hook.line.is_ralphs()))
    }

    /// How far a registration reaches: 1 this project, 2 all projects that do not say otherwise, 3 all projects.
    pub fn reach(&self, origin: &Origin) -> u8 {
        let is_on = |id: &str| {
            let user = self.file(Scope::User).and_then(|file| file.parsed.as_ref().ok());
            user.and_then(|settings| settings.get("enabledPlugins")?.get(id)).is_some_and(|on| on == true)
        };
        match origin {
            Origin::Managed => 3,
            Origin::Plugin(id) if is_on(id) => 3,
            Origin::Settings(Scope::User) => 2,
            Origin::Plugin(_) | Origin::Settings(Scope::Project | Scope::Local) => 1,
        }
    }

    /// The value of a setting that counts, and its file: `["permissions", "defaultMode"]`.
    pub fn says(&self, keys: &[&str]) -> Option<(&Value, &SettingsFile)> {
        self.files.iter().rev().find_map(|file| {
            let value = keys.iter().try_fold(file.parsed.as_ref().ok()?, |value, key| value.get(key))?;
            Some((value, file))
        })
    }

    /// The client's cap on stops in a row that are sent back, as a session here would have it.
    pub fn block_cap(&self) -> Option<String> {
        self.says(&["env", BLOCK_CAP]).and_then(|(value, _)| value.as_str().map(str::to_owned)).or_else(client::block_cap)
    }

    /// The folders that the client was told to trust, with all that is below them.
    pub fn trusted_folders(&self) -> Vec<PathBuf> {
        let projects = self.memory.get("projects").and_then(Value::as_object).into_iter().flatten();
        projects.filter(|(_, answers)| answers["hasTrustDialogAccepted"] == true).map(|(path, _)| PathBuf::from(path)).collect()
    }

    /// Whether the client was told to trust this folder, or one above it.
    pub fn trusts(&self, folder: &Path) -> bool {
        let trusted = self.trusted_folders();
        folder.canonicalize().is_ok_and(|folder| folder.ancestors().any(|dir| trusted.iter().any(|known| known == dir)))
    }

    /// Whether a registration did not come with the project.
    pub fn is_own(&self, registration: &Registration) -> bool {
        match &registration.origin {
            Origin::Plugin(id) => self.plugins.iter().any(|plugin| plugin.id == *id && !plugin.of_project),
            origin => origin.is_own(),
        }
    }

    /// The variables that the client sets for its hooks, with or without those of the project's settings.
    pub fn variables(&self, with_projects: bool) -> BTreeMap<&str, &str> {
        let files = self.files.iter().filter(|file| with_projects || file.origin.is_own());
        let all = files.filter_map(|file| file.parsed.as_ref().ok()?.get("env")?.as_object()).flatten();
        all.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect()
    }

    /// The lists of all settings together: `["permissions", "allow"]`.
    pub fn lists(&self, keys: &[&str]) -> Vec<String> {
        self.lists_of(keys, |_| true)
    }

    /// The same as the client takes them in a folder that it was not told to trust: without the project's settings, and without local ones that a checkout brought.
    pub(crate) fn lists_without_trust(&self, keys: &[&str], root: &Path) -> Vec<String> {
        let is_written_here = |file: &SettingsFile| tracked::is_tracked(root, &file.path) == Some(false);
        self.lists_of(keys, |file| file.origin.is_own() || (file.origin == Origin::Settings(Scope::Local) && is_written_here(file)))
    }

    fn lists_of(&self, keys: &[&str], wanted: impl Fn(&SettingsFile) -> bool) -> Vec<String> {
        let files = self.files.iter().filter(|file| wanted(file));
        let values = files.filter_map(|file| keys.iter().try_fold(file.parsed.as_ref().ok()?, |value, key| value.get(key)));
        values.filter_map(Value::as_array).flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

/// The plugins that are enabled for this project, with their hooks.
fn plugins(config: &Path, project: &Path, files: &[SettingsFile]) -> Vec<Plugin> {
    let mut switched: BTreeMap<&str, bool> = BTreeMap::new();
    let mut markets = json(&config.join("plugins/known_marketplaces.json"));
    let mut of_project: Vec<&str> = Vec::new();
    for (value, is_own) in files.iter().filter_map(|file| Some((file.parsed.as_ref().ok()?, file.origin.is_own()))) {
        let enabled = value.get("enabledPlugins").and_then(Value::as_object);
        switched.extend(enabled.into_iter().flatten().map(|(id, on)| (id.as_str(), on != &Value::Bool(false))));
        for (name, market) in value.get("extraKnownMarketplaces").and_then(Value::as_object).into_iter().flatten() {
            if !markets.contains_key(name) {
                markets.insert(name.clone(), market.clone());
                of_project.extend((!is_own).then_some(name.as_str()));
            }
        }
    }
    let installed = json(&config.join("plugins/installed_plugins.json"));
    let on = switched.into_iter().filter(|(_, on)| *on).map(|(id, _)| id);
    on.filter_map(|id| {
        let installed = installed.get("plugins").and_then(|plugins| plugins.get(id));
        let root = in_its_marketplace(id, &markets).or_else(|| install_path(installed?, project))?;
        let hooks = Registered::all_in(&Value::Object(json(&root.join("hooks/hooks.json"))));
        let of_project = id.split_once('@').is_some_and(|(_, market)| of_project.contains(&market));
        Some(Plugin { id: id.to_owned(), root, of_project, hooks })
    })
    .collect()
}

/// A plugin of a marketplace that is a folder runs in that folder, not from the copy that was installed.
fn in_its_marketplace(id: &str, markets: &Map<String, Value>) -> Option<PathBuf> {
    let (name, market) = id.split_once('@')?;
    let folder = PathBuf::from(markets.get(market)?.get("source").filter(|s| s["source"] == "directory")?.get("path")?.as_str()?);
    let offers = json(&folder.join(".claude-plugin/marketplace.json"));
    let plugin = offers.get("plugins")?.as_array()?.iter().find(|plugin| plugin["name"] == name)?;
    Some(folder.join(plugin.get("source")?.as_str()?))
}

/// The copy of an installed plugin. A record can be for one project only.
fn install_path(record: &Value, project: &Path) -> Option<PathBuf> {
    let path = |record: &Value| record.get("installPath").and_then(Value::as_str).map(PathBuf::from);
    let Some(records) = record.as_array() else { return path(record) };
    let of_project = |r: &&Value| r.get("projectPath").and_then(Value::as_str).is_none_or(|p| Path::new(p) == project);
    records.iter().find(of_project).or_else(|| records.first()).and_then(path)
}

/// A file of the client's own; empty, if it cannot be read.
fn json(path: &Path) -> Map<String, Value> {
    let text = file_change::read(path).ok().flatten().unwrap_or_default();
    match as_the_client_reads(&text) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
