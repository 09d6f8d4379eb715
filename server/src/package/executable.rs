//! Checks that a file is a program that this host can run: an ELF executable of its architecture, static or linked against its C
//! library. What the program does is for the sandbox to contain.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a file's header.
const HEADER_BYTES: usize = 64;
/// Bytes of one program header; Linux takes no other size.
const PROGRAM_HEADER_BYTES: usize = 56;
/// Most bytes of all program headers: as many as Linux takes.
const PROGRAM_HEADERS_BYTES: usize = 64 << 10;
/// Most bytes of the loader's name: Linux's `PATH_MAX`.
const LOADER_BYTES: usize = 4096;
/// Most bytes that are read of the dynamic section, which has some dozens of entries of 16.
const DYNAMIC_BYTES: usize = 64 << 10;

const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
/// The program header that leads to the dynamic section.
const PT_DYNAMIC: u32 = 2;
/// The program header that leads to the loader's name.
const PT_INTERP: u32 = 3;
/// Entries of the dynamic section: a library that is needed, a library's own name, flags.
const DT_NEEDED: u64 = 1;
const DT_SONAME: u64 = 14;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
/// The flag of a program that can lie anywhere.
const DF_1_PIE: u64 = 0x0800_0000;

/// How a script begins.
const SCRIPT: &[u8] = b"#!";

/// What is said of ELF files that are no programs.
const NO_PROGRAM: &str = "is a library or an object file, not an executable";

/// This host's architecture: its number (`e_machine`), and the loader of its C library, which every sandbox has.
#[cfg(target_arch = "x86_64")]
const HOST: (u16, &[u8]) = (62, b"/lib64/ld-linux-x86-64.so.2");
#[cfg(target_arch = "aarch64")]
const HOST: (u16, &[u8]) = (183, b"/lib/ld-linux-aarch64.so.1");

/// Why it cannot be run, as a verb phrase; nothing if it can.
pub(super) fn problem(path: &Path) -> io::Result<Option<String>> {
    let file = File::open(path)?;
    let header = match Header::parse(&Part::of(&file, 0, HEADER_BYTES)?) {
        Ok(header) => header,
        Err(problem) => return Ok(Some(problem)),
    };
    let Some(segments) = header.segments(&file)? else {
        return Ok(Some("is damaged: it has no program headers".to_owned()));
    };
    let find = |kind| segments.iter().find(|segment| segment.kind == kind);
    if let Some(segment) = find(PT_INTERP) {
        let name = Part::of(&file, segment.at, segment.len.min(LOADER_BYTES))?;
        let name = name.0.split(|&byte| byte == 0).next().unwrap_or_default();
        return Ok((name != HOST.1).then(|| {
            format!(
                "needs the loader {}, which is not in the sandbox; link it statically, or against glibc",
                super::error::quoted(name)
            )
        }));
    }
    if header.kind == ET_DYN
        && let Some(segment) = find(PT_DYNAMIC)
        && is_library(&Part::of(
            &file,
            segment.at,
            segment.len.min(DYNAMIC_BYTES),
        )?)
    {
        return Ok(Some(NO_PROGRAM.to_owned()));
    }
    Ok(None)
}

/// The same of a `bootstrap`, which may be a script as well.
pub(super) fn problem_of_bootstrap(path: &Path) -> io::Result<Option<String>> {
    let start = Part::of(&File::open(path)?, 0, SCRIPT.len())?;
    if start.0 == SCRIPT {
        return Ok(None);
    }
    let is_elf = start.0 == b"\x7fE";
    Ok(problem(path)?.map(|problem| match is_elf {
        true => problem,
        false => format!("{problem}, and no script that begins with #!"),
    }))
}

/// Whether this is a library's dynamic section: nothing would load what it needs. A static program that can lie anywhere has one,
/// too, with a flag that says so.
fn is_library(dynamic: &Part) -> bool {
    let entries = (0..dynamic.0.len()).step_by(16);
    let entries = entries.map_while(|at| Some((dynamic.wide(at)?, dynamic.wide(at + 8)?)));
    let mut is_linked = false;
    for (tag, value) in entries.take_while(|&(tag, _)| tag != 0) {
        match tag {
            DT_FLAGS_1 if value & DF_1_PIE != 0 => return false,
            DT_NEEDED | DT_SONAME => is_linked = true,
            _ => {}
        }
    }
    is_linked
}

/// What a file's header says. Nothing in it is trusted.
struct Header {
    kind: u16,
    /// Where the program headers are, and how many.
    table: u64,
    count: usize,
}

/// A part of the file that a program header leads to.
struct Segment {
    kind: u32,
    at: u64,
    len: usize,
}

impl Header {
    /// Reads the header of a program for this host; else what is wrong with it.
    fn parse(header: &Part) -> Result<Self, String> {
        let no_program = || format!("is not an executable for Linux on {}", architecture(HOST.0));
        if !header.0.starts_with(b"\x7fELF") {
            return Err(no_program());
        }
        let machine: [u8; 2] = header.bytes(18).ok_or_else(no_program)?;
        let (machine, kind) = match (header.0[4], header.0[5]) {
            (2, 1) => (u16::from_le_bytes(machine), ""),
            (1, 1) => (u16::from_le_bytes(machine), ", 32-bit"),
            (1, 2) => (u16::from_be_bytes(machine), ", 32-bit"),
            (2, 2) => (u16::from_be_bytes(machine), ", big-endian"),
            _ => return Err(no_program()),
        };
        if machine != HOST.0 || !kind.is_empty() {
            return Err(format!(
                "is built for {}{kind}; this host runs programs for {}",
                architecture(machine),
                architecture(HOST.0)
            ));
        }
        let read = || {
            let entry = header.wide(24)?;
            let kind = header.half(16)?;
            let is_program = matches!(kind, ET_EXEC | ET_DYN) && entry != 0;
            let size = usize::from(header.half(54)?);
            let header = Self {
                kind,
                table: header.wide(32)?,
                count: match size {
                    PROGRAM_HEADER_BYTES => header.half(56)?.into(),
                    _ => 0,
                },
            };
            Some((header, is_program))
        };
        match read() {
            Some((header, true)) => Ok(header),
            Some(_) => Err(NO_PROGRAM.to_owned()),
            None => Err(no_program()),
        }
    }

    /// The parts of the file; none if it has no such table, or not all of it.
    fn segments(&self, file: &File) -> io::Result<Option<Vec<Segment>>> {
        let len = self.count * PROGRAM_HEADER_BYTES;
        if len == 0 || len > PROGRAM_HEADERS_BYTES {
            return Ok(None);
        }
        let table = Part::of(file, self.table, len)?;
        if table.0.len() < len {
            return Ok(None);
        }
        let segment = |at| {
            Some(Segment {
                kind: table.bytes(at).map(u32::from_le_bytes)?,
                at: table.wide(at + 8)?,
                len: usize::try_from(table.wide(at + 32)?).ok()?,
            })
        };
        let places = (0..len).step_by(PROGRAM_HEADER_BYTES);
        Ok(places.map(segment).collect())
    }
}

/// A part of a file, as far as there is one.
struct Part(Vec<u8>);

impl Part {
    fn of(file: &File, at: u64, len: usize) -> io::Result<Self> {
        let mut bytes = vec![0; len];
        let mut filled = 0;
        // Beyond what a file can have, there is nothing.
        let is_possible = at
            .checked_add(len as u64)
            .is_some_and(|end| i64::try_from(end).is_ok());
        while is_possible && filled < len {
            match file.read_at(&mut bytes[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(Self(bytes))
    }

    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn half(&self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn wide(&self, at: usize) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }
}

/// What `e_machine` says, for the architectures that people build for.
fn architecture(machine: u16) -> String {
    match machine {
        3 => "x86".to_owned(),
        40 => "Arm".to_owned(),
        62 => "x86-64".to_owned(),
        183 => "AArch64".to_owned(),
        243 => "RISC-V".to_owned(),
        other => format!("another architecture (ELF machine {other})"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn said(content: &[u8]) -> String {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        problem(file.path()).unwrap().unwrap_or_default()
    }

    fn put(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
        content.resize(content.len().max(at + bytes.len()), 0);
        content[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// An ELF file of this host with its program headers at a place of their own, each with its content behind them.
    fn made(kind: u16, table: usize, segments: &[(u32, &[u8])]) -> Vec<u8> {
        let mut file = Vec::new();
        put(&mut file, 0, b"\x7fELF\x02\x01\x01");
        put(&mut file, 16, &kind.to_le_bytes());
        put(&mut file, 18, &HOST.0.to_le_bytes());
        put(&mut file, 24, &0x1000_u64.to_le_bytes());
        put(&mut file, 32, &(table as u64).to_le_bytes());
        put(&mut file, 54, &[56, 0, segments.len() as u8, 0]);
        let mut behind = table + segments.len() * PROGRAM_HEADER_BYTES;
        for (number, (kind, content)) in segments.iter().enumerate() {
            let at = table + number * PROGRAM_HEADER_BYTES;
            put(&mut file, at, &kind.to_le_bytes());
            put(&mut file, at + 8, &(behind as u64).to_le_bytes());
            put(&mut file, at + 32, &(content.len() as u64).to_le_bytes());
            put(&mut file, at + 48, &[0; 8]);
            put(&mut file, behind, content);
            behind += content.len();
        }
        file
    }

    fn dynamic(entries: &[(u64, u64)]) -> Vec<u8> {
        let words = entries.iter().chain(&[(0, 0)]);
        words
            .flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()].concat())
            .collect()
    }

    #[test]
    fn a_program_of_this_host_passes_and_nothing_else_does() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(said(&own), "");
        let changed = |at: usize, to: &[u8]| {
            let mut file = own[..64 << 10].to_vec();
            file[at..at + to.len()].copy_from_slice(to);
            said(&file)
        };
        assert!(changed(18, &[0xf3, 0]).contains("is built for RISC-V;"));
        assert!(changed(4, &[1]).contains(", 32-bit;"));
        let big = changed(4, &[2, 2]);
        assert!(big.contains(", big-endian;"), "{big}");
        assert!(changed(16, &[1, 0]).contains("an object file"));
        assert!(changed(24, &[0; 8]).contains("is a library"));
        for text in [&b"#!/bin/sh\n"[..], b"", b"MZ", b"\x7fELF", &own[..17]] {
            assert!(said(text).starts_with("is not an executable"), "{text:?}");
        }
        assert!(said(&own[..20]).starts_with("is not an executable"));
        for len in [63, 64, 100] {
            assert!(said(&own[..len]).starts_with("is damaged"), "{len}");
        }
        for at in [32, 54, 56] {
            assert!(changed(at, &[0xff; 8]).starts_with("is damaged"), "{at}");
        }
    }

    #[test]
    fn headers_may_lie_anywhere() {
        for table in [64, 1 << 20] {
            let glibc = [HOST.1, b"\0"].concat();
            assert_eq!(
                said(&made(ET_DYN, table, &[(1, b""), (PT_INTERP, &glibc)])),
                ""
            );
            let musl = said(&made(ET_EXEC, table, &[(PT_INTERP, b"/lib/ld-musl.so\0")]));
            assert!(musl.contains("\"/lib/ld-musl.so\""), "{musl}");
            assert_eq!(said(&made(ET_EXEC, table, &[(1, b"static")])), "");
            let mut cut = made(ET_EXEC, table, &[(1, b"static")]);
            cut.truncate(table + 55);
            assert!(said(&cut).starts_with("is damaged"));
        }
        // What leads out of the file leads nowhere.
        let mut out = made(ET_EXEC, 64, &[(PT_INTERP, b"/lib/x\0")]);
        put(&mut out, 64 + 8, &u64::MAX.to_le_bytes());
        assert!(said(&out).contains("needs the loader \"\""));
    }

    #[test]
    fn a_library_with_an_entry_is_no_program() {
        let library = dynamic(&[(DT_NEEDED, 1), (DT_FLAGS_1, 1)]);
        assert_eq!(
            said(&made(ET_DYN, 64, &[(PT_DYNAMIC, &library)])),
            NO_PROGRAM
        );
        let named = dynamic(&[(DT_SONAME, 1)]);
        assert_eq!(said(&made(ET_DYN, 64, &[(PT_DYNAMIC, &named)])), NO_PROGRAM);
        // Static programs that can lie anywhere.
        for entries in [&[(DT_FLAGS_1, DF_1_PIE)][..], &[(5, 1)]] {
            let program = made(ET_DYN, 64, &[(PT_DYNAMIC, &dynamic(entries))]);
            assert_eq!(said(&program), "");
        }
    }
}
