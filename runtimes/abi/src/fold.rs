//! CRC32 by carry-less multiplication, 64 bytes at a time, copying on the way: AVX-512 with VPCLMULQDQ.
//!
//! Source of the folds: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
//! Intel, 2009; the constants are its bit-reflected ones, computed here. A 128-bit value `x` stands for a polynomial;
//! `D` bits further on it is worth `x.low * x^(D+32) + x.high * x^(D-32)`, modulo the CRC's polynomial, which is what
//! a fold adds to the block there.
//!
//! A short frame is all latency, so its end is shorter than the paper's: each 64-bit word of the last block and of the
//! header is multiplied at once by the power of x that its distance from the end makes of it, which leaves a sum of 96
//! bits; and those are reduced in one step. With the lowest bit as the constant term, the polynomial is a power series
//! that has an inverse; its first 64 terms times the sum's are the quotient, and what the quotient times the polynomial
//! does not cancel are the 32 bits of the remainder.

mod factors;

use core::arch::x86_64::{
    __m128i, __m512i, __mmask64, _mm_clmulepi64_si128, _mm_cvtsi32_si128, _mm_cvtsi64_si128,
    _mm_extract_epi32, _mm_set_epi64x, _mm_ternarylogic_epi64, _mm_xor_si128,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_xor_si256, _mm512_castsi512_si256,
    _mm512_clmulepi64_epi128, _mm512_extracti64x4_epi64, _mm512_loadu_si512,
    _mm512_maskz_loadu_epi8, _mm512_set_epi64, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512, _mm512_zextsi128_si512,
};
use core::ptr;
use core::sync::atomic::{AtomicU8, Ordering};

use self::factors::{
    INVERSE, LAST, ONES_LAST, OVER_512, OVER_1024, OVER_1536, OVER_2048, POLYNOMIAL, WORDS,
};
use crate::checksum::{BLOCK, Summed};

/// Three-way exclusive or, for `ternarylogic`.
const XOR3: i32 = 0x96;
/// Bytes that the long loop takes at once.
const STRIDE: usize = 4 * BLOCK;

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

    /// The checksum of `payload` and `header`.
    #[inline]
    pub(crate) fn sum(self, [a, b, c]: Summed, payload: &[u8]) -> u32 {
        // SAFETY: `self` proves the features, the payload is readable, nothing is written.
        unsafe { sum(a, b, c, payload.as_ptr(), payload.len()) }
    }

    /// Copies `len` bytes and zeros up to a whole block, and sums them, each byte read once.
    ///
    /// # Safety
    /// `from` is readable for `len` bytes and `to` writable for as many up to a whole block, and they do not overlap.
    #[inline]
    pub(crate) unsafe fn copy(
        self,
        [a, b, c]: Summed,
        from: *const u8,
        to: *mut u8,
        len: usize,
    ) -> u32 {
        // SAFETY: `self` proves the features, the caller vouches for the memory.
        unsafe { copy(a, b, c, from, to, len) }
    }
}

/// [`run`] without the copy.
///
/// # Safety
/// As for [`run`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,pclmulqdq,sse4.1")]
unsafe fn sum(a: u64, b: u64, c: u64, from: *const u8, len: usize) -> u32 {
    // SAFETY: by the contract.
    unsafe { run::<false>([a, b, c], from, ptr::null_mut(), len) }
}

/// [`run`] with the copy. The header's words travel in registers.
///
/// # Safety
/// As for [`run`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,pclmulqdq,sse4.1")]
unsafe fn copy(a: u64, b: u64, c: u64, from: *const u8, to: *mut u8, len: usize) -> u32 {
    // SAFETY: by the contract.
    unsafe { run::<true>([a, b, c], from, to, len) }
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

/// Reads `len` bytes, one to a whole block, and writes them and zeros up to a whole block if asked to.
///
/// # Safety
/// As many bytes are readable and, if `COPY`, a block is writable, without overlap.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn last<const COPY: bool>(from: *const u8, to: *mut u8, len: usize) -> __m512i {
    if len == BLOCK {
        // SAFETY: by the contract.
        return unsafe { block::<COPY>(from, to, 0) };
    }
    let mask: __mmask64 = u64::MAX >> (BLOCK - len);
    // SAFETY: only the bytes that the mask names are read, and `to` has room for a whole block.
    unsafe {
        let last = _mm512_maskz_loadu_epi8(mask, from.cast());
        if COPY {
            _mm512_storeu_si512(to.cast(), last);
        }
        last
    }
}

/// Sums the bytes at `from`, zeros up to a whole block, and `header`; and copies the bytes and the zeros if asked to.
///
/// # Safety
/// The processor has the features; `from` is readable for `len` bytes and, if `COPY`, `to` is writable for as many up to
/// a whole block, without overlap.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,pclmulqdq,sse4.1")]
unsafe fn run<const COPY: bool>(header: Summed, from: *const u8, to: *mut u8, len: usize) -> u32 {
    // A CRC begins with all ones.
    let ones = u64::from(u32::MAX);
    let [a, b, c] = header;
    if len == 0 {
        return finish(words([a ^ ones, b, c]));
    }
    if len <= BLOCK {
        // SAFETY: there are `len` bytes, and room for a block.
        let only = unsafe { last::<COPY>(from, to, len) };
        // The payload's words first: they are what the end waits for.
        let payload = quarters(only);
        let ones = _mm_set_epi64x(ONES_LAST.1, ONES_LAST.0);
        return finish(_mm_ternarylogic_epi64::<XOR3>(payload, words(header), ones));
    }
    let ones = _mm512_zextsi128_si512(_mm_cvtsi32_si128(-1));
    let over_512 = four(OVER_512);
    let (mut sum, mut at);
    if len >= 2 * STRIDE {
        let over_2048 = four(OVER_2048);
        // SAFETY: two strides are there.
        let mut sums = unsafe { [0, 1, 2, 3].map(|index| block::<COPY>(from, to, index * BLOCK)) };
        sums[0] = _mm512_xor_si512(sums[0], ones);
        at = STRIDE;
        while len - at >= STRIDE {
            for (index, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the block lies before `len`.
                let next = unsafe { block::<COPY>(from, to, at + index * BLOCK) };
                *sum = fold(*sum, over_2048, next);
            }
            at += STRIDE;
        }
        let far = fold(sums[0], four(OVER_1536), sums[3]);
        let near = fold(sums[1], four(OVER_1024), far);
        sum = fold(sums[2], over_512, near);
    } else {
        // SAFETY: a block is there.
        sum = _mm512_xor_si512(unsafe { block::<COPY>(from, to, 0) }, ones);
        at = BLOCK;
    }
    while len - at >= BLOCK {
        // SAFETY: the block lies before `len`.
        let next = unsafe { block::<COPY>(from, to, at) };
        sum = fold(sum, over_512, next);
        at += BLOCK;
    }
    if at < len {
        // SAFETY: `len - at` bytes are left, and room for a block.
        let next = unsafe { last::<COPY>(from.add(at), to.wrapping_add(at), len - at) };
        sum = fold(sum, over_512, next);
    }
    finish(_mm_xor_si128(quarters(sum), words(header)))
}

/// What the header's words are worth, in 96 bits.
#[inline]
#[target_feature(enable = "pclmulqdq,avx512f,avx512vl")]
fn words([a, b, c]: Summed) -> __m128i {
    let first = _mm_set_epi64x(b.cast_signed(), a.cast_signed());
    let factors = _mm_set_epi64x(WORDS[1], WORDS[0]);
    _mm_ternarylogic_epi64::<XOR3>(
        _mm_clmulepi64_si128::<0x00>(first, factors),
        _mm_clmulepi64_si128::<0x11>(first, factors),
        _mm_clmulepi64_si128::<0x00>(
            _mm_cvtsi64_si128(c.cast_signed()),
            _mm_cvtsi64_si128(WORDS[2]),
        ),
    )
}

/// What the words of the last block are worth, in 96 bits.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn quarters(sum: __m512i) -> __m128i {
    let [a, b, c, d, e, f, g, h] = LAST;
    let factors = _mm512_set_epi64(h, g, f, e, d, c, b, a);
    let words = _mm512_xor_si512(
        _mm512_clmulepi64_epi128::<0x00>(sum, factors),
        _mm512_clmulepi64_epi128::<0x11>(sum, factors),
    );
    let half = _mm256_xor_si256(
        _mm512_castsi512_si256(words),
        _mm512_extracti64x4_epi64::<1>(words),
    );
    _mm_xor_si128(
        _mm256_castsi256_si128(half),
        _mm256_extracti128_si256::<1>(half),
    )
}

/// Reduces 96 bits to the CRC.
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
fn finish(sum: __m128i) -> u32 {
    let factors = _mm_set_epi64x(POLYNOMIAL.cast_signed(), INVERSE.cast_signed());
    let quotient = _mm_clmulepi64_si128::<0x00>(sum, factors);
    let multiple = _mm_clmulepi64_si128::<0x10>(quotient, factors);
    !(_mm_extract_epi32::<2>(_mm_xor_si128(sum, multiple)).cast_unsigned())
}
