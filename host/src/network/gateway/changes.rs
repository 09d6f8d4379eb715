//! What changes about a sandbox's network while it runs, and what is counted.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Gateway;
use crate::SandboxError;
use crate::network::Purpose;
use crate::network::connections::Connection;
use crate::network::rules::{self, Entry, entries};
use crate::network::sandbox::{tcp_socket, within};
use crate::protocol::{Counters, KernelPolicy, Key, Prefix, Resolved};

/// For this long after a change of rules, packets may still be judged by the old ones.
const IN_FLIGHT: Duration = Duration::from_millis(2);

impl Gateway {
    /// Replaces a sandbox's policy, and cuts what it does not allow.
    pub(in crate::network) fn set_policy(
        &mut self,
        key: Key,
        policy: &KernelPolicy,
    ) -> Result<(), SandboxError> {
        let failed = |error: io::Error| SandboxError::step("network", error);
        let sandbox = self.sandboxes.get_mut(&key).ok_or(SandboxError::Gone)?;
        let resolved = until(&policy.resolved);
        if resolved.len() > rules::RESOLVED_ENTRIES as usize {
            return Err(SandboxError::specification(
                "too many addresses are allowed",
            ));
        }
        rules::replace(
            &self.nftables,
            sandbox.slot,
            &self.addresses,
            &sandbox.limits,
            policy,
        )
        .map_err(failed)?;
        sandbox.limits = policy.limits;
        sandbox.resolved = resolved;
        let mark = self.addresses.mark(sandbox.slot);
        for pause in [Duration::ZERO, IN_FLIGHT] {
            sleep(pause);
            for connection in self.connections.with_mark(mark).map_err(failed)? {
                if !allows(policy, &self.permitted, &connection) {
                    // Where the kernel cannot, the next packet tells whoever sends it.
                    let _ = sandbox.sockets.end(&connection);
                    self.connections.cut(&connection).map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    /// Allows an address that a name resolved to.
    pub(in crate::network) fn allow(
        &mut self,
        key: Key,
        resolved: &Resolved,
    ) -> Result<(), SandboxError> {
        if !resolved.is_acceptable() || resolved.ttl.is_zero() {
            return Err(SandboxError::specification(
                "the ports or the time are not acceptable",
            ));
        }
        let sandbox = self.sandboxes.get_mut(&key).ok_or(SandboxError::Gone)?;
        let mut entries = until(std::slice::from_ref(resolved));
        // The longer time counts.
        entries.retain(|entry, at| sandbox.resolved.get(entry).is_none_or(|until| until < at));
        if sandbox.resolved.len() + entries.len() > rules::RESOLVED_ENTRIES as usize {
            let now = Instant::now();
            sandbox.resolved.retain(|_, until| *until > now);
            if sandbox.resolved.len() + entries.len() > rules::RESOLVED_ENTRIES as usize {
                return Err(SandboxError::specification(
                    "too many addresses are allowed",
                ));
            }
        }
        let (known, new) = entries
            .keys()
            .partition::<Vec<_>, _>(|entry| sandbox.resolved.contains_key(entry));
        rules::allow(&self.nftables, sandbox.slot, resolved, &known, &new)
            .map_err(|error| SandboxError::step("network", error))?;
        sandbox.resolved.extend(entries);
        Ok(())
    }

    /// A TCP socket in a sandbox's network namespace. What it sends is subject to that sandbox's rules, limits and counters.
    pub(in crate::network) fn socket(
        &self,
        key: Key,
        purpose: Purpose,
    ) -> Result<OwnedFd, SandboxError> {
        let sandbox = self.sandboxes.get(&key).ok_or(SandboxError::Gone)?;
        within(&sandbox.namespace, || tcp_socket(purpose))
            .map_err(|error| SandboxError::step("socket", error))
    }

    /// What the kernel has counted.
    pub(in crate::network) fn count(&self, key: Key) -> Result<Counters, SandboxError> {
        let sandbox = self.sandboxes.get(&key).ok_or(SandboxError::Gone)?;
        let [out, inward, connections, refused] = rules::counted(&self.nftables, sandbox.slot)
            .map_err(|error| SandboxError::step("network", error))?;
        Ok(Counters {
            bytes_out: out.0,
            packets_out: out.1,
            bytes_in: inward.0,
            packets_in: inward.1,
            connections: connections.1,
            refused: refused.1,
        })
    }
}

/// Whether a policy lets a connection that has begun go on.
fn allows(policy: &KernelPolicy, permitted: &[Prefix], connection: &Connection) -> bool {
    let (address, protocol, port) = (connection.address, connection.protocol, connection.port);
    let by_name = |resolved: &Resolved| {
        (resolved.address, resolved.protocol) == (address, protocol)
            && (resolved.is_any_port() || resolved.ports.contains(&port))
    };
    let is_public = !permitted.iter().any(|prefix| prefix.contains(address));
    ((policy.internet || policy.dry_run) && is_public)
        || policy
            .allow
            .iter()
            .any(|allowed| allowed.contains(address, protocol, port))
        || policy.resolved.iter().any(by_name)
}

/// Until when the entries of addresses are valid.
pub(super) fn until(all: &[Resolved]) -> HashMap<Entry, Instant> {
    let now = Instant::now();
    all.iter()
        .filter(|resolved| !resolved.ttl.is_zero())
        .flat_map(|resolved| entries(resolved).map(move |entry| (entry, now + resolved.ttl)))
        .collect()
}
