//! The workflows of this repository pass the real linter (u8).

use std::path::{Path, PathBuf};

use ralph_testkit::{actionlint, or_skip};

use crate::common::Bed;

#[test]
fn u8_the_workflows_pass_their_linter() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.github/workflows");
    let files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 2, "{files:?}");
    let mut found = or_skip!(actionlint(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>()));
    // This build of the linter is older than some of the machines, and one permission, that GitHub has.
    found.retain(|(kind, what)| kind != "runner-label" && !(kind == "permissions" && what.contains("\"attestations\"")));
    assert_eq!(found, [], "actionlint");
    // It does find mistakes.
    let bed = Bed::new();
    let broken =
        bed.write("broken.yml", "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ nothing.here }}\n");
    let found = or_skip!(actionlint(&[&broken]));
    assert!(found.iter().any(|(kind, what)| kind == "expression" && what.contains("nothing")), "{found:?}");
}
