//! Checks that a file is a program that this host can run: an ELF executable of its architecture, static or linked against its C
//! library. What the program does is for the sandbox to contain.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes that are looked at: the headers are at the beginning of what linkers write.
const HEADER_BYTES: u64 = 64 << 10;

/// Program headers of this type name the loader.
const PT_INTERP: u32 = 3;
const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;

/// This host's architecture: its number (`e_machine`), and the loader of its C library, which every sandbox has.
#[cfg(target_arch = "x86_64")]
const HOST: (u16, &[u8]) = (62, b"/lib64/ld-linux-x86-64.so.2");
#[cfg(target_arch = "aarch64")]
const HOST: (u16, &[u8]) = (183, b"/lib/ld-linux-aarch64.so.1");

/// Why it cannot be run, as a verb phrase; nothing if it can.
pub(super) fn problem(path: &Path) -> io::Result<Option<String>> {
    let mut header = Vec::new();
    File::open(path)?
        .take(HEADER_BYTES)
        .read_to_end(&mut header)?;
    Ok(Elf(&header).problem().err())
}

/// The beginning of a file, read as a 64-bit little-endian ELF file. Nothing in it is trusted.
struct Elf<'a>(&'a [u8]);

impl Elf<'_> {
    fn problem(&self) -> Result<(), String> {
        let no_program = || format!("is not an executable for Linux on {}", architecture(HOST.0));
        if !self.0.starts_with(b"\x7fELF") {
            return Err(no_program());
        }
        let [class, order] = [self.0.get(4), self.0.get(5)].map(Option::<&u8>::copied);
        let machine = self.half(18).ok_or_else(no_program)?;
        if class != Some(2) || order != Some(1) || machine != HOST.0 {
            // Programs of 32 bits have the same number in the same place.
            let bits = if class == Some(2) {
                ""
            } else {
                ", not of 64 bits"
            };
            return Err(format!(
                "is built for {}{bits}; this host runs programs for {}",
                architecture(machine),
                architecture(HOST.0)
            ));
        }
        let is_program =
            matches!(self.half(16), Some(ET_EXEC | ET_DYN)) && self.wide(24) != Some(0);
        if !is_program {
            return Err("is a library or an object file, not an executable".to_owned());
        }
        match self.loader() {
            Some(loader) if loader != HOST.1 => Err(format!(
                "needs the loader {}, which is not in the sandbox; link it statically, or against glibc",
                super::error::quoted(loader)
            )),
            _ => Ok(()),
        }
    }

    /// The loader that a program asks for which is not static.
    fn loader(&self) -> Option<&[u8]> {
        let at = usize::try_from(self.wide(32)?).ok()?;
        let size = usize::from(self.half(54)?);
        let count = usize::from(self.half(56)?);
        for number in 0..count {
            let header = at.checked_add(number.checked_mul(size)?)?;
            if self.word(header)? == PT_INTERP {
                let begin = usize::try_from(self.wide(header.checked_add(8)?)?).ok()?;
                let len = usize::try_from(self.wide(header.checked_add(32)?)?).ok()?;
                let name = self.0.get(begin..begin.checked_add(len)?)?;
                return name.split(|&byte| byte == 0).next();
            }
        }
        None
    }

    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn half(&self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn word(&self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
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
    use super::*;

    fn said(header: &[u8]) -> String {
        Elf(header).problem().err().unwrap_or_default()
    }

    #[test]
    fn a_program_of_this_host_passes_and_nothing_else_does() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let own = &program[..HEADER_BYTES as usize];
        assert_eq!(said(own), "");
        let changed = |at: usize, to: &[u8]| {
            let mut header = own.to_vec();
            header[at..at + to.len()].copy_from_slice(to);
            said(&header)
        };
        assert!(changed(18, &[0xf3, 0]).contains("is built for RISC-V"));
        assert!(changed(4, &[1]).contains("not of 64 bits"));
        assert!(changed(16, &[1, 0]).contains("an object file"));
        assert!(changed(24, &[0; 8]).contains("is a library"));
        let at = own.windows(HOST.1.len()).position(|part| part == HOST.1);
        if let Some(at) = at {
            let musl = changed(at, b"/lib/ld-musl.so\0");
            assert!(musl.contains("\"/lib/ld-musl.so\""), "{musl}");
        }
        for text in [&b"#!/bin/sh\n"[..], b"", b"MZ", b"\x7fELF", &own[..17]] {
            assert!(said(text).starts_with("is not an executable"), "{text:?}");
        }
        // Cut short, or with headers anywhere: read as far as there is something.
        for len in [20, 64, 100] {
            let _ = said(&own[..len]);
        }
        for at in [32, 54, 56] {
            let _ = changed(at, &[0xff; 8]);
        }
    }
}
