//! Having processes that are stopped and have not run yet do what only they can: install the system call filter, have
//! its memory filled and marked. Besides `sys` and `uffd` the only module with `unsafe`.
//!
//! The kernel lets a thread install a filter only in itself. PID 1 therefore traces the stopped process, has it make the
//! calls that install the filter, and puts back what it was: registers and the few bytes of code that were replaced. All
//! threads of the process get the filter at once, or none.

#![allow(unsafe_code)]

mod arch;
mod still;

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::seccomp::FILTERS;
use crate::uffd::{self, Missing};

/// Memory that is mapped in the process for the filters while they are installed, in bytes: two programs of at most 4096
/// instructions of 8 bytes, and what points to them.
const SCRATCH: u64 = 2 * 4096 * 8 + 4096;

/// `MAP_DROPPABLE` (Linux 6.11 and later).
const MAP_DROPPABLE: libc::c_int = 0x08;

/// Runs `work` on a process that was told to stop, which stays stopped.
pub fn with_stopped(pid: Pid, work: impl FnOnce(&Stopped<'_>) -> io::Result<()>) -> io::Result<()> {
    still::wait_until(pid)?;
    let traced = Traced::seize(pid)?;
    let saved = traced.registers()?;
    let address = arch::code_address(&saved);
    let mut code = vec![0; arch::CODE.len()];
    traced.memory.read_exact_at(&mut code, address)?;
    traced.memory.write_all_at(arch::CODE, address)?;
    let done = work(&Stopped {
        traced: &traced,
        saved,
    });
    // Whatever came of it, the process is put back as it was. Of a process that has ended, the work tells more.
    let put_back = traced
        .memory
        .write_all_at(&code, address)
        .and_then(|()| traced.set_registers(&saved))
        .and_then(|()| traced.release());
    done.and(put_back)
}

/// A process that makes system calls by order.
pub struct Stopped<'a> {
    traced: &'a Traced,
    saved: arch::Registers,
}

impl Stopped<'_> {
    /// Access to its pages that are not there yet, if the kernel grants any. The process itself keeps none.
    pub fn missing_pages(&self) -> io::Result<Option<Missing>> {
        let call = |number, arguments| self.traced.call(&self.saved, number, arguments);
        let Ok(fd) = call(libc::SYS_userfaultfd, [uffd::FLAGS, 0, 0, 0, 0, 0]) else {
            return Ok(None);
        };
        let copy = uffd::descriptor_of(self.traced.pid, fd);
        call(libc::SYS_close, [fd, 0, 0, 0, 0, 0])?;
        Ok(copy.and_then(Missing::new).ok())
    }

    /// Writes to its memory.
    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.traced.memory.write_all_at(bytes, at)
    }

    /// Replaces a mapping by an empty one that the kernel may drop and wipes in forked children.
    pub fn make_droppable(&self, range: &Range<u64>, protection: u64) -> io::Result<()> {
        let flags = (libc::MAP_ANONYMOUS | libc::MAP_FIXED | MAP_DROPPABLE) as u64;
        let length = range.end - range.start;
        let arguments = [range.start, length, protection, flags, u64::MAX, 0];
        let start = self.traced.call(&self.saved, libc::SYS_mmap, arguments)?;
        if start != range.start {
            return Err(io::Error::other("it stopped elsewhere"));
        }
        Ok(())
    }

    /// Gives advice (`MADV_…`) on a range of its memory.
    pub fn advise(&self, range: &Range<u64>, advice: u32) -> io::Result<()> {
        let arguments = [range.start, range.end - range.start, advice.into(), 0, 0, 0];
        let call = self.traced.call(&self.saved, libc::SYS_madvise, arguments);
        call.map(drop)
    }

    /// Forbids it any change of the mappings in a range.
    pub fn seal(&self, range: &Range<u64>) -> io::Result<()> {
        let arguments = [range.start, range.end - range.start, 0, 0, 0, 0];
        let call = self.traced.call(&self.saved, libc::SYS_mseal, arguments);
        call.map(drop)
    }

    /// Installs the filters in all threads of the process.
    pub fn install_filters(&self) -> io::Result<()> {
        self.traced.install(&self.saved)
    }
}

/// A process under trace.
struct Traced {
    pid: Pid,
    memory: File,
}

impl Traced {
    fn seize(pid: Pid) -> io::Result<Self> {
        trace(libc::PTRACE_SEIZE, pid, 0)?;
        let traced = Self {
            pid,
            memory: File::options()
                .read(true)
                .write(true)
                .open(format!("/proc/{}/mem", pid.as_raw_nonzero()))?,
        };
        trace(libc::PTRACE_INTERRUPT, pid, 0)?;
        traced.wait_for_stop()?;
        Ok(traced)
    }

    fn install(&self, saved: &arch::Registers) -> io::Result<()> {
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let access = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let map = [0, SCRATCH, access, flags, u64::MAX, 0];
        let scratch = self.call(saved, libc::SYS_mmap, map)?;
        for program in FILTERS {
            let bytes: Vec<u8> = program
                .iter()
                .flat_map(|step| {
                    let [a, b] = step.code.to_ne_bytes();
                    let [k0, k1, k2, k3] = step.k.to_ne_bytes();
                    [a, b, step.jt, step.jf, k0, k1, k2, k3]
                })
                .collect();
            let at = scratch + 4096;
            if bytes.len() as u64 + 4096 > SCRATCH {
                return Err(io::Error::other("the filter is too long"));
            }
            // struct sock_fprog: a length and a pointer, padded to its alignment.
            let mut head = (program.len() as u64).to_ne_bytes().to_vec();
            head.extend_from_slice(&at.to_ne_bytes());
            self.memory.write_all_at(&head, scratch)?;
            self.memory.write_all_at(&bytes, at)?;
            let mode = u64::from(libc::SECCOMP_SET_MODE_FILTER);
            let all_threads: u64 = libc::SECCOMP_FILTER_FLAG_TSYNC;
            match self.call(
                saved,
                libc::SYS_seccomp,
                [mode, all_threads, scratch, 0, 0, 0],
            )? {
                0 => {}
                thread => {
                    return Err(io::Error::other(format!(
                        "thread {thread} has a filter of its own"
                    )));
                }
            }
        }
        self.call(saved, libc::SYS_munmap, [scratch, SCRATCH, 0, 0, 0, 0])
            .map(drop)
    }

    /// Has the process make one system call, using the code placed at its instruction pointer.
    fn call(&self, saved: &arch::Registers, number: i64, arguments: [u64; 6]) -> io::Result<u64> {
        let mut registers = *saved;
        arch::prepare(&mut registers, number, arguments);
        self.set_registers(&registers)?;
        // The trap after the call; what still comes of the stop before it is passed over.
        loop {
            trace(libc::PTRACE_CONT, self.pid, 0)?;
            let status = self.wait_for_stop()?;
            match status.stopping_signal() {
                Some(libc::SIGTRAP) if status.as_raw() >> 16 == 0 => break,
                Some(_) if status.as_raw() >> 16 != 0 => {}
                // One more than the one that has stopped all threads, which changes nothing for them.
                Some(libc::SIGSTOP) => {}
                signal => {
                    return Err(io::Error::other(format!("it met signal {signal:?}")));
                }
            }
        }
        match arch::result(&self.registers()?) {
            error @ -4095..0 => Err(io::Error::from_raw_os_error(-error as i32)),
            value => Ok(value as u64),
        }
    }

    fn release(self) -> io::Result<()> {
        // It stops again before it has run anything.
        trace(libc::PTRACE_DETACH, self.pid, Signal::STOP.as_raw() as u64)
    }

    /// Waits until it has stopped: at the interrupt, or at the trap after a call.
    fn wait_for_stop(&self) -> io::Result<WaitStatus> {
        let status = wait(self.pid)?;
        match status.stopped() {
            true => Ok(status),
            false => Err(io::Error::other("it ended while its filter was installed")),
        }
    }

    fn registers(&self) -> io::Result<arch::Registers> {
        let mut registers = MaybeUninit::<arch::Registers>::uninit();
        let mut place = libc::iovec {
            iov_base: registers.as_mut_ptr().cast(),
            iov_len: size_of::<arch::Registers>(),
        };
        trace_with(libc::PTRACE_GETREGSET, self.pid, &mut place)?;
        if place.iov_len != size_of::<arch::Registers>() {
            return Err(io::Error::other("it runs another architecture's code"));
        }
        // SAFETY: the kernel has filled all of it, by its word in `iov_len`; it is plain data.
        Ok(unsafe { registers.assume_init() })
    }

    fn set_registers(&self, registers: &arch::Registers) -> io::Result<()> {
        let mut copy = *registers;
        let mut place = libc::iovec {
            iov_base: (&raw mut copy).cast(),
            iov_len: size_of::<arch::Registers>(),
        };
        trace_with(libc::PTRACE_SETREGSET, self.pid, &mut place)
    }
}

fn wait(pid: Pid) -> io::Result<WaitStatus> {
    loop {
        match rustix::process::waitpid(
            Some(pid),
            WaitOptions::from_bits_retain(libc::__WALL as u32),
        ) {
            Ok(Some((_, status))) => return Ok(status),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A request without an address.
fn trace(request: libc::c_uint, pid: Pid, data: u64) -> io::Result<()> {
    // SAFETY: these requests (seize, interrupt, continue, detach) take a number and no memory of this process.
    let result =
        unsafe { libc::ptrace(request, pid.as_raw_nonzero().get(), 0_usize, data as usize) };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A request for the general registers.
fn trace_with(request: libc::c_uint, pid: Pid, place: &mut libc::iovec) -> io::Result<()> {
    const NT_PRSTATUS: usize = 1;
    // SAFETY: the kernel reads or writes at most `iov_len` bytes at `iov_base`, which the callers have pointed to a
    // register set of that size, and updates the length.
    let result = unsafe {
        libc::ptrace(
            request,
            pid.as_raw_nonzero().get(),
            NT_PRSTATUS,
            std::ptr::from_mut(place),
        )
    };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
