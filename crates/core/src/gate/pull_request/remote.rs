//! Where a checkout comes from: its branch, its remotes, and the repositories behind their addresses.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A repository on a forge.
#[derive(Debug, Clone, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Repository {
    pub host: String,
    pub owner: String,
    pub name: String,
}

/// Forges do not tell upper from lower case.
impl PartialEq for Repository {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
        same(&self.host, &other.host) && same(&self.owner, &other.owner) && same(&self.name, &other.name)
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.owner, self.name)
    }
}

impl From<Repository> for String {
    fn from(repository: Repository) -> Self {
        repository.to_string()
    }
}

impl TryFrom<String> for Repository {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (host, path) = text.split_once('/').ok_or_else(|| format!("{text} is no repository"))?;
        Repository::of_path(host, path).ok_or_else(|| format!("{text} is no repository"))
    }
}

impl Repository {
    /// The repository behind a remote's address; `None`: it is on no forge.
    pub fn of_url(url: &str) -> Option<Self> {
        let (host, path) = match url.split_once("://") {
            Some(("http" | "https" | "ssh" | "git" | "git+ssh" | "git+https", rest)) => rest.split_once('/')?,
            Some(_) => return None,
            // As scp has it; one letter is a drive of Windows.
            None => url.split_once(':').filter(|(host, _)| !host.contains('/') && host.len() > 1)?,
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let host = host.split_once(':').map_or(host, |(host, _)| host);
        Repository::of_path(host, path)
    }

    fn of_path(host: &str, path: &str) -> Option<Self> {
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let (owner, name) = path.rsplit_once('/')?;
        // They become parts of addresses, and of lines that people are told to type.
        let is_plain = |text: &str, marks: &str| {
            let is_name = |part: &str| !part.is_empty() && !part.starts_with('-') && !part.chars().all(|c| c == '.');
            text.split('/').all(is_name) && text.chars().all(|c| c.is_alphanumeric() || marks.contains(c))
        };
        let host = match host.to_ascii_lowercase().as_str() {
            "ssh.github.com" | "www.github.com" => "github.com".to_owned(),
            // A name of one's own for it, for another key.
            alias if alias.starts_with("github") && !alias.contains('.') => "github.com".to_owned(),
            host => host.to_owned(),
        };
        let is_whole = is_plain(&host, ".-") && is_plain(owner, "._-~/") && is_plain(name, "._-~+");
        is_whole.then(|| Repository { host, owner: owner.to_owned(), name: name.to_owned() })
    }

    /// The other forge that it is on, if the address tells.
    pub fn other_forge(&self) -> Option<&'static str> {
        const OTHERS: [(&str, &str); 8] = [
            ("gitlab", "GitLab"),
            ("bitbucket", "Bitbucket"),
            ("codeberg", "Codeberg"),
            ("gitea", "Gitea"),
            ("forgejo", "Forgejo"),
            ("dev.azure.com", "Azure DevOps"),
            ("visualstudio.com", "Azure DevOps"),
            ("sr.ht", "SourceHut"),
        ];
        OTHERS.iter().find(|(sign, _)| self.host.contains(sign)).map(|(_, name)| *name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    pub name: String,
    /// Where it is read from, and where it is pushed to; `None`: to no forge.
    pub fetch: Option<Repository>,
    pub push: Option<Repository>,
    /// The note of `gh repo set-default`: `base`, or another repository.
    pub resolved: Option<String>,
}

/// The checkout in a project's folder, as git sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkout {
    /// `None`: no branch is checked out.
    pub branch: Option<String>,
    /// The branch's name where it is pushed to, if that is another name.
    pub pushed_as: Option<String>,
    /// `None`: there is no commit yet.
    pub head: Option<String>,
    pub default_branch: Option<String>,
    pub remotes: Vec<Remote>,
    /// Files that git knows and that differ from the commit.
    pub changed: u64,
}

impl Checkout {
    /// The branch whose pull requests may be meant: none if the default branch is checked out.
    pub fn work_branch(&self) -> Option<&str> {
        let branch = self.branch.as_deref()?;
        if self.is_default(branch) {
            return None;
        }
        // A branch that was made from the default one may still follow it.
        Some(self.pushed_as.as_deref().filter(|name| !self.is_default(name)).unwrap_or(branch))
    }

    fn is_default(&self, branch: &str) -> bool {
        match &self.default_branch {
            Some(default) => default == branch,
            None => matches!(branch, "main" | "master"),
        }
    }

    /// The repository in which pull requests are looked for: the one that the person chose with gh, else the first in the order that gh has.
    pub fn base(&self) -> Option<Repository> {
        let chosen = self.remotes.iter().find_map(|remote| match remote.resolved.as_deref()? {
            "base" => remote.fetch.clone(),
            other => {
                let host = &remote.fetch.as_ref()?.host;
                let full = if other.matches('/').count() > 1 { other.to_owned() } else { format!("{host}/{other}") };
                Repository::try_from(full).ok()
            }
        });
        let rank = |remote: &&Remote| ["upstream", "github", "origin"].iter().position(|name| *name == remote.name).unwrap_or(3);
        chosen.or_else(|| self.remotes.iter().filter(|remote| remote.fetch.is_some()).min_by_key(rank)?.fetch.clone())
    }

    /// All repositories that it is read from or pushed to.
    pub fn repositories(&self) -> Vec<Repository> {
        let mut all: Vec<Repository> = Vec::new();
        for repository in self.remotes.iter().flat_map(|remote| [&remote.fetch, &remote.push]).flatten().chain(&self.base()) {
            if !all.contains(repository) {
                all.push(repository.clone());
            }
        }
        all
    }

    /// The remote that a new branch would be pushed to.
    pub(crate) fn push_remote(&self) -> &str {
        let named = |name: &str| self.remotes.iter().find(|remote| remote.name == name);
        named("origin").or(self.remotes.first()).map_or("origin", |remote| &remote.name)
    }
}
