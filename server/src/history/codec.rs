//! Reading stored histograms: the V2 encoding of HdrHistogram, straight into the sum it is added to.
//!
//! A week of a function is several hundred rows of six or more histograms. The library's reader builds a 24 KiB
//! histogram from each and adds it count by count; this module decodes only the few dozen non-zero counts, which is an
//! order of magnitude less work. Writing uses the library, and a property test compares this reader with the library's.
//!
//! Format: <https://github.com/HdrHistogram/HdrHistogram>, `HistogramLogReader`; a header of 40 bytes, then counts from
//! the lowest value on as zig-zag LEB128 of at most nine bytes, where -n stands for n zeros.

use hdrhistogram::Histogram;

use super::slice::SliceError;

/// First word of the encoding: V2, counts as zig-zag LEB128.
const COOKIE: u32 = 0x1c84_9313;

/// Bytes of the header.
const HEADER: usize = 40;

/// Half the values of a power of two that two significant digits tell apart, as a power of two.
const HALF_BITS: u32 = 7;

/// Values and how often each was recorded, lowest first. A value stands for all that its histogram does not tell from it:
/// it is the lowest of them.
pub(super) type Counts = Vec<(u64, u64)>;

/// Decodes the counts of a histogram with our bounds (1 µs to `highest`, two digits).
pub(super) fn read(bytes: &[u8], highest: u64) -> Result<Counts, SliceError> {
    let word = |at: usize| -> Option<u32> {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let long = |at: usize| Some(u64::from(word(at)?) << 32 | u64::from(word(at + 4)?));
    let header = (word(0), word(8), word(12), long(16), long(24));
    if header != (Some(COOKIE), Some(0), Some(2), Some(1), Some(highest)) {
        return Err(SliceError::Foreign);
    }
    let length = word(4).unwrap_or(0) as usize;
    let mut payload = bytes
        .get(HEADER..)
        .and_then(|rest| rest.get(..length))
        .ok_or(SliceError::Cut)?;
    let mut counts = Counts::new();
    let mut index: u64 = 0;
    while !payload.is_empty() {
        let value = unsigned(&mut payload).ok_or(SliceError::Cut)?;
        let zig_zag = (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
        let step = match u64::try_from(zig_zag) {
            Ok(0) => 1,
            Ok(count) => {
                counts.push((lowest_at(index).ok_or(SliceError::Cut)?, count));
                1
            }
            Err(_) => zig_zag.unsigned_abs(),
        };
        index = index.saturating_add(step);
    }
    Ok(counts)
}

/// Adds counts to a histogram. Values above its bound count as the bound, as when recording.
pub(super) fn add(counts: &Counts, sum: &mut Histogram<u64>) {
    for (value, count) in counts {
        sum.saturating_record_n(*value, *count);
    }
}

/// LEB128 of at most nine bytes, of which the ninth holds eight bits.
fn unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for byte_index in 0..9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if byte_index == 8 {
            return Some(value | u64::from(byte) << 56);
        }
        value |= u64::from(byte & 0x7f) << (7 * byte_index);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The lowest value that is counted at a place; none beyond 64 bits.
fn lowest_at(index: u64) -> Option<u64> {
    let half = 1 << HALF_BITS;
    let within = index & (half - 1);
    match index >> HALF_BITS {
        0 => Some(within),
        power => (within + half).checked_mul(1_u64.checked_shl(u32::try_from(power - 1).ok()?)?),
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::V2Serializer;
    use proptest::prelude::*;

    use super::super::bounds::{HIGHEST, empty};
    use super::super::slice::serialized;
    use super::*;

    proptest! {
        /// Reading and adding is what the library's reader does.
        #[test]
        fn counts_are_those_that_were_written(
            values in proptest::collection::vec((0..u64::MAX, 0..64_u32, 1..u64::from(u32::MAX)), 0..100),
        ) {
            let mut written = empty();
            for (value, shift, count) in values {
                written.saturating_record_n(value >> shift, count);
            }
            let bytes = serialized(&mut V2Serializer::new(), &written).unwrap();
            let mut sum = empty();
            add(&read(&bytes, HIGHEST).unwrap(), &mut sum);
            prop_assert_eq!(sum, written);
        }

        /// Whatever the bytes are, reading ends, with counts that can be added or an error.
        #[test]
        fn any_bytes_are_read_or_refused(tail in proptest::collection::vec(any::<u8>(), 0..200), cut in 0..400_usize) {
            let mut bytes = serialized(&mut V2Serializer::new(), &empty()).unwrap();
            bytes.truncate(cut.min(bytes.len()));
            bytes.extend(&tail);
            if bytes.len() >= HEADER {
                let length = u32::try_from(bytes.len() - HEADER).unwrap();
                bytes[4..8].copy_from_slice(&length.to_be_bytes());
            }
            if let Ok(counts) = read(&bytes, HIGHEST) {
                add(&counts, &mut empty());
            }
        }
    }
}
