//! The constants of the folds, computed when this is compiled.

use crate::checksum::Summed;

/// The CRC's polynomial, x^32 and all, highest power in the lowest bit.
pub(super) const POLYNOMIAL: u64 = 0x1_db71_0641;
/// The first 64 terms of the polynomial's inverse as a power series.
pub(super) const INVERSE: u64 = inverse();
/// Bits of header that follow the payload.
const HEADER_BITS: u32 = 64 * size_of::<Summed>() as u32 / 8;

/// x^`power` modulo the polynomial, highest power in the lowest bit, in the upper 32 of 33 bits.
const fn power(power: u32) -> i64 {
    // Bit 31 is x^0 in this order; multiplying by x shifts towards x^31, which is bit 0.
    let mut value: u32 = 1 << 31;
    let mut step = 0;
    while step < power {
        value = if value & 1 == 1 {
            (value >> 1) ^ 0xedb8_8320
        } else {
            value >> 1
        };
        step += 1;
    }
    (value as i64) << 1
}

const fn inverse() -> u64 {
    let mut inverse: u64 = 0;
    // What the inverse so far leaves of 1.
    let mut rest: u64 = 1;
    let mut bit = 0;
    while bit < 64 {
        if rest >> bit & 1 == 1 {
            inverse |= 1 << bit;
            rest ^= POLYNOMIAL << bit;
        }
        bit += 1;
    }
    inverse
}

/// The two factors that fold over `bits`: for the lower half and for the upper.
const fn over(bits: u32) -> (i64, i64) {
    (power(bits + 32), power(bits - 32))
}

/// The factor of a word that `bits` follow.
const fn before(bits: u32) -> i64 {
    power(bits + 32)
}

pub(super) const OVER_512: (i64, i64) = over(512);
pub(super) const OVER_1024: (i64, i64) = over(1024);
pub(super) const OVER_1536: (i64, i64) = over(1536);
pub(super) const OVER_2048: (i64, i64) = over(2048);

/// The factors of the header's words.
pub(super) const WORDS: [i64; 3] = [before(128), before(64), before(0)];

/// The factors of the last block's eight words.
pub(super) const LAST: [i64; 8] = {
    let mut factors = [0; 8];
    let mut word = 0;
    while word < 8 {
        factors[word] = before(HEADER_BITS + 64 * (7 - word as u32));
        word += 1;
    }
    factors
};

/// What the ones that a CRC begins with are worth at the beginning of the last block, in 96 bits: low and high.
pub(super) const ONES_LAST: (i64, i64) = {
    let (mut low, mut high) = (0_u64, 0_u64);
    let mut bit = 0;
    while bit < 32 {
        low ^= LAST[0].cast_unsigned() << bit;
        high ^= ((LAST[0].cast_unsigned() as u128) << bit >> 64) as u64;
        bit += 1;
    }
    (low.cast_signed(), high.cast_signed())
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_those_of_the_paper() {
        assert_eq!(OVER_512, (0x1_5444_2bd4, 0x1_c6e4_1596));
        assert_eq!(over(128), (0x1_7519_97d0, 0x0_ccaa_009e));
        assert_eq!(before(32), 0x1_63cd_6124);
        // The paper's quotient of x^64 is as much of the inverse as Barrett's reduction of 64 bits takes.
        assert_eq!(INVERSE & 0x1_ffff_ffff, 0x1_f701_1641);
    }
}
