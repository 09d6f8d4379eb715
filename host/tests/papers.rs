//! Which papers are accepted.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

use hearth_host::protocol::papers::PAPERS_MAX;
use hearth_host::protocol::{Papers, PapersError};
use hearth_init::fields::Fields as _;
use rustix::fs::{MemfdFlags, SealFlags};

fn papers() -> Papers {
    Papers {
        id: "hello-1-1900000000".into(),
        hostname: "hello".into(),
        code: "code/0123abcd".into(),
        runtime: "python".into(),
        argv: vec!["/usr/bin/python3".into(), "-I".into()],
        env: vec![("HELLO".into(), "world = all\n".into())],
        image: Some("hello-1-0123456789abcdef".into()),
        trust: Some("-----BEGIN CERTIFICATE-----\n".into()),
    }
}

fn memfd(bytes: &[u8], seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("test", flags).expect("a memfd"));
    file.write_all(bytes).expect("written");
    rustix::fs::fcntl_add_seals(&file, seals).expect("sealed");
    file.into()
}

const SEALED: SealFlags = SealFlags::WRITE
    .union(SealFlags::GROW)
    .union(SealFlags::SHRINK)
    .union(SealFlags::SEAL);

#[test]
fn good_ones_are_read() {
    let sealed = papers().seal().expect("sealed");
    assert_eq!(Papers::open(sealed).expect("read"), papers());
}

#[test]
fn only_a_sealed_memfd_is_read() {
    let bytes = papers().to_bytes();
    let every = [
        SealFlags::WRITE,
        SealFlags::GROW,
        SealFlags::SHRINK,
        SealFlags::SEAL,
    ];
    for missing in every {
        let refused = Papers::open(memfd(&bytes, SEALED & !missing));
        assert!(matches!(refused, Err(PapersError::Unsealed)), "{missing:?}");
    }
    // A pipe would block, and a file be changed.
    let (pipe, _writer) = io::pipe().expect("a pipe");
    let file = tempfile::tempfile().expect("a file");
    let null = File::open("/dev/zero").expect("a device");
    for fd in [OwnedFd::from(pipe), file.into(), null.into()] {
        assert!(matches!(Papers::open(fd), Err(PapersError::Unsealed)));
    }
}

#[test]
fn their_size_is_bounded() {
    let most = usize::try_from(PAPERS_MAX).expect("fits");
    let refused = Papers::open(memfd(&vec![0; most + 1], SEALED));
    assert!(matches!(refused, Err(PapersError::Size(_))), "{refused:?}");
    let mut bytes = papers().to_bytes();
    bytes.push(0);
    for bytes in [&bytes[..], &bytes[..20], &[]] {
        let refused = Papers::open(memfd(bytes, SEALED));
        assert!(
            matches!(refused, Err(PapersError::Fields(_))),
            "{refused:?}"
        );
    }
}

#[test]
fn names_and_paths_lead_nowhere_else() {
    let refused = |change: &dyn Fn(&mut Papers)| {
        let mut papers = papers();
        change(&mut papers);
        let sealed = papers.seal().expect("sealed");
        matches!(Papers::open(sealed), Err(PapersError::Value(_)))
    };
    for code in [
        "",
        "code",
        "code/",
        "code/..",
        "code/../run",
        "code/a/../../run",
        "../code/a",
        "/etc",
        "/code/a",
        "./code/a",
        "images/a/criu",
        "run/a",
        "coded/a",
        "code/a\0b",
    ] {
        assert!(refused(&|papers| papers.code = code.into()), "{code:?}");
    }
    for name in ["", "..", "a/b", "a.b", "A", "a b", "é", "a\0"] {
        assert!(refused(&|papers| papers.id = name.into()), "{name:?}");
        assert!(refused(&|papers| papers.runtime = name.into()), "{name:?}");
    }
    for name in [
        "", ".", "..", "../run", ".new", "a/criu", "-a", "a\0", "a.json",
    ] {
        let image = Some(name.to_owned());
        assert!(refused(&|papers| papers.image = image.clone()), "{name:?}");
    }
    for name in ["", "a\nb", "a b", &"a".repeat(65)] {
        assert!(refused(&|papers| papers.hostname = name.into()), "{name:?}");
    }
    assert!(refused(&|papers| papers.argv.clear()));
    assert!(refused(&|papers| papers.argv = vec!["python3".into()]));
    assert!(refused(&|papers| papers.argv = vec!["/a".into(); 65]));
    assert!(refused(&|papers| papers.argv = vec!["/a\0".into()]));
    for name in ["", "A=B", "A\0"] {
        let variable = (name.to_owned(), String::new());
        assert!(refused(&|papers| papers.env = vec![variable.clone()]));
    }
    let many = vec![("A".to_owned(), String::new()); 4097];
    assert!(refused(&|papers| papers.env.clone_from(&many)));
}
