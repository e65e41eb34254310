//! A package for Debian and its relatives: an `ar` archive with two tar archives in it, and everything in Debian's places.

use std::fmt::Write;

use super::{
    REPOSITORY, VERSION,
    archive::{self, Folders},
    contents::{Contents, File},
    targets::Target,
};
use crate::Result;

/// Debian wants an address that a person can write to.
const MAINTAINER: &str = "The ralph-loop contributors <ralph-loop@users.noreply.github.com>";

const OVERRIDES: &str = "ralph-loop: statically-linked-binary [usr/bin/ralph]
ralph-loop: statically-linked-binary [usr/bin/ralph-fleet]
";

/// The file's name, and its bytes.
pub(crate) fn of(target: &Target, architecture: &str, contents: &Contents) -> Result<(String, Vec<u8>)> {
    let files = files(target, contents)?;
    let control = vec![File::text("./control", control(architecture, &files))];
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", archive::tar_gz(control, Folders::Named)?),
        ("data.tar.gz", archive::tar_gz(files, Folders::Named)?),
    ];
    Ok((format!("ralph-loop_{VERSION}-1_{architecture}.deb"), ar(&members)))
}

fn files(target: &Target, contents: &Contents) -> Result<Vec<File>> {
    const DOCUMENTS: &str = "./usr/share/doc/ralph-loop";
    let mut files = vec![
        File::text(format!("{DOCUMENTS}/copyright"), copyright(contents)),
        File::text(format!("{DOCUMENTS}/changelog.Debian.gz"), archive::gzip(changelog().as_bytes())?),
        // A static program is the point: it runs wherever the kernel does.
        File::text("./usr/share/lintian/overrides/ralph-loop", OVERRIDES),
    ];
    files.extend(contents.programs_in("./usr/bin/", target));
    for page in &contents.pages {
        files.push(File::text(format!("./usr/share/man/man1/{}.gz", page.path), archive::gzip(&page.bytes)?));
    }
    for (shell, script) in &contents.completions {
        let place = match *shell {
            "bash" => "bash-completion/completions/ralph",
            "zsh" => "zsh/vendor-completions/_ralph",
            _ => "fish/vendor_completions.d/ralph.fish",
        };
        files.push(File::text(format!("./usr/share/{place}"), script.bytes.clone()));
    }
    for document in &contents.documents {
        match document.path.as_str() {
            // Both licences are in the copyright file.
            path if path.starts_with("LICENSE") => {}
            "CHANGELOG.md" => files.push(File::text(format!("{DOCUMENTS}/changelog.gz"), archive::gzip(&document.bytes)?)),
            path => files.push(File::text(format!("{DOCUMENTS}/{path}"), document.bytes.clone())),
        }
    }
    Ok(files)
}

fn control(architecture: &str, files: &[File]) -> String {
    let kilobytes: usize = files.iter().map(|file| file.bytes.len().div_ceil(1024)).sum();
    format!(
        "Package: ralph-loop
Version: {VERSION}-1
Architecture: {architecture}
Maintainer: {MAINTAINER}
Installed-Size: {kilobytes}
Recommends: git
Section: devel
Priority: optional
Homepage: {REPOSITORY}
Description: keeps a coding agent working until the work is proven done
 The agent tries to stop; ralph, called as its stop hook, decides in about a
 millisecond: let it stop, or send it back with the reason. What has to hold
 before the loop may end are commands, files and lists of your own.
 .
 Static programs, plain files, no daemon.
"
    )
}

/// In the form that Debian's tools read. MIT is quoted in full; Debian has the other one on every machine.
fn copyright(contents: &Contents) -> String {
    let mit = contents.documents.iter().find(|document| document.path == "LICENSE-MIT");
    let mit = mit.map(|document| String::from_utf8_lossy(&document.bytes).into_owned()).unwrap_or_default();
    let mut lines = mit.lines().filter(|line| !line.is_empty());
    let holder = lines.find(|line| line.starts_with("Copyright")).unwrap_or("Copyright the ralph-loop contributors");
    let holder = holder.trim_start_matches("Copyright").trim_start_matches(" (c)").trim();
    let indented = mit.lines().skip_while(|line| !line.starts_with("Permission")).fold(String::new(), |mut text, line| {
        let _ = writeln!(text, " {}", if line.is_empty() { "." } else { line });
        text
    });
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ralph-loop
Source: {REPOSITORY}

Files: *
Copyright: {holder}
License: Apache-2.0 or Expat

License: Apache-2.0
 On Debian systems the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.

License: Expat
{indented}"
    )
}

/// Debian's own list of changes is about the packaging.
fn changelog() -> String {
    format!(
        "ralph-loop ({VERSION}-1) unstable; urgency=medium

  * Version {VERSION}; its changes are in changelog.gz.

 -- {MAINTAINER}  Thu, 01 Jan 1970 00:00:00 +0000
"
    )
}

/// The common `ar` format: a header of 60 characters before each member, and members at even places.
fn ar(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        out.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, "100644", bytes.len()).bytes());
        out.extend(bytes);
        if bytes.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}
