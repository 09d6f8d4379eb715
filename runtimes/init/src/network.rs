//! The sandbox's network: its own loopback, and what the gateway adds to it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use hearth_init::{NETWORK, wire};

use crate::error::JailError;
use crate::sys;

/// Most connections of the sandbox that are over and still remembered (`TIME_WAIT`). Protects kernel memory that no cgroup
/// counts and the table that all network namespaces share: without it, connecting in a loop would leave 100,000 and more.
/// 4,096 of them take a MiB; past that, the kernel forgets a connection at once.
const FINISHED_CONNECTIONS: (&str, &str) = ("/proc/sys/net/ipv4/tcp_max_tw_buckets", "4096");

/// Switches the loopback on in this process's network namespace, which must be the sandbox's own, with its own `/proc`.
pub fn bring_up() -> Result<(), JailError> {
    sys::loopback_up().map_err(JailError::network("bringing up the loopback"))?;
    let (path, most) = FINISHED_CONNECTIONS;
    match fs::write(path, most) {
        // Kernels before 6.1 have that table for all network namespaces together, and its limit with it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        written => written.map_err(JailError::network(path)),
    }
}

/// Waits until the host process says that the gateway has added the way out that the function has. False when it is gone.
pub fn wait(control: &OwnedFd) -> Result<bool, JailError> {
    let mut command = [0; 16];
    let (length, _) = wire::receive(control, &mut command).map_err(JailError::Control)?;
    match &command[..length] {
        [] => Ok(false),
        [NETWORK] => Ok(true),
        _ => Err(JailError::Spec("not the news of a network".into())),
    }
}
