//! Takes back V8's wish that its heap be left out of forks (`MADV_DONTFORK`): without its heap a child dies at its first
//! step.

use std::fs;
use std::io;
use std::ops::Range;

use crate::sys;

/// Makes every mapping that a fork would leave out part of it again.
///
/// Asked once, before the first fork: a template runs no JavaScript between its forks, so V8 maps nothing new.
pub fn copy_all_on_fork() -> io::Result<()> {
    let smaps = fs::read_to_string("/proc/self/smaps")?;
    for range in left_out(&smaps) {
        sys::copy_on_fork(&range)?;
    }
    Ok(())
}

/// The mappings of an smaps file that are flagged `dc`, "do not copy on fork", and are memory rather than a device (`io`),
/// for which the flag belongs to the driver.
fn left_out(smaps: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut mapping = None;
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            let flags = flags.split_ascii_whitespace();
            let (left_out, device) = flags.fold((false, false), |(dc, io), flag| {
                (dc || flag == "dc", io || flag == "io")
            });
            if left_out && !device {
                found.extend(mapping.take());
            }
        } else if let Some(range) = header(line) {
            mapping = Some(range);
        }
    }
    found
}

/// The range that a mapping's first line begins with: `7f00-7f01 rw-p …`.
fn header(line: &str) -> Option<Range<usize>> {
    let (range, _) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}
