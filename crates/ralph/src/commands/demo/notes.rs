//! The project of the demo: three pages of notes with broken links, and a check of its own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ralph_engine::sys::files;

use crate::exit::{Done, Failure};

/// One link leads to a misspelled page, one to a page that was renamed, and one to a page that does not exist.
const PAGES: [(&str, &str); 3] = [
    ("index.md", "# Notes\n\n- [How to set it up](setup.md)\n- [How to use it](usage.md)\n"),
    ("setup.md", "# Set-up\n\nUnpack it and run it. Then go back to [the start](home.md).\n"),
    ("guide.md", "# Guide\n\nIt explains itself, see [the start](index.md). Else there is [the FAQ](faq.md).\n"),
];

/// The check that must pass: it names every link that leads to no page.
const CHECK: &str = r#"dead=0
for page in *.md; do
    for link in $(grep -o '([a-z]*\.md)' "$page" | tr -d '()'); do
        [ -e "$link" ] || { echo "error: $page links to $link, which is not there"; dead=1; }
    done
done
exit $dead
"#;

pub(super) struct Notes {
    folder: PathBuf,
}

impl Notes {
    /// Writes the pages as they are before the agent comes.
    pub(super) fn write(folder: &Path) -> Result<Self, Failure> {
        let notes = Notes { folder: folder.to_owned() };
        fs::create_dir(folder).map_err(|e| Failure::new(format!("cannot make {}: {e}", folder.display())))?;
        for (name, text) in PAGES.into_iter().chain([("check.sh", CHECK)]) {
            notes.save(name, text)?;
        }
        Ok(notes)
    }

    pub(super) fn save(&self, name: &str, text: &str) -> Done {
        let path = self.folder.join(name);
        let cannot = Failure::cannot_write(&path);
        files::replace_private(&path, text.as_bytes()).map_err(cannot)
    }

    /// Leads a link of a page elsewhere.
    pub(super) fn relink(&self, name: &str, from: &str, to: &str) -> Done {
        let text = read(&self.folder.join(name))?;
        self.save(name, &text.replace(&format!("]({from})"), &format!("]({to})")))
    }

    /// How many links lead to no page, as the files are now.
    pub(super) fn broken(&self) -> Result<usize, Failure> {
        let cannot = |e| Failure::new(format!("cannot read {}: {e}", self.folder.display()));
        let mut broken = 0;
        for entry in fs::read_dir(&self.folder).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            if path.extension().is_some_and(|e| e == "md") {
                broken += links(&read(&path)?).filter(|to| !self.folder.join(to).is_file()).count();
            }
        }
        Ok(broken)
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(Failure::cannot_read(path))
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(to, _)| to)
}
