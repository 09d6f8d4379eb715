//! The system calls that no safe wrapper offers: inherited descriptors, the SIGCHLD handler, C stdio.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::Pid;

/// Where a fork went on.
pub enum Forked<T> {
    /// In the parent.
    Parent(Pid),
    /// In the child, with the language's runtime in order and what was done first.
    Child(T),
}

/// Whether this process has a single thread, by the kernel's word.
#[must_use]
pub fn is_single_threaded() -> bool {
    // A directory has two links and one for each directory in it: here, a thread.
    rustix::fs::stat("/proc/self/task").is_ok_and(|stat| stat.st_nlink == 3)
}

/// An address in the memory that is this thread's alone, and that the kernel writes to as well (rseq(2)).
#[must_use]
pub fn thread_local_address() -> usize {
    // SAFETY: returns the address of the thread's errno, which is always there.
    unsafe { libc::__errno_location() }.addr()
}

/// For each page of a range, whether it is in memory: in the lowest bit of its byte.
///
/// # Errors
/// Nothing is mapped there.
pub fn residency(range: &Range<usize>, pages: &mut [u8]) -> io::Result<()> {
    assert!(range.len().div_ceil(rustix::param::page_size()) <= pages.len());
    // SAFETY: the kernel writes a byte for each page of the range, and there is room for as many.
    let result = unsafe {
        libc::mincore(
            ptr::with_exposed_provenance_mut(range.start),
            range.len(),
            pages.as_mut_ptr(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Runs something that no signal handler interrupts.
pub fn with_signals_blocked<T>(run: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: sigfillset initialises the set before it is used; the old mask is written by the call, which cannot fail with
    // these arguments, before it is read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = run();
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}

/// Takes over a descriptor that the process was started with and makes it close-on-exec.
///
/// # Errors
/// It is not open.
pub fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_SETFD touches no memory; a descriptor that is not open is EBADF.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open (just checked) and, by the start-up contract, nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A descriptor by its number, if it is open. Borrowed: for immediate use only, since others may close it.
#[must_use]
pub fn borrow(fd: RawFd) -> Option<BorrowedFd<'static>> {
    // SAFETY: F_GETFD touches no memory; a descriptor that is not open is EBADF.
    if fd < 0 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it is open (just checked). A stale one would lead to an error or another file, and never to memory.
    Some(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Puts `new` under the number `old`, closed on exec or not.
///
/// # Errors
/// The kernel refused.
pub fn replace(new: &OwnedFd, old: RawFd, close_on_exec: bool) -> io::Result<()> {
    let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 };
    // SAFETY: dup3 touches no memory. Who owns the number `old` goes on owning it.
    if unsafe { libc::dup3(new.as_raw_fd(), old, flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Writes out what C code has printed and buffered.
pub fn flush_c_streams() {
    // SAFETY: fflush takes each stream's own lock; a null pointer means all streams. There is no one to report an error
    // to.
    unsafe { libc::fflush(ptr::null_mut()) };
}

/// The eventfd that the SIGCHLD handler writes to, or -1.
static CHILD_BELL: AtomicI32 = AtomicI32::new(-1);

/// What SIGCHLD did before [`watch_children`], for the children to have it back.
pub struct ChildSignal(libc::sigaction);

/// Lets SIGCHLD do what it does in a new process: an ignored or blocked one may have been inherited, and breaks
/// `subprocess`, `child_process` and their like.
///
/// # Errors
/// The kernel refused, which it has no reason to.
pub fn reset_child_signal() -> io::Result<()> {
    set_child_signal(&action(libc::SIG_DFL))?;
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set before it is used; the old mask is not asked for.
    let result = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut())
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(result))
    }
}

/// Rings `bell`, an eventfd, whenever a child ends. It must stay open until [`ChildSignal::restore`].
///
/// A handler and not a signalfd: a function's threads, started during the import, would take the signal away from a
/// signalfd, and a blocked SIGCHLD would be inherited by every program that the function starts.
///
/// # Errors
/// The kernel refused, which it has no reason to.
pub fn watch_children(bell: RawFd) -> io::Result<ChildSignal> {
    CHILD_BELL.store(bell, Ordering::Relaxed);
    set_child_signal(&action(on_child as *const () as libc::sighandler_t))
}

impl ChildSignal {
    /// Puts back what was there before.
    pub fn restore(&self) {
        // It was in force before, so the kernel accepts it.
        let _ = set_child_signal(&self.0);
    }
}

fn action(handler: libc::sighandler_t) -> libc::sigaction {
    // SAFETY: sigaction is a C struct of integers and an optional function pointer: zero is a valid value, with an
    // empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
    action
}

fn set_child_signal(new: &libc::sigaction) -> io::Result<ChildSignal> {
    let mut old = MaybeUninit::uninit();
    // SAFETY: both point to a sigaction; the handler set is SIG_DFL, one that was in force, or `on_child`.
    if unsafe { libc::sigaction(libc::SIGCHLD, new, old.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a successful sigaction has written it.
    Ok(ChildSignal(unsafe { old.assume_init() }))
}

extern "C" fn on_child(_signal: libc::c_int) {
    let bell = CHILD_BELL.load(Ordering::Relaxed);
    if bell < 0 {
        return;
    }
    // SAFETY: `bell` is open for as long as this handler is installed (contract of `watch_children`).
    let bell = unsafe { BorrowedFd::borrow_raw(bell) };
    // rustix calls the kernel directly, which neither takes a lock nor touches errno. A full counter rings as well.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// Forks a child that ends at once, and waits for its end: all that happens is what libraries do when a fork comes. SIGCHLD
/// says nothing of it.
pub fn fork_in_vain() {
    let Ok(before) = set_child_signal(&action(libc::SIG_DFL)) else {
        return;
    };
    // SAFETY: the child runs nothing but `_exit`; what libraries registered to run at a fork is made for a fork at any moment.
    let child = match unsafe { libc::fork() } {
        // SAFETY: `_exit` runs nothing of this process.
        0 => unsafe { libc::_exit(0) },
        child => Pid::from_raw(child.max(0)),
    };
    // It fails without memory or process numbers.
    if let Some(child) = child {
        // It may be reaped by a thread of the function's that waits for any child.
        let _ = rustix::io::retry_on_intr(|| {
            rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty())
        });
    }
    before.restore();
}

/// OpenSSL's `void RAND_seed(const void *, int)`, in all of its versions and descendants.
#[derive(Debug, Clone, Copy)]
pub struct RandSeed(RandSeedFn);

type RandSeedFn = unsafe extern "C" fn(*const libc::c_void, libc::c_int);

impl RandSeed {
    /// The symbol of a loaded library, or of the program itself; nothing if neither has it.
    #[must_use]
    pub fn find(library: Option<&CStr>) -> Option<Self> {
        let handle = match library {
            None => libc::RTLD_DEFAULT,
            // SAFETY: nothing is loaded (RTLD_NOLOAD), so nothing of the library's runs.
            Some(path) => unsafe {
                let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
                if handle.is_null() {
                    return None;
                }
                // Never closed: the library stays loaded.
                handle
            },
        };
        // SAFETY: the handle is a loaded library's, or the one for all of the program's symbols; the name ends with a zero.
        let found = unsafe { libc::dlsym(handle, c"RAND_seed".as_ptr()) };
        if found.is_null() {
            return None;
        }
        // SAFETY: a function of this name is OpenSSL's.
        Some(Self(unsafe {
            std::mem::transmute::<*mut libc::c_void, RandSeedFn>(found)
        }))
    }

    /// Reseeds OpenSSL's generators, mixing in `seed`.
    pub fn call(self, seed: &[u8]) {
        if let Ok(length) = libc::c_int::try_from(seed.len()) {
            // SAFETY: it reads `length` bytes there, and takes its own locks.
            unsafe { (self.0)(seed.as_ptr().cast(), length) };
        }
    }
}
