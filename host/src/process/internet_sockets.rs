//! The sockets that the server may make: it asks DNS servers for what functions may ask for.

use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::filter::Failure;

/// TCP and UDP over IPv4 and IPv6.
pub(super) fn internet_sockets() -> Result<Vec<SeccompRule>, Failure> {
    /// What `socket` takes beside the type, in the same argument.
    const FLAGS: i32 = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let mut rules = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM] {
            let is = |argument, operation, value: i32| {
                let value = u64::from(value.cast_unsigned());
                SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
            };
            let but_flags = SeccompCmpOp::MaskedEq(u64::from((!FLAGS).cast_unsigned()));
            rules.push(SeccompRule::new(vec![
                is(0, SeccompCmpOp::Eq, family)?,
                is(1, but_flags, kind)?,
                is(2, SeccompCmpOp::Eq, 0)?,
            ])?);
        }
    }
    Ok(rules)
}
