//! The atomics of the ring's core: the processor's, or loom's when the core is being modelled.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Orders everything before it with everything after it: a sequentially consistent fence.
#[cfg(any(loom, miri, not(target_arch = "x86_64")))]
#[inline]
pub fn full_fence() {
    #[cfg(not(loom))]
    core::sync::atomic::fence(Ordering::SeqCst);
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// The same by a locked instruction, which costs a fraction of the `mfence` that the compiler chooses. No memory access
/// passes a locked instruction in either direction (AMD64 manual, volume 2, section 7.1; Intel SDM, volume 3,
/// section 9.2); it is Linux's `smp_mb()`, too. `mfence` adds only an order with non-temporal accesses, of which there are
/// none here.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[allow(unsafe_code)]
#[inline]
pub fn full_fence() {
    // SAFETY: the word at the stack's top is the function's own, and is written back as it was. Without `nomem` the
    // compiler moves no memory access across.
    unsafe { core::arch::asm!("lock or dword ptr [rsp], 0", options(nostack)) };
}
