//! Where a request's time went: each member that handles it notes when it took it and how long it had it. The gateway reads the
//! notes when the request is back. They are the members' claims, and nothing is decided by them.
//!
//! They lie before the blocks, behind the block's envelope: a count, then the entries, two words each.

use crate::id::Instance;
use crate::shape::NOTE_BYTES;

/// Where the count is, from the block's note on.
pub(crate) const COUNT_AT: usize = 64;
/// Where the entries begin.
pub(crate) const ENTRIES_AT: usize = 80;
const ENTRY_BYTES: usize = 16;
/// Most entries: later ones are counted and not kept.
pub const MAX_ENTRIES: usize = (NOTE_BYTES - ENTRIES_AT) / ENTRY_BYTES;

/// A member's time with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stay {
    /// The instance.
    pub instance: Instance,
    /// The position in the route.
    pub hop: u8,
    /// Whether it was called by another member, rather than next on the route.
    pub is_call: bool,
    /// When it took the descriptor, in ns of the monotonic clock.
    pub entered_ns: u64,
    /// How long it had it, in ns; more than four seconds are noted in ms.
    pub took_ns: u64,
}

const IN_MS: u64 = 1 << 63;
const IS_CALL: u64 = 1 << 62;

impl Stay {
    pub(crate) fn to_words(self) -> [u64; 2] {
        let (took, unit) = match u32::try_from(self.took_ns) {
            Ok(took) => (took, 0),
            Err(_) => {
                let ms = self.took_ns / 1_000_000;
                (u32::try_from(ms).unwrap_or(u32::MAX), IN_MS)
            }
        };
        let call = if self.is_call { IS_CALL } else { 0 };
        let rest = u64::from(took) | u64::from(self.instance.0) << 32 | u64::from(self.hop) << 48;
        [self.entered_ns, rest | unit | call]
    }

    pub(crate) fn from_words([entered_ns, rest]: [u64; 2]) -> Self {
        let took = u64::from(rest as u32);
        Self {
            instance: Instance((rest >> 32) as u16),
            hop: (rest >> 48) as u8,
            is_call: rest & IS_CALL != 0,
            entered_ns,
            took_ns: if rest & IN_MS == 0 {
                took
            } else {
                took * 1_000_000
            },
        }
    }
}

/// Where an entry is, from the block's note on; none if there is no room for it.
pub(crate) fn entry_at(index: usize) -> Option<usize> {
    (index < MAX_ENTRIES).then_some(ENTRIES_AT + index * ENTRY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stay_survives_its_words() {
        for (took_ns, kept_ns) in [
            (0, 0),
            (u64::from(u32::MAX), u64::from(u32::MAX)),
            (7_000_999_999, 7_000_000_000),
        ] {
            let stay = Stay {
                instance: Instance(u16::MAX),
                hop: u8::MAX,
                is_call: took_ns == 0,
                entered_ns: u64::MAX,
                took_ns,
            };
            let kept = Stay {
                took_ns: kept_ns,
                ..stay
            };
            assert_eq!(Stay::from_words(stay.to_words()), kept);
        }
    }

    #[test]
    fn entries_end_with_the_notes() {
        let last = entry_at(MAX_ENTRIES - 1).expect("room");
        assert!(last + ENTRY_BYTES <= NOTE_BYTES);
        assert_eq!(entry_at(MAX_ENTRIES), None);
    }
}
