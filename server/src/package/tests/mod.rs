//! Archives as tools make them, and archives as only an attacker makes them.

mod edits;
mod hostile;
mod random;
mod usual;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;
use crate::model::{Code, Runtime};

/// The entry of a Python function whose handler is in this module.
fn python(module: &str) -> Entry {
    Entry::of(&format!("{module}.handler"), Runtime::Python3)
}

/// A directory that must be empty again after a refusal, in a directory that must not change.
struct Place {
    outer: TempDir,
}

impl Place {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        fs::create_dir(outer.path().join("dest")).unwrap();
        Self { outer }
    }

    fn dest(&self) -> std::path::PathBuf {
        self.outer.path().join("dest")
    }

    fn unpack(&self, code: Code) -> Result<Unpacked, PackageError> {
        let outcome = unpack(&code, None, &python("main"), &self.dest());
        assert_eq!(fs::read_dir(self.outer.path()).unwrap().count(), 1);
        if outcome.is_err() {
            assert_eq!(fs::read_dir(self.dest()).unwrap().count(), 0);
        }
        outcome
    }

    fn refuse(&self, zip: Vec<u8>) -> PackageError {
        self.unpack(Code::Zip(zip.into())).unwrap_err()
    }
}

/// Unsealed, so that the directory can be removed whoever runs the tests.
impl Drop for Place {
    fn drop(&mut self) {
        let _ = tree::clear(&self.dest());
    }
}

fn stored() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Stored)
}

fn deflated() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Deflated)
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, deflated()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// One entry written by hand, with whatever a header can say.
#[derive(Clone)]
struct Raw<'a> {
    name: &'a [u8],
    data: &'a [u8],
    method: u16,
    flags: u16,
    crc: Option<u32>,
    size: Option<u32>,
    mode: u32,
}

impl<'a> Raw<'a> {
    fn new(name: &'a [u8]) -> Self {
        Self {
            name,
            data: b"x = 1",
            method: 0,
            flags: 0,
            crc: None,
            size: None,
            mode: 0o100_644,
        }
    }
}

fn raw_zip(entries: &[Raw<'_>]) -> Vec<u8> {
    raw_zip_counting(entries, entries.len() as u16)
}

/// Local headers, data, directory, end record, straight from APPNOTE 4.3.
fn raw_zip_counting(entries: &[Raw<'_>], count: u16) -> Vec<u8> {
    let mut file = Vec::new();
    let mut directory = Vec::new();
    for entry in entries {
        let offset = file.len() as u32;
        let mut common = Vec::new();
        for half in [20, entry.flags, entry.method, 0, 0x21] {
            common.extend(half.to_le_bytes());
        }
        let crc = entry.crc.unwrap_or_else(|| crc32(entry.data));
        let packed = entry.data.len() as u32;
        for word in [crc, packed, entry.size.unwrap_or(packed)] {
            common.extend(word.to_le_bytes());
        }
        common.extend((entry.name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&common);
        file.extend(entry.name);
        file.extend(entry.data);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend((entry.mode << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.name);
    }
    let start = file.len() as u32;
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count.to_le_bytes());
    file.extend(count.to_le_bytes());
    file.extend((directory.len() as u32).to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0, 0]);
    file
}

/// CRC-32 as zip uses it, bit by bit.
fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// Relative path to mode and content of everything below.
fn listing(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let content = match meta.is_dir() {
                true => Vec::new(),
                false => fs::read(&path).unwrap(),
            };
            all.insert(name, (meta.permissions().mode() & 0o7777, content));
            if meta.is_dir() {
                waiting.push(path);
            }
        }
    }
    all
}

/// Raw deflate, taken out of an archive made by the crate.
fn deflate(data: &[u8]) -> Vec<u8> {
    let zip = zip_of(&[("d", data)]);
    let mut archive = zip::ZipArchive::new(Cursor::new(&zip)).unwrap();
    let entry = archive.by_index_raw(0).unwrap();
    let start = entry.data_start().unwrap() as usize;
    zip[start..start + entry.compressed_size() as usize].to_vec()
}
