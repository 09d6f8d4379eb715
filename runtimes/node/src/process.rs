//! What the JavaScript half needs to know of, or do to, its own process.

use std::fmt::Display;

use hearth_worker::sys::Forked;
use napi::Env;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use rustix::io::retry_on_intr;
use rustix::process::{WaitOptions, waitpid};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::{memory, sys};

/// Longest life of the probe's child, in seconds: one that hangs is ended by SIGALRM.
const PROBE_SECONDS: u32 = 10;

/// Ends the process at once, without Node's own way out.
#[napi]
pub fn exit_now(status: i32) {
    leave(status);
}

/// What C code has printed goes out first.
pub(crate) fn leave(status: i32) -> ! {
    hearth_worker::sys::flush_c_streams();
    sys::exit_now(status)
}

/// Forks once, without any server, for the probe that asks whether this Node can be forked. Returns "child" in the child,
/// and in the parent how the child ended: the empty string when it ended with status 0.
#[napi]
pub fn fork_and_wait(env: &Env) -> napi::Result<String> {
    memory::copy_all_on_fork().map_err(failed)?;
    let forked = sys::fork(env, || sys::alarm(PROBE_SECONDS))?.map_err(failed)?;
    let Forked::Parent(pid) = forked else {
        return Ok("child".into());
    };
    let (_, status) = retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()))
        .map_err(failed)?
        .ok_or_else(|| failed("the child was not found"))?;
    Ok(match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => String::new(),
        (Some(code), _) => format!("it exited with status {code}"),
        (None, signal) => format!("it was killed by signal {}", signal.unwrap_or_default()),
    })
}

fn failed(error: impl Display) -> napi::Error {
    napi::Error::from_reason(error.to_string())
}

/// A random number from 0 to 2^32 - 1 straight from the kernel: nothing that a fork could share.
#[napi]
pub fn random_word() -> napi::Result<u32> {
    let mut bytes = [0; size_of::<u32>()];
    // So few bytes come whole (getrandom(2)).
    retry_on_intr(|| getrandom(&mut bytes, GetRandomFlags::empty()))
        .map_err(|errno| failed(format!("no randomness: {errno}")))?;
    Ok(u32::from_ne_bytes(bytes))
}

/// Random bytes straight from the kernel.
#[napi]
pub fn random_bytes(length: u32) -> napi::Result<Uint8Array> {
    let mut bytes = vec![0; length as usize];
    let mut rest = bytes.as_mut_slice();
    while !rest.is_empty() {
        let filled = retry_on_intr(|| getrandom(&mut *rest, GetRandomFlags::empty()))
            .map_err(|errno| failed(format!("no randomness: {errno}")))?;
        rest = &mut rest[filled..];
    }
    Ok(Uint8Array::new(bytes))
}
