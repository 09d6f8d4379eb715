use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use rustix::pipe::{PipeFlags, pipe_with};

use super::*;

fn code(content: &[u8]) -> Vec<u8> {
    [&[0xa7, 13, 13, 10, 1, 0, 0, 0][..], &[9; 8], content].concat()
}

fn frame(path: &str, code: &[u8]) -> Vec<u8> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
    [
        &length(path.as_bytes())[..],
        &length(code),
        path.as_bytes(),
        code,
    ]
    .concat()
}

const END: &[u8] = &[0; LENGTHS];

/// A package with three sources.
fn package() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("pkg")).unwrap();
    for path in ["main.py", "pkg/a.py", "pkg/b.py", "data.bin"] {
        fs::write(dir.path().join(path), "1\n").unwrap();
    }
    dir
}

/// Everything in the package that was not there before, by path.
fn made(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut made = BTreeMap::new();
    let mut directories = vec![dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                made.insert(name, fs::read(path).unwrap());
            }
        }
    }
    for path in ["main.py", "pkg/a.py", "pkg/b.py", "data.bin"] {
        assert_eq!(made.remove(path).as_deref(), Some(&b"1\n"[..]), "{path}");
    }
    made
}

/// What is made of streams that are written and closed.
fn collected(dir: &Path, streams: &[&[u8]]) -> Kept {
    let ends = streams.iter().map(|bytes| {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
        // They fit into the pipe.
        assert_eq!(rustix::io::write(&write, bytes).unwrap(), bytes.len());
        read
    });
    let sources = Sources::find(dir).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    collect(dir, sources, "cpython-311", ends.collect(), deadline).unwrap()
}

#[test]
fn byte_code_is_kept_beside_its_source() {
    let dir = package();
    let first = [frame("main.py", &code(b"m")), END.to_vec()].concat();
    let second = [
        frame("pkg/a.py", &code(b"a")),
        frame("pkg/b.py", &code(b"b")),
        END.to_vec(),
    ]
    .concat();
    let kept = collected(dir.path(), &[&first, &second]);
    assert_eq!((kept.files, kept.bytes, kept.complete), (3, 51, true));
    let expected = [
        ("__pycache__/main.cpython-311.pyc", "m"),
        ("pkg/__pycache__/a.cpython-311.pyc", "a"),
        ("pkg/__pycache__/b.cpython-311.pyc", "b"),
    ];
    let expected = expected.map(|(path, content)| (path.to_owned(), code(content.as_bytes())));
    assert_eq!(made(dir.path()), BTreeMap::from(expected));
    // Nobody who looks into the package sees them.
    assert_eq!(browse::walk(dir.path()).unwrap().files.len(), 4);
    let pyc = dir.path().join("__pycache__/main.cpython-311.pyc");
    assert_eq!(
        fs::metadata(pyc).unwrap().permissions().mode() & 0o777,
        0o444
    );
}

#[test]
fn a_stream_that_breaks_off_keeps_what_came() {
    let dir = package();
    let whole = frame("main.py", &code(b"m"));
    let half = &frame("pkg/a.py", &code(b"a"))[..20];
    let kept = collected(dir.path(), &[&[&whole, half].concat(), END]);
    assert_eq!((kept.files, kept.complete), (1, false));
    assert_eq!(made(dir.path()).len(), 1);
}

#[test]
fn nothing_else_is_written() {
    let good = code(b"x");
    let checked = [&[0xa7, 13, 13, 10, 3, 0, 0, 0][..], &[9; 8], b"x"].concat();
    let by_time = [&[0xa7, 13, 13, 10, 0, 0, 0, 0][..], &[9; 8], b"x"].concat();
    for (path, bytes) in [
        ("../main.py", &good),
        ("/etc/passwd", &good),
        ("data.bin", &good),
        ("pkg", &good),
        ("pkg/../main.py", &good),
        ("./main.py", &good),
        ("main.py\0", &good),
        ("", &good),
        ("missing.py", &good),
        ("__pycache__/main.cpython-311.pyc", &good),
        ("main.py", &checked),
        ("main.py", &by_time),
        ("main.py", &b"#!/bin/sh\necho 1\n\n".to_vec()),
        ("main.py", &good[..HEADER].to_vec()),
        ("main.py", &Vec::new()),
        ("main.py", &code(&[])),
    ] {
        let dir = package();
        // What comes behind it on the same stream is not read; the other stream is.
        let bad = [frame(path, bytes), frame("pkg/a.py", &good)].concat();
        let other = [frame("pkg/b.py", &good), END.to_vec()].concat();
        let kept = collected(dir.path(), &[&bad, &other]);
        assert_eq!((kept.files, kept.complete), (1, false), "{path:?}");
        let names: Vec<_> = made(dir.path()).into_keys().collect();
        assert_eq!(names, ["pkg/__pycache__/b.cpython-311.pyc"], "{path:?}");
    }
    // Twice the same.
    let dir = package();
    let twice = [frame("main.py", &good), frame("main.py", &code(b"other"))].concat();
    assert!(!collected(dir.path(), &[&twice]).complete);
    assert_eq!(made(dir.path()).into_values().collect::<Vec<_>>(), [good]);
    // Lengths that nothing can have.
    for lengths in [
        [255; LENGTHS],
        [1, 4, 0, 0, 1, 0, 0, 0],
        [7, 0, 0, 0, 1, 0, 0, 1],
    ] {
        let dir = package();
        assert!(!collected(dir.path(), &[&lengths]).complete);
        assert!(made(dir.path()).is_empty());
    }
}

#[test]
fn a_stream_without_an_end_has_a_deadline() {
    let dir = package();
    let (read, _held) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
    let sources = Sources::find(dir.path()).unwrap();
    let deadline = Instant::now() + Duration::from_millis(20);
    let kept = collect(dir.path(), sources, "cpython-311", vec![read], deadline).unwrap();
    assert_eq!(kept, Kept::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Frames come out as they went in, however the stream is cut.
    #[test]
    fn frames_are_found_in_any_pieces(
        frames in proptest::collection::vec(("[a-z/.]{1,40}", proptest::collection::vec(any::<u8>(), 0..200)), 0..10),
        cut in 1_usize..300,
    ) {
        let mut stream: Vec<u8> = frames.iter().flat_map(|(path, code)| frame(path, code)).collect();
        stream.extend(END);
        let (mut parser, mut found, mut ended) = (Frames::default(), Vec::new(), false);
        for piece in stream.chunks(cut) {
            parser.push(piece);
            loop {
                match parser.next() {
                    Ok(Next::Frame(path, code)) => found.push((path, code)),
                    Ok(Next::End) => { ended = true; break; }
                    Ok(Next::Wanting) => break,
                    Err(Refused) => return Err(TestCaseError::fail("refused")),
                }
            }
        }
        prop_assert!(ended);
        prop_assert_eq!(found, frames);
    }

    /// Whatever comes: no panic, and nothing but byte code of the package's own sources.
    #[test]
    fn arbitrary_streams_do_no_harm(
        bytes in proptest::collection::vec(any::<u8>(), 0..500),
        path in "(main.py|pkg/a.py|[a-z./]{0,12})",
        flip in any::<prop::sample::Index>(),
        with in any::<u8>(),
    ) {
        let dir = package();
        let mut good = frame(&path, &code(b"x"));
        let at = flip.index(good.len());
        good[at] = with;
        collected(dir.path(), &[&[&good, &bytes[..]].concat(), &bytes]);
        for name in made(dir.path()).keys() {
            prop_assert!(name.ends_with(".cpython-311.pyc") && name.contains("__pycache__/"), "{}", name);
        }
    }
}
