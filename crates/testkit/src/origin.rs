//! A place to push to: a bare repository that git reaches on disk, while `gh` sees a repository of GitHub's.

use std::path::{Path, PathBuf};

use crate::github::GitHub;
use crate::project::Project;

/// The `origin` of a project.
#[derive(Debug)]
pub struct Origin<'a> {
    project: &'a Project,
    bare: PathBuf,
}

impl<'a> Origin<'a> {
    /// Gives the project's repository an origin, `owner/name` at GitHub, and pushes `main` there.
    pub fn of(project: &'a Project, repository: &str) -> Self {
        let bare = place_of(project);
        let place = bare.to_str().unwrap();
        project.git(&["init", "--quiet", "--bare", "--initial-branch=main", place]);
        project.git(&["remote", "add", "origin", &format!("https://github.com/{repository}.git")]);
        project.git(&["config", "remote.origin.pushurl", place]);
        project.git(&["push", "--quiet", "--set-upstream", "origin", "main"]);
        Self { project, bare }
    }

    /// The same, and the hub's branches are those of this origin.
    pub fn at(hub: &GitHub, project: &'a Project) -> Self {
        let origin = Self::of(project, &hub.repository());
        hub.follow(&origin.bare);
        origin
    }

    /// The origin that the project was given before.
    pub fn known(project: &'a Project) -> Self {
        Self { project, bare: place_of(project) }
    }

    pub fn bare(&self) -> &Path {
        &self.bare
    }

    /// Starts a branch here and stays on it.
    pub fn branch(&self, name: &str) {
        self.project.git(&["checkout", "--quiet", "-b", name]);
    }

    /// Commits a file and returns the commit.
    pub fn commit(&self, file: &str, text: &str) -> String {
        self.project.write(file, text);
        self.project.commit_all(&format!("change {file}"));
        self.head()
    }

    /// The commit that is checked out.
    pub fn head(&self) -> String {
        self.project.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// Pushes the branch that is checked out and returns its commit.
    pub fn push(&self) -> String {
        self.project.git(&["push", "--quiet", "--force", "--set-upstream", "origin", "HEAD"]);
        self.head()
    }
}

fn place_of(project: &Project) -> PathBuf {
    project.dir().with_file_name("origin.git")
}
