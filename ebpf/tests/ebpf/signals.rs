//! Programs are loaded although signals arrive meanwhile.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use crate::{can_run, load};

/// Between two signals: several arrive while one program is being loaded.
const PAUSE: Duration = Duration::from_micros(200);

/// Lets a signal arrive that does nothing: one that is ignored would not be pending for anybody.
fn take_usr1() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all zeroes is a valid `sigaction`: no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler does nothing, so it may run at any point of any thread; `action` outlives the call.
    let set = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
    assert_eq!(set, 0);
}

fn signal(thread: i32) {
    let process = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: no memory is passed. A thread that has ended makes it an error, which nobody needs.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
}

#[test]
fn signals_do_not_keep_programs_from_being_loaded() {
    if !can_run() {
        return;
    }
    take_usr1();
    let (loading, loaded) = (AtomicI32::new(0), AtomicBool::new(false));
    let sent = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent = 0_u64;
            while !loaded.load(Ordering::Acquire) {
                let thread = loading.load(Ordering::Acquire);
                if thread != 0 {
                    signal(thread);
                    sent += 1;
                }
                std::thread::sleep(PAUSE);
            }
            sent
        });
        let loads = scope.spawn(|| {
            loading.store(
                rustix::thread::gettid().as_raw_nonzero().get(),
                Ordering::Release,
            );
            for _ in 0..5 {
                drop(load());
            }
        });
        let result = loads.join();
        loaded.store(true, Ordering::Release);
        let sent = sender.join().expect("no panic");
        result.expect("all programs were loaded");
        sent
    });
    assert!(sent > 0);
}
