//! Times V8's garbage collections.
//!
//! `PerformanceObserver` tells of a collection only in a later turn of the event loop, when the invocation may be answered. So
//! this hooks into V8 itself, whose methods Node exports to its addons. They are looked up by name, because they belong to no stable
//! interface: a Node without them reports no pauses.

use std::ffi::{CStr, c_int, c_void};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use hearth_abi::counters::paused;
use hearth_abi::monotonic_ns;
use napi_derive::napi;

/// `v8::Isolate::GetCurrent()`.
const CURRENT: &CStr = c"_ZN2v87Isolate10GetCurrentEv";
/// `v8::Isolate::AddGCPrologueCallback(GCCallback, GCType)`.
const ADD_PROLOGUE: &CStr =
    c"_ZN2v87Isolate21AddGCPrologueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEES2_";
/// `v8::Isolate::AddGCEpilogueCallback(GCCallback, GCType)`.
const ADD_EPILOGUE: &CStr =
    c"_ZN2v87Isolate21AddGCEpilogueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEES2_";

/// Scavenges, minor and full mark-sweeps of `v8::GCType`: those that stop the function from their prologue to their epilogue.
const STOPPING: c_int = 1 | 2 | 4;

/// A `v8::Isolate`, which is never looked into.
type Isolate = *mut c_void;
/// A `v8::Isolate::GCCallback`. Its enumerations are passed as `int`.
type Callback = unsafe extern "C" fn(Isolate, c_int, c_int);

/// When the collection that runs began; 0 while none does.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// Called by V8 before a collection. JavaScript must not run here, and does not.
unsafe extern "C" fn begins(_: Isolate, _: c_int, _: c_int) {
    BEGAN.store(monotonic_ns(), Ordering::Relaxed);
}

/// Called by V8 after it.
unsafe extern "C" fn ended(_: Isolate, _: c_int, _: c_int) {
    let began = BEGAN.swap(0, Ordering::Relaxed);
    if began != 0 {
        paused(monotonic_ns().saturating_sub(began));
    }
}

/// The address of what Node exports by this name; null if it does not.
fn exported(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero, and looking it up calls nothing.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Times the collections of this process' JavaScript from now on. Returns whether this Node lets it.
#[napi]
pub fn watch_collector() -> bool {
    let [current, before, after] = [CURRENT, ADD_PROLOGUE, ADD_EPILOGUE].map(exported);
    if current.is_null() || before.is_null() || after.is_null() {
        return false;
    }
    // SAFETY: a name of the Itanium C++ ABI includes the parameters, so a function that has it takes these; a method takes its
    // object first. The result of the first is not part of the name, but has been a pointer as long as V8 has had isolates.
    let (current, before, after) = unsafe {
        (
            mem::transmute::<*mut c_void, unsafe extern "C" fn() -> Isolate>(current),
            mem::transmute::<*mut c_void, unsafe extern "C" fn(Isolate, Callback, c_int)>(before),
            mem::transmute::<*mut c_void, unsafe extern "C" fn(Isolate, Callback, c_int)>(after),
        )
    };
    // SAFETY: this is called from JavaScript, so an isolate is entered on this thread. The callbacks are functions of this
    // addon, which Node does not unload before the process ends; they allocate nothing on V8's heap.
    unsafe {
        let isolate = current();
        before(isolate, begins, STOPPING);
        after(isolate, ended, STOPPING);
    }
    true
}
