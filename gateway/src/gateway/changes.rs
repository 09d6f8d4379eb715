//! Changes to a live sandbox's network, and its counters.

use std::collections::HashMap;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hearth_host::SandboxError;
use hearth_host::protocol::Key;

use super::Gateway;
use crate::connections::Connection;
use crate::protocol::{Counters, KernelPolicy, Prefix, Resolved};
use crate::rules::{self, Entry, entries};

/// For how long after a change of rules the old ones may still apply to packets.
const IN_FLIGHT: Duration = Duration::from_millis(2);

impl Gateway {
    /// Replaces a sandbox's policy and closes connections that it does not allow.
    pub(crate) fn set_policy(
        &mut self,
        key: Key,
        policy: &KernelPolicy,
    ) -> Result<(), SandboxError> {
        let failed = |error: io::Error| SandboxError::step("network", error);
        let sandbox = self.sandboxes.get_mut(&key).ok_or(SandboxError::Gone)?;
        if policy.group != sandbox.group {
            return Err(SandboxError::specification("a sandbox stays in its group"));
        }
        let resolved = until(&policy.resolved);
        if resolved.len() > rules::RESOLVED_ENTRIES as usize {
            return Err(SandboxError::specification(
                "too many addresses are allowed",
            ));
        }
        let change = self.groups.set(sandbox.group, key, policy.limits);
        if let Ok(fast) = &mut self.fast {
            fast.pause(sandbox.slot);
        }
        let replaced = rules::replace(
            &self.nftables,
            sandbox.slot,
            policy,
            &self.permitted,
            change,
        );
        if let Err(error) = replaced {
            self.groups.set(sandbox.group, key, sandbox.limits);
            return Err(failed(error));
        }
        sandbox.limits = policy.limits;
        sandbox.resolved = resolved;
        if let Ok(fast) = &mut self.fast {
            fast.change(sandbox.group, self.groups.limits(sandbox.group));
            fast.set_policy(sandbox.slot, policy);
        }
        let source = self.addresses.of(sandbox.slot);
        let mark = self.addresses.mark(sandbox.slot);
        for pause in [Duration::ZERO, IN_FLIGHT] {
            sleep(pause);
            for connection in self.connections.with_mark(mark).map_err(failed)? {
                if !allows(policy, &self.permitted, &connection) {
                    // If the kernel cannot, the next packet gets a reset.
                    let _ = sandbox.sockets.end(&connection);
                    self.connections.cut(&connection).map_err(failed)?;
                }
            }
            if let Ok(fast) = &mut self.fast {
                fast.cut(sandbox.slot, &sandbox.sockets, source, |connection| {
                    allows(policy, &self.permitted, connection)
                });
            }
        }
        Ok(())
    }

    /// Allows an address of a resolved name.
    pub(crate) fn allow(&mut self, key: Key, resolved: &Resolved) -> Result<(), SandboxError> {
        if !resolved.is_acceptable() || resolved.ttl.is_zero() {
            return Err(SandboxError::specification(
                "the ports or the time are not acceptable",
            ));
        }
        let sandbox = self.sandboxes.get_mut(&key).ok_or(SandboxError::Gone)?;
        let mut entries = until(std::slice::from_ref(resolved));
        // The later expiry counts.
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
        if let Ok(fast) = &mut self.fast {
            fast.allow(sandbox.slot, resolved);
        }
        Ok(())
    }

    /// Reads the kernel's counters.
    pub(crate) fn count(&self, key: Key) -> Result<Counters, SandboxError> {
        let sandbox = self.sandboxes.get(&key).ok_or(SandboxError::Gone)?;
        let [out, inward, connections, refused] = rules::counted(&self.nftables, sandbox.slot)
            .map_err(|error| SandboxError::step("network", error))?;
        let mut counters = Counters {
            bytes_out: out.0,
            packets_out: out.1,
            bytes_in: inward.0,
            packets_in: inward.1,
            connections: connections.1,
            refused: refused.1,
            fast: 0,
        };
        if let Ok(fast) = &self.fast {
            fast.count(sandbox.slot, &mut counters);
        }
        Ok(counters)
    }
}

/// Whether a policy lets an established connection continue.
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

/// When the entries of addresses expire.
pub(super) fn until(all: &[Resolved]) -> HashMap<Entry, Instant> {
    let now = Instant::now();
    all.iter()
        .filter(|resolved| !resolved.ttl.is_zero())
        .flat_map(|resolved| entries(resolved).map(move |entry| (entry, now + resolved.ttl)))
        .collect()
}
