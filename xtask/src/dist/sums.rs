//! SHA256SUMS, in the form that `sha256sum --check` reads.

use std::{fs, path::Path};

use sha2::{Digest, Sha256};

use crate::Result;

pub(crate) const FILE: &str = "SHA256SUMS";

/// A file and its checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) file: String,
    pub(crate) hex: String,
}

/// The checksums of all files in a folder but [`FILE`] itself, by name.
pub(crate) fn of(folder: &Path) -> Result<Vec<Sum>> {
    let mut sums = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && file != FILE {
            let hex = hex(&fs::read(entry.path())?);
            sums.push(Sum { file, hex });
        }
    }
    sums.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(sums)
}

pub(crate) fn text(sums: &[Sum]) -> String {
    let lines: Vec<String> = sums.iter().map(|sum| format!("{}  {}\n", sum.hex, sum.file)).collect();
    lines.concat()
}

fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.concat()
}
