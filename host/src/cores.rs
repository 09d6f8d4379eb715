//! Lists of processor cores as the kernel writes them (`0-3,8`), and as a request has them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Cores that can be dedicated are numbered below this.
pub const DEDICATED_CORES: u32 = u128::BITS;

/// Reads a list; none if it is not one.
#[must_use]
pub fn parse(list: &str) -> Option<BTreeSet<u32>> {
    /// Far more than the kernel has; a longer range is not a list of cores.
    const MOST: u32 = 1 << 16;
    let mut cores = BTreeSet::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last >= MOST {
            return None;
        }
        cores.extend(first..=last);
    }
    Some(cores)
}

/// Writes one.
#[must_use]
pub fn list(cores: &BTreeSet<u32>) -> String {
    let mut text = String::new();
    let mut next = cores.iter().copied().peekable();
    while let Some(first) = next.next() {
        let mut last = first;
        while let Some(following) = next.next_if_eq(&(last + 1)) {
            last = following;
        }
        let comma = if text.is_empty() { "" } else { "," };
        // A String takes everything.
        let _ = match first == last {
            true => write!(text, "{comma}{first}"),
            false => write!(text, "{comma}{first}-{last}"),
        };
    }
    text
}

/// A bit for each core; those that are [`DEDICATED_CORES`] or more have none.
#[must_use]
pub fn mask(cores: &BTreeSet<u32>) -> u128 {
    cores
        .iter()
        .filter_map(|core| 1_u128.checked_shl(*core))
        .fold(0, |mask, bit| mask | bit)
}

/// The cores whose bits are set.
#[must_use]
pub fn of_mask(mask: u128) -> BTreeSet<u32> {
    (0..DEDICATED_CORES)
        .filter(|core| mask >> core & 1 == 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for text in ["", "0", "0-1", "0,2", "0-3,8,10-11", "127"] {
            let cores = parse(text).expect("a list");
            assert_eq!(list(&cores), text);
            assert_eq!(of_mask(mask(&cores)), cores);
        }
        assert_eq!(
            parse("1,2,3\n").map(|cores| list(&cores)).as_deref(),
            Some("1-3")
        );
        for wrong in ["x", "3-1", "0-", "-1", "0-4294967295", "1;2"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(mask(&BTreeSet::from([128, 1])), 2);
    }
}
