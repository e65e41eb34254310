//! `install.sh`: from a folder and over HTTP, with the wrong checksum, with none, and where it may not write.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use super::{Outcome, Package, ensure, fails, has, is_this_version, sealed, succeeds};
use crate::{Result, dist::sums};

/// Tools that the installer needs, without any that downloads.
const TOOLS: &[&str] =
    &["sh", "uname", "mktemp", "rm", "grep", "wc", "cp", "cut", "sha256sum", "tar", "gzip", "mkdir", "chmod", "mv", "cat"];

/// A person's home.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("tmp"))?;
        Ok(Home { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn installer(&self, package: &Package, base: &str) -> Command {
        let mut command = sealed("/bin/sh", self.path());
        command.arg(package.file("install.sh")).env("RALPH_INSTALL_BASE", base).env("TMPDIR", self.path().join("tmp"));
        command
    }

    fn ralph(&self) -> PathBuf {
        self.path().join(".local/bin/ralph")
    }

    /// Nothing was installed, and nothing is left in the temporary folder.
    fn is_clean(&self) -> Result<()> {
        ensure(!self.ralph().exists() && !self.ralph().with_file_name("ralph-fleet").exists(), || "it installed the program".to_owned())?;
        ensure(fs::read_dir(self.path().join("tmp"))?.next().is_none(), || "temporary files are left".to_owned())
    }
}

pub(super) fn installs(package: &Package) -> Result<Outcome> {
    let shown = package.out.display().to_string();
    for base in [shown.clone(), format!("file://{shown}")] {
        let home = Home::new()?;
        let said = succeeds(&mut home.installer(package, &base))?;
        is_this_version(|| sealed(home.ralph(), home.path()))?;
        ensure(said.contains("is not on your PATH"), || format!("it says {said:?}"))?;
        ensure(fs::read_dir(home.path().join("tmp"))?.next().is_none(), || "temporary files are left".to_owned())?;
        // Again, over the old one, and elsewhere.
        let bin = home.path().join(".local/bin");
        let said = succeeds(home.installer(package, &base).env("PATH", format!("/usr/bin:/bin:{}", bin.display())))?;
        ensure(!said.contains("not on your PATH"), || format!("it says {said:?}"))?;
        ensure(fs::read_dir(&bin)?.count() == 2, || "more or less than the programs".to_owned())?;
        succeeds(home.installer(package, &base).args(["--to", "else where"]))?;
        is_this_version(|| sealed(home.path().join("else where/ralph"), home.path()))?;
    }
    if has("shellcheck") {
        succeeds(Command::new("shellcheck").arg(package.file("install.sh")))?;
    }
    Ok(Outcome::Holds)
}

pub(super) fn downloads(package: &Package) -> Result<Outcome> {
    if !has("curl") || !has("wget") {
        return Ok(Outcome::Skipped("curl and wget are not both installed"));
    }
    let base = serve(package.out.clone())?;
    for client in ["curl", "wget"] {
        let home = Home::new()?;
        let tools = tools(&home, &[client])?;
        succeeds(home.installer(package, &base).env("PATH", &tools))?;
        is_this_version(|| sealed(home.ralph(), home.path()))?;
        let home = Home::new()?;
        let said = fails(home.installer(package, &format!("{base}/nowhere")).env("PATH", &tools))?;
        ensure(said.contains("cannot download"), || format!("it says {said:?}"))?;
        home.is_clean()?;
    }
    let home = Home::new()?;
    let tools = tools(&home, &[])?;
    let said = fails(home.installer(package, &base).env("PATH", &tools))?;
    ensure(said.contains("curl or wget is needed"), || format!("it says {said:?}"))?;
    home.is_clean()?;
    Ok(Outcome::Holds)
}

/// A folder with links to these tools and to what the installer needs in any case.
fn tools(home: &Home, more: &[&str]) -> Result<PathBuf> {
    let folder = home.path().join("tools");
    fs::create_dir_all(&folder)?;
    for tool in TOOLS.iter().chain(more) {
        let real = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(tool)).find(|path| path.exists());
        let real = real.ok_or_else(|| format!("{tool} is missing"))?;
        succeeds(Command::new("ln").arg("-s").arg(real).arg(folder.join(tool)))?;
    }
    Ok(folder)
}

/// Serves the files of a folder on this machine until the end of the process, and says where.
fn serve(folder: PathBuf) -> Result<String> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let base = format!("http://{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines().map_while(std::result::Result::ok);
            let path = lines.next().and_then(|line| Some(line.split(' ').nth(1)?.trim_start_matches('/').to_owned()));
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let body = path.and_then(|path| fs::read(folder.join(path)).ok());
            let head = if body.is_some() { "200 OK" } else { "404 Not Found" };
            let body = body.unwrap_or_default();
            let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = (&stream).write_all(head.as_bytes()).and_then(|()| (&stream).write_all(&body));
        }
    });
    Ok(base)
}

/// A copy of what the installer takes, with other checksums.
fn with_sums(package: &Package, home: &Home, text: &str) -> Result<String> {
    let base = home.path().join("base");
    fs::create_dir(&base)?;
    let archive = package.archive();
    fs::copy(&archive, base.join(archive.file_name().unwrap_or_default()))?;
    fs::write(base.join(sums::FILE), text)?;
    Ok(base.display().to_string())
}

pub(super) fn wrong_checksum(package: &Package) -> Result<Outcome> {
    let home = Home::new()?;
    let wrong = format!("{}  {}.tar.gz\n", "0".repeat(64), package.target.archive());
    let base = with_sums(package, &home, &wrong)?;
    let said = fails(&mut home.installer(package, &base))?;
    ensure(said.contains("does not have the checksum"), || format!("it says {said:?}"))?;
    home.is_clean()?;
    Ok(Outcome::Holds)
}

pub(super) fn no_checksum(package: &Package) -> Result<Outcome> {
    let home = Home::new()?;
    let base = with_sums(package, &home, "")?;
    let said = fails(&mut home.installer(package, &base))?;
    ensure(said.contains("has no ralph for"), || format!("it says {said:?}"))?;
    fs::remove_file(Path::new(&base).join(sums::FILE))?;
    let said = fails(&mut home.installer(package, &base))?;
    ensure(said.contains("cannot read"), || format!("it says {said:?}"))?;
    home.is_clean()?;
    Ok(Outcome::Holds)
}

/// Not by permissions, which do not bind root: below a file there is no folder, and `/proc` takes none.
pub(super) fn read_only(package: &Package) -> Result<Outcome> {
    let home = Home::new()?;
    let base = package.out.display().to_string();
    fs::write(home.path().join("file"), "")?;
    let said = fails(home.installer(package, &base).args(["--to", "file/bin"]))?;
    ensure(said.contains("cannot make the folder"), || format!("it says {said:?}"))?;
    let said = fails(home.installer(package, &base).args(["--to", "/proc"]))?;
    ensure(said.contains("cannot write into /proc"), || format!("it says {said:?}"))?;
    home.is_clean()?;
    Ok(Outcome::Holds)
}
