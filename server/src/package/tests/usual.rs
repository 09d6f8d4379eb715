//! Typical uploads, and typical mistakes.

use super::*;

#[test]
fn inline_source_becomes_the_module() {
    let place = Place::new();
    let unpacked = place.unpack(Code::Inline("x = 1\n".into())).unwrap();
    assert_eq!(unpacked.bytes, 6);
    assert_eq!(unpacked.sha256.len(), 64);
    let files = listing(&place.dest());
    assert_eq!(files["main.py"], (0o444, b"x = 1\n".to_vec()));
    let mode = fs::metadata(place.dest()).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[test]
fn inline_modules_are_plain_names() {
    let place = Place::new();
    for module in ["", "a.b", "a/b", "../a", "a b", "a\0"] {
        let code = Code::Inline("x".into());
        let error = unpack(&code, None, &python(module), &place.dest()).unwrap_err();
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
            ("bin", 0o755),
            ("bin/tool", 0o555),
            ("data", 0o755),
            ("main.py", 0o444),
            ("pkg", 0o755),
            ("pkg/sub", 0o755),
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
        "the code has no main.py at its root, which the handler setting requires; it has \"project/main.py\", \
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
        assert!(unpack(&code, None, &python(module), &place.dest()).is_ok());
    }
    let code = Code::Zip(zip_of(&[("main.mjs", b"")]).into());
    assert!(
        unpack(
            &code,
            None,
            &Entry::of("main.handler", Runtime::Node),
            &Place::new().dest()
        )
        .is_ok()
    );
}

#[test]
fn a_directory_that_is_not_empty_is_left_alone() {
    let place = Place::new();
    fs::write(place.dest().join("keep"), "x").unwrap();
    let code = Code::Inline("x".into());
    assert_eq!(
        unpack(&code, None, &python("main"), &place.dest())
            .unwrap_err()
            .code(),
        "io"
    );
    assert!(place.dest().join("keep").exists());
}

#[test]
fn a_native_function_is_an_executable() {
    let entry = Entry::of("bootstrap", Runtime::Native);
    let program = fs::read("/proc/self/exe").unwrap();
    let codes = [
        Code::Inline(program.clone().into()),
        Code::Zip(zip_of(&[("bootstrap", &program)]).into()),
    ];
    for code in codes {
        let place = Place::new();
        unpack(&code, None, &entry, &place.dest()).unwrap();
        let (mode, content) = &listing(&place.dest())["bootstrap"];
        assert!(*mode == 0o555 && *content == program, "{mode:o}");
        entry.check_in(&place.dest()).unwrap();
        let other = Entry::of("other", Runtime::Native);
        let error = other.check_in(&place.dest()).unwrap_err();
        assert_eq!(error.code(), "not_executable");
        assert!(error.to_string().contains("is not in the code"), "{error}");
    }
    // Another file of the same code is what it was uploaded as.
    let place = Place::new();
    let zip = zip_of(&[("bootstrap", &program), ("other", &program)]);
    unpack(&Code::Zip(zip.into()), None, &entry, &place.dest()).unwrap();
    let other = Entry::of("other", Runtime::Native);
    let error = other.check_in(&place.dest()).unwrap_err();
    assert!(
        error.to_string().contains("not marked as executable"),
        "{error}"
    );
    unpack(
        &Code::Zip(zip_of(&[("other", &program)]).into()),
        None,
        &other,
        &Place::new().dest(),
    )
    .unwrap();
    for (file, content, code) in [
        ("bootstrap", &b"#!/bin/sh"[..], "not_executable"),
        ("main", &program, "missing_module"),
    ] {
        let place = Place::new();
        let zip = Code::Zip(zip_of(&[(file, content)]).into());
        let error = unpack(&zip, None, &entry, &place.dest()).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
}
