//! Sandboxes and their groups on the fast way: what they may begin, what they have, and what they have used.

use std::io;
use std::net::IpAddr;

use hearth_ebpf::clock;
use hearth_ebpf::gateway::{Connection, Limits, Policy};

use super::{Fast, network};
use crate::connections::{self, Sockets};
use crate::interfaces::Job;
use crate::protocol::{Counters, GroupId, KernelPolicy, NetworkLimits, Protocol, Resolved};
use crate::rules::entries;

impl Fast {
    /// What has failed leaves connections to the rules, all of them.
    pub(super) fn check(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.fail(&format!("a map or a program: {error}"));
        }
    }

    /// The group's limits are these now: it begins, or it ends where there are none.
    fn limit(&mut self, id: GroupId, limits: Option<NetworkLimits>) -> u32 {
        let known = self.groups.get(&id).copied();
        let index = known.unwrap_or_else(|| {
            let index = self.free.pop().unwrap_or(self.next);
            self.next = self.next.max(index + 1);
            index
        });
        let Some(limits) = limits else {
            self.groups.remove(&id);
            self.free.push(index);
            return index;
        };
        self.groups.insert(id, index);
        let limits = Limits {
            connections: limits.connections,
            new_per_second: limits.new_per_second,
            bytes_per_second: limits.bytes_per_second,
        };
        let done = self.programs.limit(index, limits, known.is_none());
        self.check(done);
        index
    }

    /// A sandbox has an interface. `limits` are those of its group. Its connections are the rules' until the programs are
    /// attached, which no start waits for: the kernel takes some 10 ms (`synchronize_rcu()` of tcx).
    pub(crate) fn attach(
        &mut self,
        slot: u32,
        policy: &KernelPolicy,
        limits: Option<NetworkLimits>,
    ) {
        let group = self.limit(policy.group, limits);
        self.sandboxes.insert(slot, policy.group);
        let begun = self.programs.begin_sandbox(slot as u16, group);
        self.check(begun);
        self.set_policy(slot, policy);
        // Without its worker it has no fast way.
        let _ = self.worker.send(Job::Attach(slot));
    }

    /// A sandbox's rules are gone: nothing of it is left here, either. `limits` are those of its group, if others are left in it.
    pub(crate) fn detach(&mut self, slot: u32, group: GroupId, limits: Option<NetworkLimits>) {
        if self.sandboxes.remove(&slot).is_some() {
            let told = &mut self.told;
            let ended = self
                .programs
                .end_sandbox(slot as u16, |event| told.tell(event));
            self.told.flush();
            self.check(ended);
        }
        if self.groups.contains_key(&group) {
            self.limit(group, limits);
        }
    }

    /// Leaves new connections of a sandbox to the rules, before these change.
    pub(crate) fn pause(&mut self, slot: u32) {
        let group = self.sandboxes.get(&slot).and_then(|id| self.groups.get(id));
        if let Some(group) = group {
            let paused = self.programs.pause(slot as u16, *group);
            self.check(paused);
        }
    }

    /// The limits of a group have changed.
    pub(crate) fn change(&mut self, group: GroupId, limits: Option<NetworkLimits>) {
        if self.groups.contains_key(&group) {
            self.limit(group, limits);
        }
    }

    /// The policy of a sandbox that is paused.
    pub(crate) fn set_policy(&mut self, slot: u32, policy: &KernelPolicy) {
        if !self.sandboxes.contains_key(&slot) {
            return;
        }
        let tcp = |protocol: Protocol| protocol == Protocol::Tcp;
        let names = policy.resolved.iter();
        let allowed = Policy {
            internet: policy.internet,
            networks: policy
                .allow
                .iter()
                .filter(|allowed| tcp(allowed.protocol))
                .map(|allowed| (network(&allowed.prefix), allowed.ports.clone()))
                .collect(),
            names: names
                .filter(|resolved| tcp(resolved.protocol) && !resolved.ttl.is_zero())
                .flat_map(ports)
                .collect(),
        };
        // What has no room is the rules'.
        if let Err(error) = self.programs.set_policy(slot as u16, &allowed) {
            tracing::debug!(%error, "a policy does not fit the maps");
        }
    }

    /// An address of a name.
    pub(crate) fn allow(&mut self, slot: u32, resolved: &Resolved) {
        if resolved.protocol == Protocol::Tcp && self.sandboxes.contains_key(&slot) {
            let ports: Vec<_> = ports(resolved).collect();
            // What has no room is the rules'.
            if let Err(error) = self.programs.allow(slot as u16, &ports) {
                tracing::debug!(%error, "an address does not fit the maps");
            }
        }
    }

    /// Cuts the connections of a sandbox that are not allowed any more.
    pub(crate) fn cut(
        &mut self,
        slot: u32,
        sockets: &Sockets,
        source: [IpAddr; 2],
        is_allowed: impl Fn(&connections::Connection) -> bool,
    ) {
        let tracked = |connection: &Connection| {
            let source = source[usize::from(connection.address.is_ipv6())];
            connections::Connection::tcp(
                (source, connection.source_port),
                (connection.address, connection.port),
            )
        };
        let told = &mut self.told;
        let cut = self.programs.cut(
            |connection| u32::from(connection.slot) == slot && !is_allowed(&tracked(connection)),
            |event| told.tell(event),
        );
        self.told.flush();
        match cut {
            Ok(cut) => {
                for connection in &cut {
                    // If the kernel cannot, the next packet gets a reset.
                    let _ = sockets.end(&tracked(connection));
                }
            }
            Err(error) => self.check(Err(error)),
        }
    }

    /// Adds what went this way.
    pub(crate) fn count(&self, slot: u32, counters: &mut Counters) {
        if !self.sandboxes.contains_key(&slot) {
            return;
        }
        if let Ok(sums) = self.programs.sums(slot as u16) {
            counters.packets_out += sums.packets[0];
            counters.packets_in += sums.packets[1];
            counters.bytes_out += sums.bytes[0];
            counters.bytes_in += sums.bytes[1];
            counters.connections += sums.connections;
            counters.fast += sums.connections;
        }
    }
}

/// The ports of an address, as the programs have them.
fn ports(resolved: &Resolved) -> impl Iterator<Item = (IpAddr, u16, u64)> {
    let until = clock::after(resolved.ttl);
    entries(resolved).map(move |(address, _, port)| (address, port, until))
}
