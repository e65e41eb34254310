//! Archives that are the same, byte for byte, wherever they are made: files in order, one time, no owner.

use std::io::Write;

use flate2::{Compression, GzBuilder, write::GzEncoder};
use tar::{Builder, EntryType, Header};

use super::{
    contents::{Contents, File},
    targets::Target,
};
use crate::{Result, cargo};

/// The archive that people download: everything in one folder.
pub(crate) fn of(target: &Target, contents: &Contents) -> Result<Vec<u8>> {
    let folder = target.archive();
    let mut files: Vec<File> = contents.programs_in("", target).collect();
    files.extend(contents.documents.iter().cloned());
    files.extend(contents.pages.iter().map(|page| File::text(format!("man/{}", page.path), page.bytes.clone())));
    files.extend(contents.completions.iter().map(|(_, script)| File::text(format!("completions/{}", script.path), script.bytes.clone())));
    for file in &mut files {
        file.path = format!("{folder}/{}", file.path);
    }
    tar_gz(files, Folders::Implied)
}

/// Whether an archive names the folders of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folders {
    Implied,
    Named,
}

pub(crate) fn tar_gz(mut files: Vec<File>, folders: Folders) -> Result<Vec<u8>> {
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let time = commit_time();
    let mut tar = Builder::new(gzip_to(Vec::new()));
    let mut named = Vec::new();
    for file in files {
        if folders == Folders::Named {
            for folder in folders_of(&file.path) {
                if !named.contains(&folder) {
                    append(&mut tar, EntryType::Directory, &folder, 0o755, time, &[])?;
                    named.push(folder);
                }
            }
        }
        append(&mut tar, EntryType::Regular, &file.path, file.mode, time, &file.bytes)?;
    }
    Ok(tar.into_inner()?.finish()?)
}

fn append(tar: &mut Builder<impl Write>, kind: EntryType, path: &str, mode: u32, time: u64, bytes: &[u8]) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    header.set_size(bytes.len().try_into()?);
    tar.append_data(&mut header, path, bytes)?;
    Ok(())
}

/// The folders above a file, from the top down: `./`, `./usr/`, …
fn folders_of(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(at, _)| path[..=at].to_owned()).collect()
}

pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = gzip_to(Vec::new());
    out.write_all(bytes)?;
    Ok(out.finish()?)
}

/// Without a time and a name in the header.
fn gzip_to(out: Vec<u8>) -> GzEncoder<Vec<u8>> {
    GzBuilder::new().mtime(0).operating_system(3).write(out, Compression::best())
}

/// The time of the last commit: the same for everyone who packs it. `SOURCE_DATE_EPOCH` says otherwise.
fn commit_time() -> u64 {
    let told = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let of_git = || cargo::first_output("git", &["log", "-1", "--format=%ct"]).ok()?.parse().ok();
    told.or_else(of_git).unwrap_or(0)
}
