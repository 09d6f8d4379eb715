//! A sandbox's network, as the supervisor knows it: asked for when PID 1 is there, ready before the template runs, taken away
//! before the sandbox is removed.
//!
//! ```text
//! Wanted ──PID 1 is there──▶ Coming ──done, or not──▶ There ──PID 1 is gone──▶ Leaving ──done──▶ None
//! ```

use std::os::fd::OwnedFd;

use hearth_init::{NETWORK, wire};

use super::Supervisor;
use crate::SandboxError;
use crate::helpers::{Attached, Helper, News};
use crate::network::Gateway;
use crate::protocol::{KernelPolicy, Key, Papers, Purpose, Reply, Resolved, Sequence};

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

impl Supervisor {
    /// Whether a sandbox may have the network that its papers ask for.
    pub(super) fn check_network(&self, papers: &Papers) -> Result<(), SandboxError> {
        match papers.network.is_some() && self.network.is_none() {
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
        let (Some(Ok(init)), Some(network)) = (init, &self.network) else {
            let error = SandboxError::step("network", "PID 1 cannot be reached");
            return self.fail(key, error);
        };
        let policy = policy.clone();
        let attach = move |gateway: &mut Gateway| {
            Some(News::Attached(key, gateway.attach(key, &init, &policy)))
        };
        if network.gateway.must(attach) {
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
                let asked = self.network.as_ref().is_some_and(|network| {
                    network.gateway.must(move |gateway| gateway.detach(key))
                });
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
            self.gateway_of(key)?.ask(sequence, move |gateway| {
                gateway
                    .set_policy(key, &policy)
                    .map(|()| Reply::Done(sequence))
            })
        });
        self.refuse_failed(sequence, asked);
    }

    pub(super) fn allow(&mut self, sequence: Sequence, key: Key, resolved: Resolved) {
        let asked = self.gateway_of(key).and_then(|gateway| {
            gateway.ask(sequence, move |gateway| {
                gateway
                    .allow(key, &resolved)
                    .map(|()| Reply::Done(sequence))
            })
        });
        self.refuse_failed(sequence, asked);
    }

    pub(super) fn count(&mut self, sequence: Sequence, key: Key) {
        let asked = self.gateway_of(key).and_then(|gateway| {
            gateway.ask(sequence, move |gateway| {
                let counters = gateway.count(key)?;
                Ok(Reply::Counters(sequence, counters))
            })
        });
        self.refuse_failed(sequence, asked);
    }

    pub(super) fn socket(&mut self, sequence: Sequence, key: Key, purpose: Purpose) {
        let asked = self.gateway_of(key).and_then(|gateway| {
            gateway.take(move |gateway| {
                Some(match gateway.socket(key, purpose) {
                    Ok(socket) => News::Socket(sequence, socket),
                    Err(error) => News::Say(Reply::Refused(sequence, error)),
                })
            })
        });
        self.refuse_failed(sequence, asked);
    }

    /// By which a sandbox's network can be changed, if it has one.
    fn gateway_of(&self, key: Key) -> Result<&Helper<Gateway>, SandboxError> {
        let live = self.live.get(&key).filter(|live| live.is_running());
        let has = live.is_some_and(|live| matches!(live.way_out, WayOut::There(_)));
        let network = self.network.as_ref().filter(|_| has);
        network
            .map(|network| &network.gateway)
            .ok_or(SandboxError::Gone)
    }
}
