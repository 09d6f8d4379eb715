//! Settings of network namespaces, below `/proc/sys/net`.

use std::fs;
use std::io;

/// Writes a setting of the calling thread's network namespace, if this kernel has it.
pub(super) fn set(name: &str, value: &str) -> io::Result<()> {
    match fs::write(format!("/proc/sys/net/{name}"), value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Whether the calling thread's network namespace has IPv6.
pub(super) fn has_ipv6() -> bool {
    let disabled = fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    disabled.is_ok_and(|disabled| disabled.trim() == "0")
}

/// Enables forwarding in the calling thread's network namespace, which is the host's.
pub(super) fn forward(has_ipv6: bool) -> io::Result<()> {
    const ALL6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";
    set("ipv4/ip_forward", "1")?;
    if !has_ipv6 || fs::read_to_string(ALL6)?.trim() != "0" {
        return Ok(());
    }
    // By default, a router ignores other routers' advertisements: keep the host's addresses.
    for entry in fs::read_dir("/proc/sys/net/ipv6/conf")?.flatten() {
        let accept = entry.path().join("accept_ra");
        if fs::read_to_string(&accept).is_ok_and(|value| value.trim() == "1") {
            fs::write(accept, "2")?;
        }
    }
    fs::write(ALL6, "1")
}
