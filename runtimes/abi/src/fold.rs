//! CRC32 by folding, 64 bytes at a time, copying on the way: AVX-512 with VPCLMULQDQ.
//!
//! Source of the method: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
//! Intel, 2009; the constants are its bit-reflected ones, computed here. A 128-bit value `x` stands for a polynomial;
//! `D` bits further on it is worth `x.low * x^(D+32) + x.high * x^(D-32)`, modulo the CRC's polynomial, which is what
//! a fold adds to the block there.

use core::arch::x86_64::{
    __m128i, __m512i, __mmask64, _mm_and_si128, _mm_clmulepi64_si128, _mm_extract_epi32,
    _mm_set_epi64x, _mm_setr_epi32, _mm_srli_si128, _mm_ternarylogic_epi64, _mm_xor_si128,
    _mm256_set_epi64x, _mm256_setr_epi32, _mm256_xor_si256, _mm512_clmulepi64_epi128,
    _mm512_extracti32x4_epi32, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_set_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_ternarylogic_epi64,
};
use core::ptr;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::checksum::BLOCK;
use crate::frame::HeaderWords;

/// The CRC's polynomial, x^32 and all, lowest power first.
const POLYNOMIAL: i64 = 0x1_db71_0641;
/// x^64 divided by the polynomial, lowest power first: Barrett's constant.
const QUOTIENT: i64 = 0x1_f701_1641;
/// Three-way exclusive or, for `ternarylogic`.
const XOR3: i32 = 0x96;
/// Bytes that the long loop takes at once.
const STRIDE: usize = 4 * BLOCK;

/// x^`power` modulo the polynomial, lowest power first, in the upper 32 of 33 bits.
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

/// The two factors that fold over `bits`: for the lower half and for the upper.
const fn over(bits: u32) -> (i64, i64) {
    (power(bits + 32), power(bits - 32))
}

const OVER_128: (i64, i64) = over(128);
const OVER_256: (i64, i64) = over(256);
const OVER_384: (i64, i64) = over(384);
const OVER_512: (i64, i64) = over(512);
const OVER_2048: (i64, i64) = over(2048);
const X_64: i64 = power(64);

/// Proof that the processor has what the functions here need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fold(());

impl Fold {
    /// Asks the processor, once.
    #[inline]
    pub(crate) fn detect() -> Option<Self> {
        const UNKNOWN: u8 = 0;
        const ABSENT: u8 = 1;
        const PRESENT: u8 = 2;
        static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
        #[cold]
        fn ask() -> u8 {
            let has = is_x86_feature_detected!("vpclmulqdq")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("pclmulqdq");
            let answer = if has { PRESENT } else { ABSENT };
            ANSWER.store(answer, Ordering::Relaxed);
            answer
        }
        let answer = match ANSWER.load(Ordering::Relaxed) {
            UNKNOWN => ask(),
            known => known,
        };
        (answer == PRESENT).then_some(Self(()))
    }

    /// The checksum of `header` and `payload`.
    #[inline]
    pub(crate) fn sum(self, header: HeaderWords, payload: &[u8]) -> u32 {
        // SAFETY: `self` proves the features, the payload is readable, nothing is written.
        unsafe { run::<false>(header, payload.as_ptr(), ptr::null_mut(), payload.len()) }
    }

    /// Copies `len` bytes and sums them, each byte read once.
    ///
    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
    #[inline]
    pub(crate) unsafe fn copy(
        self,
        header: HeaderWords,
        from: *const u8,
        to: *mut u8,
        len: usize,
    ) -> u32 {
        // SAFETY: `self` proves the features, the caller vouches for the memory.
        unsafe { run::<true>(header, from, to, len) }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn four((low, high): (i64, i64)) -> __m512i {
    _mm512_set_epi64(high, low, high, low, high, low, high, low)
}

/// Folds each quarter of `value` over a distance and adds `next`.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold(value: __m512i, factors: __m512i, next: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<XOR3>(
        _mm512_clmulepi64_epi128::<0x00>(value, factors),
        _mm512_clmulepi64_epi128::<0x11>(value, factors),
        next,
    )
}

/// Reads, and writes if asked to, the block at `at`.
///
/// # Safety
/// The block lies in what the caller of [`run`] vouches for.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn block<const COPY: bool>(from: *const u8, to: *mut u8, at: usize) -> __m512i {
    // SAFETY: by the contract.
    unsafe {
        let value = _mm512_loadu_si512(from.add(at).cast());
        if COPY {
            _mm512_storeu_si512(to.add(at).cast(), value);
        }
        value
    }
}

/// Sums `header`, the bytes at `from` and zeros up to a whole block, and copies the bytes if asked to.
///
/// # Safety
/// The processor has the features; `from` is readable for `len` bytes and, if `COPY`, `to` is writable, without overlap.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,pclmulqdq,sse4.1")]
unsafe fn run<const COPY: bool>(
    header: HeaderWords,
    from: *const u8,
    to: *mut u8,
    len: usize,
) -> u32 {
    let over_512 = four(OVER_512);
    let [a, b, c, d] = header.map(u64::cast_signed);
    let header = _mm256_set_epi64x(d, c, b, a);
    // A CRC begins with all ones.
    let header = _mm256_xor_si256(header, _mm256_setr_epi32(-1, 0, 0, 0, 0, 0, 0, 0));
    // The header ends where the payload begins: it is the second half of a block before it.
    let mut sum = _mm512_inserti64x4::<1>(_mm512_setzero_si512(), header);
    let mut at = 0;
    if len >= STRIDE {
        let over_2048 = four(OVER_2048);
        // SAFETY: these four blocks lie before `len`.
        let mut sums = unsafe {
            [
                fold(sum, over_512, block::<COPY>(from, to, 0)),
                block::<COPY>(from, to, BLOCK),
                block::<COPY>(from, to, 2 * BLOCK),
                block::<COPY>(from, to, 3 * BLOCK),
            ]
        };
        at = STRIDE;
        while len - at >= STRIDE {
            for (index, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the block lies before `len`.
                let next = unsafe { block::<COPY>(from, to, at + index * BLOCK) };
                *sum = fold(*sum, over_2048, next);
            }
            at += STRIDE;
        }
        sum = fold(sums[0], over_512, sums[1]);
        sum = fold(sum, over_512, sums[2]);
        sum = fold(sum, over_512, sums[3]);
    }
    while len - at >= BLOCK {
        // SAFETY: the block lies before `len`.
        let next = unsafe { block::<COPY>(from, to, at) };
        sum = fold(sum, over_512, next);
        at += BLOCK;
    }
    if at < len {
        let mask: __mmask64 = u64::MAX >> (BLOCK - (len - at));
        // SAFETY: only the `len - at` bytes that the mask names are touched.
        let last = unsafe {
            let last = _mm512_maskz_loadu_epi8(mask, from.add(at).cast());
            if COPY {
                _mm512_mask_storeu_epi8(to.add(at).cast(), mask, last);
            }
            last
        };
        sum = fold(sum, over_512, last);
    }
    finish(quarters(sum))
}

/// Adds up the quarters of a block, each folded over what follows it.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,vpclmulqdq")]
fn quarters(sum: __m512i) -> __m128i {
    let factors = _mm512_set_epi64(
        0, 0, OVER_128.1, OVER_128.0, OVER_256.1, OVER_256.0, OVER_384.1, OVER_384.0,
    );
    let folded = fold(sum, factors, _mm512_setzero_si512());
    let three = _mm_ternarylogic_epi64::<XOR3>(
        _mm512_extracti32x4_epi32::<0>(folded),
        _mm512_extracti32x4_epi32::<1>(folded),
        _mm512_extracti32x4_epi32::<2>(folded),
    );
    _mm_xor_si128(three, _mm512_extracti32x4_epi32::<3>(sum))
}

/// Reduces 128 bits to the CRC: to 96, to 64, then Barrett's reduction.
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
fn finish(sum: __m128i) -> u32 {
    let low = _mm_setr_epi32(-1, 0, 0, 0);
    let factors = _mm_set_epi64x(X_64, OVER_128.1);
    let sum = _mm_xor_si128(
        _mm_srli_si128::<8>(sum),
        _mm_clmulepi64_si128::<0x00>(sum, factors),
    );
    let sum = _mm_xor_si128(
        _mm_srli_si128::<4>(sum),
        _mm_clmulepi64_si128::<0x10>(_mm_and_si128(sum, low), factors),
    );
    let barrett = _mm_set_epi64x(QUOTIENT, POLYNOMIAL);
    let quotient = _mm_clmulepi64_si128::<0x10>(_mm_and_si128(sum, low), barrett);
    let multiple = _mm_clmulepi64_si128::<0x00>(_mm_and_si128(quotient, low), barrett);
    !(_mm_extract_epi32::<1>(_mm_xor_si128(sum, multiple)).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_those_of_the_paper() {
        assert_eq!(OVER_512, (0x1_5444_2bd4, 0x1_c6e4_1596));
        assert_eq!(OVER_128, (0x1_7519_97d0, 0x0_ccaa_009e));
        assert_eq!(X_64, 0x1_63cd_6124);
    }
}
