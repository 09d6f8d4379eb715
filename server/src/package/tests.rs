//! Archives as tools make them, and archives as only an attacker makes them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bytes::Bytes;
use proptest::prelude::*;
use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;
use crate::model::Code;

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
        let outcome = unpack(&code, "main", "py", &self.dest());
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

#[test]
fn inline_source_becomes_the_module() {
    let place = Place::new();
    let unpacked = place.unpack(Code::Inline("x = 1\n".into())).unwrap();
    assert_eq!(unpacked.bytes, 6);
    assert_eq!(unpacked.sha256.len(), 64);
    let files = listing(&place.dest());
    assert_eq!(files["main.py"], (0o444, b"x = 1\n".to_vec()));
    let mode = fs::metadata(place.dest()).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o555);
}

#[test]
fn inline_modules_are_plain_names() {
    let place = Place::new();
    for module in ["", "a.b", "a/b", "../a", "a b", "a\0"] {
        let code = Code::Inline("x".into());
        let error = unpack(&code, module, "py", &place.dest()).unwrap_err();
        assert_eq!(error.code(), "bad_module_name", "{module}");
    }
}

#[test]
fn archives_are_unpacked_and_sealed() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer
        .add_directory("data/", SimpleFileOptions::default())
        .unwrap();
    for (name, mode, content) in [
        ("main.py", 0o644, "import pkg"),
        ("pkg/sub/__init__.py", 0o600, ""),
        ("bin/tool", 0o4755, "#!"),
    ] {
        writer
            .start_file(name, deflated().unix_permissions(mode))
            .unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    let zip = writer.finish().unwrap().into_inner();
    let place = Place::new();
    let unpacked = place.unpack(Code::Zip(zip.into())).unwrap();
    assert_eq!(unpacked.bytes, 12);
    let files = listing(&place.dest());
    let modes: Vec<(&str, u32)> = files.iter().map(|(n, (m, _))| (n.as_str(), *m)).collect();
    assert_eq!(
        modes,
        [
            ("bin", 0o555),
            ("bin/tool", 0o555),
            ("data", 0o555),
            ("main.py", 0o444),
            ("pkg", 0o555),
            ("pkg/sub", 0o555),
            ("pkg/sub/__init__.py", 0o444),
        ]
    );
}

#[test]
fn the_same_code_has_the_same_hash() {
    let hash = |code| Place::new().unpack(code).unwrap().sha256;
    let inline = hash(Code::Inline("x = 1".into()));
    assert_eq!(
        inline,
        hash(Code::Zip(raw_zip(&[Raw::new(b"main.py")]).into()))
    );
    assert_eq!(
        inline,
        hash(Code::Zip(zip_of(&[("main.py", b"x = 1")]).into()))
    );
    let one = zip_of(&[("main.py", b"1"), ("b.py", b"2")]);
    let two = zip_of(&[("b.py", b"2"), ("main.py", b"1")]);
    assert_eq!(hash(Code::Zip(one.into())), hash(Code::Zip(two.into())));
    assert_ne!(inline, hash(Code::Inline("x = 2".into())));
    let executable = Raw {
        mode: 0o100_755,
        ..Raw::new(b"main.py")
    };
    assert_ne!(inline, hash(Code::Zip(raw_zip(&[executable]).into())));
}

#[test]
fn the_module_must_be_there() {
    let place = Place::new();
    let error = place.refuse(zip_of(&[("project/main.py", b""), ("project/x.py", b"")]));
    assert_eq!(error.code(), "missing_module");
    assert_eq!(
        error.to_string(),
        "the archive holds no main.py at its root, which the handler setting asks for; it holds \"project/main.py\", \
         \"project/x.py\""
    );
    for there in [
        "main.py",
        "main/__init__.py",
        "main.abi3.so",
        "main.pyc",
        "./main.py",
    ] {
        let zip = zip_of(&[(there, b"")]);
        assert!(
            Place::new().unpack(Code::Zip(zip.into())).is_ok(),
            "{there}"
        );
    }
    for (module, there) in [("pkg.mod", "pkg/mod.py"), ("pkg/mod", "pkg/mod.py")] {
        let place = Place::new();
        let code = Code::Zip(zip_of(&[(there, b"")]).into());
        assert!(unpack(&code, module, "py", &place.dest()).is_ok());
    }
    let code = Code::Zip(zip_of(&[("main.mjs", b"")]).into());
    assert!(unpack(&code, "main", "js", &Place::new().dest()).is_ok());
}

#[test]
fn hostile_names_are_refused() {
    let place = Place::new();
    for name in [
        &b"../evil.py"[..],
        b"a/../../evil.py",
        b"/tmp/evil.py",
        b"..\\evil.py",
        b"C:evil.py",
        b"a\0.py",
        b"\xff.py",
        b"",
    ] {
        let error = place.refuse(raw_zip(&[Raw::new(b"main.py"), Raw::new(name)]));
        assert_eq!(error.code(), "unsafe_name", "{name:?}: {error}");
    }
}

#[test]
fn links_and_devices_are_refused() {
    let place = Place::new();
    for (mode, kind) in [
        (0o120_777, "symbolic link"),
        (0o020_666, "device"),
        (0o060_666, "device"),
        (0o010_666, "named pipe"),
        (0o140_666, "socket"),
        (0o040_755, "directory with the name of a file"),
    ] {
        let link = Raw {
            mode,
            data: b"/etc/shadow",
            ..Raw::new(b"link")
        };
        let error = place.refuse(raw_zip(&[Raw::new(b"main.py"), link]));
        assert_eq!(error.code(), "special_file");
        assert!(error.to_string().contains(kind), "{error}");
    }
}

#[test]
fn encryption_and_odd_compression_are_refused_by_name() {
    let place = Place::new();
    let encrypted = Raw {
        flags: 1,
        ..Raw::new(b"main.py")
    };
    assert_eq!(place.refuse(raw_zip(&[encrypted])).code(), "encrypted");
    for (method, name) in [
        (12, "bzip2"),
        (14, "LZMA"),
        (93, "Zstandard"),
        (9, "deflate64"),
    ] {
        let odd = Raw {
            method,
            ..Raw::new(b"main.py")
        };
        let error = place.refuse(raw_zip(&[odd]));
        assert_eq!(error.code(), "unsupported_compression");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn one_path_is_one_entry() {
    let place = Place::new();
    for names in [
        [&b"main.py"[..], b"main.py"],
        [b"main.py", b"./main.py"],
        [b"main.py", b"main.py/x"],
        [b"a/b", b"a"],
    ] {
        let entries: Vec<Raw<'_>> = names.iter().map(|name| Raw::new(name)).collect();
        let error = place.refuse(raw_zip(&entries));
        assert_eq!(error.code(), "duplicate_name", "{names:?}: {error}");
    }
}

#[test]
fn too_many_entries_are_refused_before_they_are_read() {
    let names: Vec<String> = (0..60_000).map(|n| format!("f{n}")).collect();
    let entries: Vec<Raw<'_>> = names.iter().map(|n| Raw::new(n.as_bytes())).collect();
    let place = Place::new();
    let error = place.refuse(raw_zip(&entries));
    assert!(matches!(
        error,
        PackageError::TooManyEntries { found: 60_000, .. }
    ));
    // 100,000 and more do not fit the field: Zip64 says 65,535 there.
    let error = place.refuse(raw_zip_counting(&entries, u16::MAX));
    assert!(matches!(
        error,
        PackageError::TooManyEntries { found: 65_535, .. }
    ));
    // A count that lies about the directory is found out.
    let error = place.refuse(raw_zip_counting(&entries[..3], 2));
    assert_ne!(error.code(), "io", "{error}");
    let error = place.refuse(raw_zip_counting(&entries[..3], 4));
    assert_eq!(error.code(), "damaged_archive", "{error}");
}

#[test]
fn bombs_are_refused_by_what_they_unpack_to() {
    let zeros = vec![0u8; 16 << 20];
    let place = Place::new();
    let zip = zip_of(&[("main.py", b""), ("zeros", &zeros)]);
    assert!(zip.len() < zeros.len() / 500);
    assert_eq!(place.refuse(zip.clone()).code(), "decompression_bomb");
    // A header that declares less than there is changes nothing about what is counted.
    let deflated = deflate(&zeros);
    let liar = Raw {
        data: &deflated,
        method: 8,
        size: Some(10),
        crc: Some(crc32(b"")),
        ..Raw::new(b"main.py")
    };
    let error = place.refuse(raw_zip(std::slice::from_ref(&liar)));
    assert!(
        ["decompression_bomb", "damaged_archive"].contains(&error.code()),
        "{error}"
    );
    // Many entries over the same data.
    let mut shared = raw_zip(&[
        Raw {
            size: Some(16 << 20),
            ..liar.clone()
        },
        Raw { name: b"b", ..liar },
    ]);
    let directory_offset = shared.len() - 22 - (46 + 1);
    shared[directory_offset + 42..directory_offset + 46].fill(0);
    let error = place.refuse(shared);
    assert_eq!(error.code(), "decompression_bomb", "{error}");
    // Regular content that happens to compress well is no bomb while it is small.
    let regular = zip_of(&[("main.py", &zeros[..5 << 20])]);
    assert!(Place::new().unpack(Code::Zip(regular.into())).is_ok());
}

#[test]
fn the_total_is_limited() {
    let huge = Raw {
        size: Some(u32::MAX - 1),
        ..Raw::new(b"main.py")
    };
    let error = Place::new().refuse(raw_zip(&[huge]));
    assert_eq!(error.code(), "too_large");
}

/// Raw deflate, taken out of an archive made by the crate.
fn deflate(data: &[u8]) -> Vec<u8> {
    let zip = zip_of(&[("d", data)]);
    let mut archive = zip::ZipArchive::new(Cursor::new(&zip)).unwrap();
    let entry = archive.by_index_raw(0).unwrap();
    let start = entry.data_start().unwrap() as usize;
    zip[start..start + entry.compressed_size() as usize].to_vec()
}

#[test]
fn damage_is_found() {
    let place = Place::new();
    let good = zip_of(&[(
        "main.py",
        b"x = 1\n# some text to compress, some text to compress\n",
    )]);
    for cut in 0..good.len() {
        place.refuse(good[..cut].to_vec());
    }
    let wrong_crc = Raw {
        crc: Some(1),
        ..Raw::new(b"main.py")
    };
    assert_eq!(
        place.refuse(raw_zip(&[wrong_crc])).code(),
        "damaged_archive"
    );
    for (junk, code) in [
        (&b""[..], "not_a_zip"),
        (
            b"#!/usr/bin/env python3\nprint('hello, this is no zip')\n",
            "not_a_zip",
        ),
        (
            b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            "not_a_zip",
        ),
        (&good[..good.len() - 30], "damaged_archive"),
    ] {
        assert_eq!(place.refuse(junk.to_vec()).code(), code);
    }
    let trailing = [&good[..], b"junk"].concat();
    assert_eq!(place.refuse(trailing).code(), "damaged_archive");
}

#[test]
fn a_directory_that_is_not_empty_is_left_alone() {
    let place = Place::new();
    fs::write(place.dest().join("keep"), "x").unwrap();
    let code = Code::Inline("x".into());
    assert_eq!(
        unpack(&code, "main", "py", &place.dest())
            .unwrap_err()
            .code(),
        "io"
    );
    assert!(place.dest().join("keep").exists());
}

#[test]
fn nothing_is_left_of_a_large_refused_upload() {
    let names: Vec<String> = (0..500).map(|n| format!("d{}/e/f{n}", n % 50)).collect();
    let mut entries: Vec<Raw<'_>> = names.iter().map(|n| Raw::new(n.as_bytes())).collect();
    entries.push(Raw {
        crc: Some(0),
        ..Raw::new(b"main.py")
    });
    // `refuse` asserts that the directory is empty again.
    assert_eq!(
        Place::new().refuse(raw_zip(&entries)).code(),
        "damaged_archive"
    );
    let stored_only = {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file("main.py", stored()).unwrap();
        writer.write_all(b"x").unwrap();
        writer.finish().unwrap().into_inner()
    };
    assert!(Place::new().unpack(Code::Zip(stored_only.into())).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is uploaded: no panic, nothing outside, nothing left behind (`Place::unpack` asserts both).
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = Place::new().unpack(Code::Zip(bytes.into()));
    }

    /// A valid archive with a few bytes changed.
    #[test]
    fn mutated_archives_do_no_harm(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut zip = raw_zip(&[Raw::new(b"main.py"), Raw::new(b"a/b.py"), Raw::new(b"c/")]);
        for (at, byte) in changes {
            let at = at.index(zip.len());
            zip[at] = byte;
        }
        let _ = Place::new().unpack(Code::Zip(Bytes::from(zip)));
    }

    /// Arbitrary names stay inside or are refused.
    #[test]
    fn arbitrary_names_stay_inside(name in "[a-zA-Z./\\\\:\\x00-\\x1f]{0,40}") {
        let place = Place::new();
        let zip = raw_zip(&[Raw::new(b"main.py"), Raw::new(name.as_bytes())]);
        if place.unpack(Code::Zip(zip.into())).is_ok() {
            prop_assert!(!name.contains("..") || name.split('/').all(|part| part != ".."));
            prop_assert!(!name.starts_with('/'));
        }
    }
}
