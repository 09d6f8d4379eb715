//! Node's event loop: renewed in a child, its clock, and the watch that keeps it from ever ending.
//!
//! **Why it must not end.** A loop with nothing to do returns to Node, which then waits for the tasks that V8 gave to
//! its worker threads. A forked child has no such threads, so a single task (compiling WebAssembly posts one,
//! single-threaded or not) would block it forever. The watch is a handle that keeps the loop alive and calls JavaScript
//! each time the loop has nothing left to do.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr;

use napi::bindgen_prelude::{FnArgs, Function, FunctionRef};
use napi::{Env, sys as napi_sys};
use napi_derive::napi;

/// libuv's `uv_loop_t`, which is never looked into.
#[repr(C)]
struct UvLoop([u8; 0]);

/// libuv's `uv_handle_t` and its kinds, which are never looked into.
#[repr(C)]
struct UvHandle([u8; 0]);

/// `UV_PREPARE` of `uv_handle_type`: called in each turn of the loop, before it sleeps.
const UV_PREPARE: c_int = 9;

// Node exports libuv to its addons.
unsafe extern "C" {
    fn uv_loop_fork(event_loop: *mut UvLoop) -> c_int;
    fn uv_loop_alive(event_loop: *const UvLoop) -> c_int;
    fn uv_update_time(event_loop: *mut UvLoop);
    fn uv_handle_size(kind: c_int) -> usize;
    fn uv_handle_set_data(handle: *mut UvHandle, data: *mut c_void);
    fn uv_handle_get_data(handle: *const UvHandle) -> *mut c_void;
    fn uv_ref(handle: *mut UvHandle);
    fn uv_unref(handle: *mut UvHandle);
    fn uv_prepare_init(event_loop: *mut UvLoop, handle: *mut UvHandle) -> c_int;
    fn uv_prepare_start(
        handle: *mut UvHandle,
        callback: unsafe extern "C" fn(*mut UvHandle),
    ) -> c_int;
}

/// The environment's event loop.
///
/// # Errors
/// It has none.
fn of(env: &Env) -> napi::Result<*mut UvLoop> {
    Ok(env.get_uv_event_loop()?.cast())
}

/// In a fresh child: gives the loop descriptors of its own, because the kernel shares an epoll set and its wake-ups
/// between parent and children.
///
/// # Errors
/// The environment has no event loop, or the kernel refused.
pub fn renew(env: &Env) -> napi::Result<()> {
    let event_loop = of(env)?;
    // SAFETY: the loop is this environment's, and a fresh child has one thread.
    started(unsafe { uv_loop_fork(event_loop) })
}

fn started(status: c_int) -> napi::Result<()> {
    if status < 0 {
        let error = io::Error::from_raw_os_error(-status);
        return Err(napi::Error::from_reason(error.to_string()));
    }
    Ok(())
}

/// Brings the loop's clock up to date: timers are set by it, and it stands still while a call blocks.
///
/// # Errors
/// The environment has no event loop.
pub fn update_time(env: &Env) -> napi::Result<()> {
    let event_loop = of(env)?;
    // SAFETY: the loop is this environment's, and this is its thread.
    unsafe { uv_update_time(event_loop) };
    Ok(())
}

/// What the watch's callback needs.
struct Watch {
    env: Env,
    event_loop: *mut UvLoop,
    on_dry: FunctionRef<FnArgs<(u32,)>, ()>,
    /// Consecutive rounds in which the loop had nothing left to do.
    rounds: u32,
}

/// Keeps the event loop going, and calls `on_dry` in each round that has nothing else to do (no timer, no socket,
/// no request to the thread pool), with the number of such rounds in a row. What `on_dry` does not begin, the loop then
/// waits for without end. Called once.
#[napi]
pub fn watch_event_loop(env: Env, on_dry: Function<'_, FnArgs<(u32,)>, ()>) -> napi::Result<()> {
    let event_loop = of(&env)?;
    let watch = Box::new(Watch {
        env,
        event_loop,
        on_dry: on_dry.create_ref()?,
        rounds: 0,
    });
    // SAFETY: the handle gets as many bytes as libuv asks for, aligned for any of its fields, and is never freed; neither
    // is what its data points to. The loop is this environment's, and this is its thread.
    let status = unsafe {
        let words = uv_handle_size(UV_PREPARE).div_ceil(size_of::<u128>());
        let handle = Box::leak(vec![0_u128; words].into_boxed_slice())
            .as_mut_ptr()
            .cast::<UvHandle>();
        uv_prepare_init(event_loop, handle);
        uv_handle_set_data(handle, Box::into_raw(watch).cast());
        uv_prepare_start(handle, on_prepare)
    };
    started(status)
}

unsafe extern "C" fn on_prepare(handle: *mut UvHandle) {
    // SAFETY: libuv passes the handle that was started above, whose data is a Watch that is never freed and used nowhere
    // else; the loop calls this on its own thread, and nothing here runs the loop.
    let (watch, alive) = unsafe {
        let watch = &mut *uv_handle_get_data(handle).cast::<Watch>();
        // Not counting the watch itself.
        uv_unref(handle);
        let alive = uv_loop_alive(watch.event_loop) != 0;
        uv_ref(handle);
        (watch, alive)
    };
    if alive {
        watch.rounds = 0;
        return;
    }
    watch.rounds = watch.rounds.saturating_add(1);
    let mut scope = ptr::null_mut();
    // SAFETY: the environment lives as long as its loop runs; the scope is closed below, after the values made in it.
    if unsafe { napi_sys::napi_open_handle_scope(watch.env.raw(), &mut scope) }
        != napi_sys::Status::napi_ok
    {
        return;
    }
    if let Ok(on_dry) = watch.on_dry.borrow_back(&watch.env) {
        // It only schedules; there is no one to report an error to.
        let _ = on_dry.call((watch.rounds,).into());
    }
    // SAFETY: opened above, and no value of it is used any more.
    unsafe { napi_sys::napi_close_handle_scope(watch.env.raw(), scope) };
}
