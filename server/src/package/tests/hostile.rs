//! What attackers upload.

use super::*;

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
