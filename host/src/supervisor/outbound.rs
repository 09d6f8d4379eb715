//! A sandbox's network, as the supervisor knows it: asked for when PID 1 is there, ready before the template runs, taken away
//! before the sandbox is removed.
//!
//! ```text
//! Wanted ──PID 1 is there──▶ Entering ──its namespace was entered──▶ Coming ──the gateway is done, or cannot──▶ There
//!                                                                    None ◀──done── Leaving ◀──PID 1 is gone───┘
//! ```

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hearth_init::{NETWORK, wire};

use super::{EVENTS, Supervisor};
use crate::helpers::{Helper, News, Reporter};
use crate::network::{Inside, tcp_socket};
use crate::peer::Received;
use crate::protocol::{FromGateway, Key, Purpose, Reply, Sequence, ToGateway};
use crate::{HostProcessError, SandboxError};

/// A gateway that does nothing of what waits for it, for this long, hangs. It takes milliseconds for a sandbox, of which
/// thousands may end at once.
const GATEWAY_PATIENCE: Duration = Duration::from_secs(30);

/// Where a sandbox's network is. See the module.
pub(super) enum WayOut {
    None,
    /// With its policy, which is the gateway's to read.
    Wanted(Rc<OwnedFd>),
    Entering(Rc<OwnedFd>),
    Coming(Resolver),
    /// With what the server is to be told of it.
    There(Option<Attached>),
    Leaving,
}

/// The UDP socket and the TCP listener at which a sandbox asks for names.
type Resolver = [OwnedFd; 2];

/// The network that a sandbox got.
pub(super) struct Attached {
    /// Number of its interface in the gateway.
    pub(super) interface: u32,
    pub(super) resolver: Resolver,
}

impl WayOut {
    pub(super) fn of(policy: Option<Rc<OwnedFd>>) -> Self {
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

/// Starts the thread from which sandboxes' network namespaces are entered.
pub(super) fn start(reporter: Reporter) -> Result<Helper<()>, String> {
    Helper::start("hearth-network", reporter, || Ok(()))
}

impl Supervisor {
    /// Whether a sandbox may have a network.
    pub(super) fn check_network(&self, wanted: bool) -> Result<(), SandboxError> {
        match wanted && self.gateway.is_none() {
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
        let policy = policy.clone();
        let Some(Ok(init)) = live.init.as_ref().map(OwnedFd::try_clone) else {
            let error = SandboxError::step("network", "PID 1 cannot be reached");
            return self.fail(key, error);
        };
        let enter = move |(): &mut ()| Some(News::Entered(key, Inside::open(&init)));
        if self.network.must(enter) {
            live.way_out = WayOut::Entering(policy);
        } else {
            self.fail(key, SandboxError::step("network", "its thread has ended"));
        }
    }

    /// A sandbox's namespace was entered: the gateway connects it.
    pub(super) fn entered(&mut self, key: Key, inside: io::Result<Inside>) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        let WayOut::Entering(policy) = &live.way_out else {
            return; // the gateway is gone
        };
        let opened = policy.try_clone().and_then(|policy| Ok((policy, inside?)));
        live.way_out = WayOut::None;
        if live.destroying {
            return self.go_on_removing(key);
        }
        match (opened, &mut self.gateway) {
            (Ok((policy, inside)), Some(gateway)) => {
                live.way_out = WayOut::Coming(inside.resolver);
                let fds = [policy].into_iter().chain(inside.handles);
                gateway.send(ToGateway::Attach(key), fds.collect());
                self.watch_gateway(key);
            }
            (Ok(_), None) => self.fail(key, SandboxError::shut_down()),
            (Err(error), _) => self.fail(key, SandboxError::step("network", error)),
        }
    }

    /// Hears the gateway, as if a hostile one had spoken.
    pub(super) fn listen_to_gateway(&mut self) -> Result<(), HostProcessError> {
        for _ in 0..EVENTS {
            let Some(gateway) = &mut self.gateway else {
                break;
            };
            gateway.flush();
            match gateway.receive().map_err(HostProcessError::Gateway)? {
                Received::Message(FromGateway::Attached(key, interface), _) => {
                    self.attached(key, Ok(interface));
                }
                Received::Message(FromGateway::Failed(key, error), _) => {
                    self.attached(key, Err(error));
                }
                Received::Message(FromGateway::Detached(key), _) => {
                    let live = self.live.get(&key);
                    if live.is_some_and(|live| matches!(live.way_out, WayOut::Leaving)) {
                        self.gateway_heard = Instant::now();
                        self.detached(key);
                    }
                }
                Received::Nothing => break,
                Received::End => return Err(HostProcessError::NoGateway),
            }
        }
        Ok(())
    }

    /// Sees to it that the gateway's work on a sandbox is not waited for without end.
    fn watch_gateway(&mut self, key: Key) {
        self.later(key, GATEWAY_PATIENCE, move |supervisor| {
            let live = supervisor.live.get(&key);
            let waits = |way_out: &WayOut| matches!(way_out, WayOut::Coming(_) | WayOut::Leaving);
            if !live.is_some_and(|live| waits(&live.way_out)) {
                return;
            }
            match supervisor.gateway_heard.elapsed() < GATEWAY_PATIENCE {
                true => supervisor.watch_gateway(key),
                false => supervisor.lose_gateway(HostProcessError::NoGateway),
            }
        });
    }

    /// The gateway is gone, or is not to be listened to any more, and with it every network: so is everything.
    pub(super) fn lose_gateway(&mut self, why: HostProcessError) {
        if let Some(mut gateway) = self.gateway.take() {
            gateway.hang_up(&self.epoll);
        }
        self.give_up(why);
        let keys: Vec<_> = self.live.keys().copied().collect();
        for key in keys {
            self.detached(key);
        }
    }

    /// A sandbox has its network, and PID 1 may go on; or it cannot have it.
    fn attached(&mut self, key: Key, attached: Result<u32, SandboxError>) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        if !matches!(live.way_out, WayOut::Coming(_)) {
            return; // a hostile gateway's words
        }
        self.gateway_heard = Instant::now();
        // Of what could not be made some may be there.
        let former = std::mem::replace(&mut live.way_out, WayOut::There(None));
        let failed = match (attached, former) {
            (Ok(interface), WayOut::Coming(resolver)) => {
                let attached = Attached {
                    interface,
                    resolver,
                };
                live.way_out = WayOut::There(Some(attached));
                None
            }
            (attached, _) => attached.err(),
        };
        if live.destroying {
            return self.go_on_removing(key);
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
        let (Some(live), Some(gateway)) = (self.live.get_mut(&key), &mut self.gateway) else {
            return true;
        };
        match live.way_out {
            WayOut::None | WayOut::Wanted(_) => true,
            WayOut::Entering(_) | WayOut::Coming(_) | WayOut::Leaving => false,
            WayOut::There(_) => {
                gateway.send(ToGateway::Detach(key), Vec::new());
                live.way_out = WayOut::Leaving;
                self.watch_gateway(key);
                false
            }
        }
    }

    /// Nothing is left of it.
    fn detached(&mut self, key: Key) {
        if let Some(live) = self.live.get_mut(&key) {
            live.way_out = WayOut::None;
            self.go_on_removing(key);
        }
    }

    /// What waits for its network to be gone.
    fn go_on_removing(&mut self, key: Key) {
        if self.live.get(&key).is_some_and(|live| live.removing) {
            self.remove_sandbox(key, 0);
        }
    }

    /// Has a socket made in the network namespace of a sandbox that has a network.
    pub(super) fn socket(&mut self, sequence: Sequence, key: Key, purpose: Purpose) {
        let live = self.live.get(&key).filter(|live| live.is_running());
        let connected = live.filter(|live| matches!(live.way_out, WayOut::There(_)));
        let init = connected.and_then(|live| live.init.as_ref()?.try_clone().ok());
        let asked = init.ok_or(SandboxError::Gone).and_then(|init| {
            self.network.take(move |()| {
                Some(match tcp_socket(&init, purpose) {
                    Ok(socket) => News::Socket(sequence, socket),
                    Err(error) => News::Say(Reply::Refused(
                        sequence,
                        SandboxError::step("socket", error),
                    )),
                })
            })
        });
        self.refuse_failed(sequence, asked);
    }
}
