//! Ways in which ralph comes to a client: the plugin, installed by the client itself, and `ralph init`.

use std::fs;
use std::path::{Path, PathBuf};

use ralph_testkit::project::PATH;
use ralph_testkit::{Client, Output, Project, Skip, Version};

use super::{Bed, RALPH};

/// The checkout that the tests were built from.
pub(crate) const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

impl Bed {
    /// A project, and a home, that know nothing of ralph. The program is not on the PATH.
    pub(crate) fn bare(version: Version) -> Result<Self, Skip> {
        let client = Client::installed(version)?;
        Ok(Self { client, project: Project::new(), path: PATH.to_owned() })
    }

    /// The same with the program on the PATH, as an installed one.
    pub(crate) fn with_program(version: Version) -> Result<Self, Skip> {
        let mut bed = Self::bare(version)?;
        let bin = bed.project.home().join("bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(RALPH, bin.join("ralph")).unwrap();
        bed.path = format!("{}:{PATH}", bin.display());
        Ok(bed)
    }

    /// With the program on the PATH and the plugin of the checkout installed for the user.
    pub(crate) fn with_plugin(version: Version) -> Result<Self, Skip> {
        let bed = Self::with_program(version)?;
        bed.install(&bed.checkout());
        Ok(bed)
    }

    /// With the program on the PATH, and set up by `ralph init`.
    pub(crate) fn with_init(version: Version, scope: &str) -> Result<Self, Skip> {
        let bed = Self::with_program(version)?;
        bed.ralph_ok(&["init", scope]);
        Ok(bed)
    }

    /// Runs a sub-command of the client's; it has to succeed.
    pub(crate) fn claude_ok(&self, args: &[&str]) -> String {
        let output: Output = self.client.run(&self.project).env("PATH", &self.path).args(args).output();
        assert!(output.success(), "claude {args:?}: {output:?}");
        output.stdout
    }

    /// The plugin and its marketplace, as they are in the checkout. A marketplace that is a folder runs in place, so it is a copy.
    pub(crate) fn checkout(&self) -> PathBuf {
        let copy = self.project.home().join("checkout");
        for part in [".claude-plugin", "plugin"] {
            copy_folder(&Path::new(SOURCE).join(part), &copy.join(part));
        }
        copy
    }

    /// Has the client install the plugin that a marketplace folder offers.
    pub(crate) fn install(&self, marketplace: &Path) {
        self.claude_ok(&["plugin", "marketplace", "add", marketplace.to_str().unwrap()]);
        self.claude_ok(&["plugin", "install", "ralph@ralph-loop"]);
    }

    /// The same by the lines of docs/install.md, in the checkout.
    pub(crate) fn install_as_the_page_says(&self, checkout: &Path) {
        let page = fs::read_to_string(format!("{SOURCE}/docs/install.md")).unwrap();
        let lines: Vec<&str> = page.lines().filter_map(|line| line.trim_start().strip_prefix("claude ")).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        for line in lines {
            let out = self.client.run(&self.project).args(line.split(' ')).cwd(checkout).output();
            assert_eq!(out.code, Some(0), "claude {line}: {out:?}");
        }
    }

    /// Every file named `name` in the project, the home or anywhere beside them.
    pub(crate) fn find(&self, name: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.project.dir().parent().unwrap().to_owned()];
        while let Some(folder) = folders.pop() {
            for path in super::files_in(folder) {
                if path.file_name().is_some_and(|file| file == name) {
                    found.push(path);
                } else if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                }
            }
        }
        found
    }

    /// Forgets the loops that have ended, so that the next one is the only one.
    pub(crate) fn forget(&self) {
        assert_eq!(self.loop_file(), None, "no loop is live");
        fs::remove_dir_all(self.project.path(".ralph")).unwrap();
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in super::files_in(from.to_owned()) {
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}
