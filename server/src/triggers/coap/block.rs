//! The options Block1 and Block2 (RFC 7959, 2.2): which piece of a body a message carries.

/// The largest size exponent, which is that of 1,024 bytes.
pub(super) const LARGEST: u8 = 6;

/// The largest number that a block can have: its option has 20 bits for it.
const LAST: u32 = (1 << 20) - 1;

/// A piece of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// Where it begins, in blocks of this size.
    pub(super) number: u32,
    /// Whether others follow.
    pub(super) more: bool,
    /// Its size is 16 to the left by this.
    pub(super) exponent: u8,
}

impl Block {
    /// Of an option's value; none if that is no block.
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        if value.len() > 3 {
            return None;
        }
        let all = value
            .iter()
            .fold(0, |all: u32, byte| (all << 8) | u32::from(*byte));
        let block = Self {
            number: all >> 4,
            more: all & 8 != 0,
            exponent: (all & 7) as u8,
        };
        // 7 is reserved.
        (block.exponent <= LARGEST).then_some(block)
    }

    /// The option's value: an integer without leading zeros.
    pub(super) fn value(self) -> Vec<u8> {
        let all = (self.number << 4) | (u32::from(self.more) << 3) | u32::from(self.exponent);
        let bytes = all.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes[zeros..].to_vec()
    }

    /// Bytes of a block of this kind that is not the last one.
    pub(super) fn size(self) -> usize {
        size(self.exponent)
    }

    /// Where it begins, in bytes.
    pub(super) fn offset(self) -> usize {
        self.number as usize * self.size()
    }

    /// The piece of `body` at `offset`, which begins a block of this size; none if nothing is there.
    pub(super) fn of(body: &[u8], offset: usize, exponent: u8) -> Option<(Self, &[u8])> {
        let rest = body
            .get(offset..)
            .filter(|rest| offset == 0 || !rest.is_empty())?;
        let piece = &rest[..rest.len().min(size(exponent))];
        let number = u32::try_from(offset / size(exponent)).ok()?;
        let block = Self {
            number,
            more: piece.len() < rest.len(),
            exponent,
        };
        (number <= LAST).then_some((block, piece))
    }
}

/// Bytes of a block with this exponent.
pub(super) fn size(exponent: u8) -> usize {
    16 << exponent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_written() {
        for (value, number, more, exponent) in [
            (&[][..], 0, false, 0),
            (&[0x0e], 0, true, 6),
            (&[0x16], 1, false, 6),
            (&[0x10, 0x02], 256, false, 2),
            (&[0xff, 0xff, 0xfe], LAST, true, 6),
        ] {
            let block = Block {
                number,
                more,
                exponent,
            };
            assert_eq!(Block::read(value), Some(block));
            assert_eq!(block.value(), value);
        }
        for wrong in [&[0x07][..], &[0x0f], &[0, 0, 0, 1]] {
            assert_eq!(Block::read(wrong), None);
        }
    }

    #[test]
    fn pieces_are_those_of_the_body() {
        let body: Vec<u8> = (0..40).collect();
        let pieces: Vec<_> = [0, 16, 32]
            .into_iter()
            .filter_map(|offset| Block::of(&body, offset, 0))
            .map(|(block, piece)| (block.number, block.more, piece.len(), block.offset()))
            .collect();
        assert_eq!(
            pieces,
            [(0, true, 16, 0), (1, true, 16, 16), (2, false, 8, 32)]
        );
        assert_eq!(Block::of(&body, 48, 0), None);
        assert_eq!(Block::of(&body, 40, 0), None);
        let (empty, piece) = Block::of(&[], 0, LARGEST).expect("an empty body has a block");
        assert!(!empty.more && piece.is_empty());
    }
}
