//! A client in a project whose branch lies on a scripted GitHub, with the real `gh` on its path.

use ralph_testkit::{Gh, GitHub, ModelServer, Origin, Skip, Tui, Version};

use super::Bed;

/// The branch that is worked on.
pub(crate) const BRANCH: &str = "feature/login";

pub(crate) struct Hubbed {
    pub(crate) bed: Bed,
    pub(crate) hub: GitHub,
}

impl std::ops::Deref for Hubbed {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.bed
    }
}

impl Hubbed {
    /// A project that `ralph init` set up, with these settings, on a branch of its own that nobody has pushed yet.
    pub(crate) fn new(version: Version, settings: &str) -> Result<Self, Skip> {
        let gh = Gh::installed()?;
        let mut bed = Bed::with_init(version, "--project")?;
        bed.path = format!("{}:{}", gh.binary.parent().unwrap().display(), bed.path);
        let hub = GitHub::start("acme/widget");
        bed.project.write(".gitignore", ".claude/\n.ralph/\n.quality-gate-passed\n.layer2-evidence.md\n");
        bed.project.write("ralph.toml", settings);
        bed.project.commit_all("begin");
        Origin::at(&hub, &bed.project).branch(BRANCH);
        Ok(Self { bed, hub })
    }

    /// The way to the hub, and past its proxy to the model.
    pub(crate) fn env(&self) -> impl IntoIterator<Item = (String, String)> {
        self.hub.env().into_iter().chain([("NO_PROXY".to_owned(), "127.0.0.1".to_owned())])
    }

    /// The client in a terminal, with further arguments.
    pub(crate) fn open(&self, server: &ModelServer, args: &[&str]) -> Tui {
        let run = self.client.interactive(&self.project, server).env("PATH", &self.path).args(args);
        let run = self.env().into_iter().fold(run, |run, (name, value)| run.env(name, value));
        run.skip_permissions().size(50, 150).start()
    }
}
