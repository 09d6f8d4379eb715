//! The mappings of another process, as the kernel lists them (proc_pid_smaps(5)).
//!
//! Not parsed by `procfs-core`: it drops the flags `dp` and `sl`, which it does not know and a restore has to set again.

use std::fs;
use std::io;
use std::ops::Range;

/// One mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Addresses.
    pub range: Range<u64>,
    /// `PROT_…`.
    pub protection: u64,
    /// Its file, or a name in brackets, or nothing.
    name: String,
    /// The kernel's two-letter flags.
    flags: String,
}

impl Listed {
    /// Whether the kernel lists a flag of two letters for it.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.split_ascii_whitespace().any(|mine| mine == flag)
    }

    /// Whether the kernel itself maps it into every process: `[vdso]` and what belongs to that.
    pub fn is_kernels(&self) -> bool {
        self.name.starts_with("[v")
    }
}

/// All mappings of a process, by address.
pub fn of_process(pid: &str) -> io::Result<Vec<Listed>> {
    Ok(parse(&fs::read_to_string(format!("/proc/{pid}/smaps"))?))
}

/// Reads such a list.
pub fn parse(smaps: &str) -> Vec<Listed> {
    let mut found: Vec<Listed> = Vec::new();
    for line in smaps.lines() {
        if let Some(mapping) = header(line) {
            found.push(mapping);
        } else if let (Some(last), Some(flags)) = (found.last_mut(), line.strip_prefix("VmFlags:"))
        {
            flags.trim().clone_into(&mut last.flags);
        }
    }
    found
}

/// A mapping's first line: `7f00-7f01 rw-p 00000000 00:00 0  [heap]`.
fn header(line: &str) -> Option<Listed> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let range = address(start)?..address(end)?;
    let letters = words.next()?;
    let kinds = [
        ('r', libc::PROT_READ),
        ('w', libc::PROT_WRITE),
        ('x', libc::PROT_EXEC),
    ];
    let granted = kinds.iter().filter(|(letter, _)| letters.contains(*letter));
    Some(Listed {
        range,
        protection: granted.fold(0, |all, (_, kind)| all | *kind as u64),
        name: words.nth(3).unwrap_or_default().to_owned(),
        flags: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_have_ranges_protections_names_and_flags() {
        let mappings = parse(
            "7f0000000000-7f0000002000 rw-p 00000000 00:00 0                          [heap]\n\
             Rss:                   8 kB\n\
             VmFlags: rd wr mr mw me ac sd\n\
             7f0000002000-7f0000003000 r-xp 00000000 00:00 0\n\
             VmFlags: rd ex wf\n\
             7fff00000000-7fff00001000 r--p 00000000 00:00 0   [vvar_vclock]\n",
        );
        assert_eq!(mappings.len(), 3);
        assert_eq!(mappings[0].range, 0x7f00_0000_0000..0x7f00_0000_2000);
        assert!(mappings[0].has("wr") && !mappings[0].has("wf") && !mappings[0].is_kernels());
        assert!(mappings[1].has("wf") && !mappings[1].has("wr"));
        assert!(mappings[2].is_kernels() && !mappings[2].has("rd"));
        let protections: Vec<_> = mappings.iter().map(|mapping| mapping.protection).collect();
        assert_eq!(protections, [3, 5, 1]);
    }

    #[test]
    fn this_process_has_a_stack() {
        let local = 0_u8;
        let address = std::ptr::from_ref(&local).addr() as u64;
        let mappings = of_process("self").unwrap();
        let stack = mappings
            .iter()
            .find(|mapping| mapping.range.contains(&address));
        let stack = stack.expect("the mapping of a local variable");
        assert!(stack.has("rd") && stack.protection == 3, "{stack:?}");
    }
}
