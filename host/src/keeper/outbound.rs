//! A sandbox's network, as the keeper knows it: asked for when PID 1 is there, ready before the template runs, taken away
//! before the sandbox is removed.
//!
//! ```text
//! Wanted ──PID 1 is there──▶ Coming ──done, or not──▶ There ──PID 1 is gone──▶ Leaving ──done──▶ None
//! ```

use std::os::fd::OwnedFd;

use hearth_init::{NETWORK, wire};

use super::Keeper;
use crate::SandboxError;
use crate::network::{Attached, Purpose};
use crate::protocol::{Counters, KernelPolicy, Key, Papers, Reply, Resolved, Sequence};

/// Where a sandbox's network is. See the module.
pub(super) enum WayOut {
    None,
    Wanted(KernelPolicy),
    Coming,
    /// With what the server is to be told of it.
    There(Option<Attached>),
    Leaving,
}

impl WayOut {
    pub(super) fn of(papers: &Papers) -> Self {
        let policy = papers.network.clone();
        policy.map_or(Self::None, Self::Wanted)
    }

    /// What the server is to be told; once.
    pub(super) fn take(&mut self) -> Option<Attached> {
        match self {
            Self::There(attached) => attached.take(),
            _ => None,
        }
    }
}

impl Keeper {
    /// Whether a sandbox may have the network that its papers ask for.
    pub(super) fn check_network(&self, papers: &Papers) -> Result<(), SandboxError> {
        match papers.network.is_some() && self.host.network.is_none() {
            true => Err(SandboxError::step(
                "network",
                "no sandbox can have a network on this host",
            )),
            false => Ok(()),
        }
    }

    /// Has the network made that a sandbox is to have, whose PID 1 is there.
    pub(super) fn attach_network(&mut self, key: Key) {
        let Some(live) = self.live.get_mut(&key).filter(|live| !live.destroying) else {
            return;
        };
        let WayOut::Wanted(policy) = &live.way_out else {
            return;
        };
        let init = live.init.as_ref().map(OwnedFd::try_clone);
        let (Some(Ok(init)), Some(network)) = (init, &self.host.network) else {
            let error = SandboxError::step("network", "PID 1 cannot be reached");
            return self.fail(key, error);
        };
        if network.attach(key, init, policy.clone()) {
            live.way_out = WayOut::Coming;
        } else {
            self.fail(key, SandboxError::step("network", "its thread has ended"));
        }
    }

    /// A sandbox has its network, and PID 1 may go on; or it cannot have it.
    pub(super) fn attached(&mut self, key: Key, attached: Result<Attached, SandboxError>) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        let (attached, failed) = match attached {
            Ok(attached) => (Some(attached), None),
            // Some of it may be there.
            Err(error) => (None, Some(error)),
        };
        live.way_out = WayOut::There(attached);
        if live.destroying {
            if live.gone {
                self.remove_sandbox(key, 0);
            }
            return;
        }
        let told = live
            .control
            .as_ref()
            .map(|to| wire::send(to, &[NETWORK], &[]));
        let failed = failed.or_else(|| match told {
            Some(Err(error)) => Some(SandboxError::step("network", error)),
            // Init's end is told of by other means.
            _ => None,
        });
        if let Some(error) = failed {
            self.fail(key, error);
        }
    }

    /// Whether nothing is left of a sandbox's network. Has it taken away.
    pub(super) fn is_without_network(&mut self, key: Key) -> bool {
        let Some(live) = self.live.get_mut(&key) else {
            return true;
        };
        match live.way_out {
            WayOut::None | WayOut::Wanted(_) => true,
            WayOut::Coming | WayOut::Leaving => false,
            WayOut::There(_) => {
                let network = self.host.network.as_ref();
                let asked = network.is_some_and(|network| network.detach(key));
                live.way_out = match asked {
                    true => WayOut::Leaving,
                    false => WayOut::None,
                };
                !asked
            }
        }
    }

    /// Nothing is left of it.
    pub(super) fn detached(&mut self, key: Key) {
        if let Some(live) = self.live.get_mut(&key) {
            live.way_out = WayOut::None;
            self.remove_sandbox(key, 0);
        }
    }

    pub(super) fn set_policy(&mut self, sequence: Sequence, key: Key, policy: Option<OwnedFd>) {
        let policy = match policy.map(KernelPolicy::open) {
            Some(Ok(policy)) => Ok(policy),
            Some(Err(error)) => Err(SandboxError::specification(error)),
            None => Err(SandboxError::step("policy", rustix::io::Errno::MFILE)),
        };
        let asked = policy.and_then(|policy| {
            let network = self.network_of(key)?;
            network.set_policy(sequence, key, policy)
        });
        self.refuse_failed(sequence, asked);
    }

    pub(super) fn allow(&mut self, sequence: Sequence, key: Key, resolved: Resolved) {
        let network = self.network_of(key);
        let asked = network.and_then(|network| network.allow(sequence, key, resolved));
        self.refuse_failed(sequence, asked);
    }

    pub(super) fn count(&mut self, sequence: Sequence, key: Key) {
        let network = self.network_of(key);
        let asked = network.and_then(|network| network.count(sequence, key));
        self.refuse_failed(sequence, asked);
    }

    pub(super) fn socket(&mut self, sequence: Sequence, key: Key, purpose: Purpose) {
        let network = self.network_of(key);
        let asked = network.and_then(|network| network.socket(sequence, key, purpose));
        self.refuse_failed(sequence, asked);
    }

    /// Hands a socket over.
    pub(super) fn socket_made(&mut self, sequence: Sequence, made: Result<OwnedFd, SandboxError>) {
        match made {
            Ok(socket) => self.outbox.send(Reply::Socket(sequence), vec![socket]),
            Err(error) => self.say(Reply::Refused(sequence, error.into())),
        }
    }

    /// Tells the server how that went.
    pub(super) fn network_done(
        &mut self,
        sequence: Sequence,
        done: Result<Option<Counters>, SandboxError>,
    ) {
        self.say(match done {
            Ok(None) => Reply::Done(sequence),
            Ok(Some(counters)) => Reply::Counters(sequence, counters),
            Err(error) => Reply::Refused(sequence, error.into()),
        });
    }

    /// By which a sandbox's network can be changed, if it has one.
    fn network_of(&self, key: Key) -> Result<&crate::network::Network, SandboxError> {
        let live = self.live.get(&key).filter(|live| live.is_running());
        let has = live.is_some_and(|live| matches!(live.way_out, WayOut::There(_)));
        let network = self.host.network.as_ref().filter(|_| has);
        network.ok_or(SandboxError::Gone)
    }

    fn refuse_failed(&mut self, sequence: Sequence, asked: Result<(), SandboxError>) {
        if let Err(error) = asked {
            self.say(Reply::Refused(sequence, error.into()));
        }
    }
}
