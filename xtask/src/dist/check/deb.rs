//! The Debian package: unpacked, installed into a root of its own, looked at by lintian.

use std::{fs, process::Command};

use super::{Outcome, Package, ensure, has, is_this_version, sealed, succeeds};
use crate::{Result, dist::VERSION};

fn file(package: &Package) -> Option<std::path::PathBuf> {
    Some(package.file(&format!("ralph-loop_{VERSION}-1_{}.deb", package.target.deb?)))
}

pub(super) fn installs(package: &Package) -> Result<Outcome> {
    let Some(deb) = file(package).filter(|_| has("dpkg-deb")) else { return Ok(Outcome::Skipped("dpkg is not installed")) };
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("root");
    succeeds(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&root))?;
    is_this_version(|| sealed(root.join("usr/bin/ralph"), folder.path()))?;
    let field = |name: &str| succeeds(Command::new("dpkg-deb").arg("-f").arg(&deb).arg(name));
    ensure(field("Version")?.trim() == format!("{VERSION}-1"), || "another version".to_owned())?;
    for place in [
        "man/man1/ralph.1.gz",
        "man/man1/ralph-start.1.gz",
        "man/man1/ralph-fleet.1.gz",
        "bash-completion/completions/ralph",
        "zsh/vendor-completions/_ralph",
        "fish/vendor_completions.d/ralph.fish",
        "doc/ralph-loop/copyright",
        "doc/ralph-loop/changelog.gz",
    ] {
        ensure(root.join("usr/share").join(place).is_file(), || format!("/usr/share/{place} is missing"))?;
    }
    if has("man") {
        let page = root.join("usr/share/man/man1/ralph.1.gz");
        ensure(succeeds(sealed("/usr/bin/man", folder.path()).arg("-l").arg(page))?.contains("ralph start"), || "an odd page".to_owned())?;
    }
    by_dpkg(&deb)
}

/// With dpkg's own list of what is installed, in a root of its own.
fn by_dpkg(deb: &std::path::Path) -> Result<Outcome> {
    let root = tempfile::tempdir()?;
    let admin = root.path().join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(admin.join(folder))?;
    }
    fs::write(admin.join("status"), "")?;
    let dpkg = || {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", root.path().display())).args(["--force-not-root", "--force-script-chrootless", "--log=/dev/null"]);
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    };
    let ralph = root.path().join("usr/bin/ralph");
    succeeds(dpkg().arg("--install").arg(deb))?;
    is_this_version(|| sealed(&ralph, root.path()))?;
    succeeds(dpkg().args(["--verify", "ralph-loop"]))?;
    succeeds(dpkg().args(["--remove", "ralph-loop"]))?;
    ensure(!ralph.exists() && !ralph.with_file_name("ralph-fleet").exists(), || "removed, and still there".to_owned())?;
    Ok(Outcome::Holds)
}

pub(super) fn lintian(package: &Package) -> Result<Outcome> {
    let Some(deb) = file(package).filter(|_| has("lintian")) else { return Ok(Outcome::Skipped("lintian is not installed")) };
    // What a package outside of Debian does not have: a bug in Debian that asks for it.
    let mut command = Command::new("lintian");
    command.args(["--fail-on", "error,warning", "--suppress-tags", "initial-upload-closes-no-bugs", "--allow-root"]).arg(deb);
    succeeds(&mut command)?;
    Ok(Outcome::Holds)
}
