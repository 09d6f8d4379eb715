//! Connections: told when they begin and when they are forgotten, which takes a while after their end, as late packets come.

use std::io;
use std::net::{IpAddr, Ipv6Addr};

use super::Gateway;
use super::records::{
    BackKey, FLOW_CLOSED, FLOW_DOUBTED, FLOW_ESTABLISHED, FLOW_FIN_IN, FLOW_FIN_OUT, FLOW_WAITS,
    Flow, FlowKey,
};

/// How often [`Gateway::tick`] is to be called while there may be connections, a second.
pub const TICKS_A_SECOND: u32 = 2;
/// After how many seconds without a packet a connection is forgotten, as by connection tracking: not answered, over, over and
/// ended by the world, half over, reset by the world and gone on with, established; one of datagrams with a few packets, and with
/// more.
const UNANSWERED: u32 = 30;
const OVER: u32 = 10;
const WAITING: u32 = 60;
const DOUBTED: u32 = 300;
const HALF_OVER: u32 = 120;
const ESTABLISHED: u32 = 5 * 86_400;
const DATAGRAM: u32 = 30;
const DATAGRAMS: u32 = 120;
const FEW: u64 = 2;
const TCP: u8 = 6;

/// A connection on the fast way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    /// The slot of the sandbox.
    pub slot: u16,
    /// Its port in the sandbox.
    pub source_port: u16,
    /// Where it goes.
    pub address: IpAddr,
    /// The port there.
    pub port: u16,
}

/// What became of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has begun.
    Begun(Connection),
    /// It is forgotten, having carried so many bytes to the world and to the sandbox.
    Over(Connection, u64, u64),
}

impl Connection {
    fn of(key: &FlowKey) -> Self {
        Self {
            slot: key.slot,
            source_port: u16::from_be_bytes(key.sport),
            address: Ipv6Addr::from(key.address).to_canonical(),
            port: u16::from_be_bytes(key.dport),
        }
    }
}

impl Flow {
    fn is_fast(&self) -> bool {
        self.port != [0, 0]
    }

    /// Where its other end is known by.
    fn back(&self, key: &FlowKey) -> BackKey {
        BackKey {
            address: key.address,
            sport: key.dport,
            dport: self.port,
        }
    }

    /// Ticks without a packet, or since its end, after which it is forgotten.
    fn lasts(&self, key: &FlowKey) -> u32 {
        let seconds = match self.state {
            _ if key.protocol != TCP && self.packets <= FEW => DATAGRAM,
            _ if key.protocol != TCP => DATAGRAMS,
            state if state & FLOW_CLOSED != 0 && state & FLOW_DOUBTED != 0 => HALF_OVER,
            state if state & FLOW_CLOSED != 0 && state & FLOW_WAITS != 0 => WAITING,
            state if state & FLOW_CLOSED != 0 => OVER,
            state if state & FLOW_ESTABLISHED == 0 => UNANSWERED,
            state if state & (FLOW_FIN_IN | FLOW_FIN_OUT) != 0 => HALF_OVER,
            state if state & FLOW_DOUBTED != 0 => DOUBTED,
            _ => ESTABLISHED,
        };
        seconds * TICKS_A_SECOND
    }
}

impl Gateway {
    /// Counts time, tells of connections that have begun (not of the latest, which may not all be seen yet), and forgets those
    /// that are over.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn tick(&mut self, mut tell: impl FnMut(Event)) -> io::Result<()> {
        let before = self.network.epoch;
        self.network.epoch = before.wrapping_add(1);
        self.networks.set(&0, &self.network)?;
        // Counted after a connection is in the map: what is counted by now is found.
        let ways = self.ways()?;
        let begun = ways.fast + ways.rules;
        if self.empty_at == Some(begun) {
            return Ok(());
        }
        let flows = self.flows.all()?;
        self.empty_at = flows.is_empty().then_some(begun);
        for (key, flow) in flows {
            if flow.is_fast() && is_between(flow.opened, self.told, before.wrapping_sub(1)) {
                tell(Event::Begun(Connection::of(&key)));
            }
            if self.is_forgotten(&key, &flow)? {
                self.end(&key, before.wrapping_sub(1), &mut tell)?;
            }
        }
        self.told = before.wrapping_sub(1);
        Ok(())
    }

    fn is_forgotten(&self, key: &FlowKey, flow: &Flow) -> io::Result<bool> {
        let lasts = flow.lasts(key);
        let is_past = |since: u32| {
            let ticks = self.network.epoch.wrapping_sub(since).cast_signed();
            ticks > lasts.cast_signed()
        };
        if flow.state & FLOW_CLOSED != 0 {
            return Ok(is_past(flow.closed));
        }
        if !is_past(flow.seen) || !flow.is_fast() {
            return Ok(is_past(flow.seen));
        }
        let back = self.back.get(&flow.back(key))?;
        Ok(back.is_none_or(|back| is_past(back.seen)))
    }

    /// Forgets one. Those that began later than `told` were not told.
    fn end(&self, key: &FlowKey, told: u32, tell: &mut impl FnMut(Event)) -> io::Result<()> {
        let Some(flow) = self.flows.take(key)? else {
            return Ok(());
        };
        if flow.state & FLOW_CLOSED == 0 {
            self.open.add(flow.group, -1);
        }
        if !flow.is_fast() {
            return Ok(());
        }
        let back = self.back.take(&flow.back(key))?.unwrap_or_default();
        let connection = Connection::of(key);
        if is_after(flow.opened, told) {
            tell(Event::Begun(connection));
        }
        tell(Event::Over(connection, flow.bytes, back.bytes));
        Ok(())
    }

    /// Forgets connections, at once: none of their packets goes the fast way any more. Returns those that had not ended.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn cut(
        &mut self,
        mut is_cut: impl FnMut(&Connection) -> bool,
        mut tell: impl FnMut(Event),
    ) -> io::Result<Vec<Connection>> {
        let mut live = Vec::new();
        for (key, flow) in self.flows.all()? {
            let connection = Connection::of(&key);
            if flow.is_fast() && is_cut(&connection) {
                self.end(&key, self.told, &mut tell)?;
                if flow.state & FLOW_CLOSED == 0 {
                    live.push(connection);
                }
            }
        }
        Ok(live)
    }

    /// Forgets all of a sandbox's, those of the rules included.
    pub(super) fn forget_flows(
        &self,
        slot: Option<u16>,
        tell: &mut impl FnMut(Event),
    ) -> io::Result<()> {
        for (key, _) in self.flows.all()? {
            if slot.is_none_or(|slot| key.slot == slot) {
                self.end(&key, self.told, tell)?;
            }
        }
        Ok(())
    }
}

/// Whether one epoch is later than another.
fn is_after(epoch: u32, other: u32) -> bool {
    epoch.wrapping_sub(other).cast_signed() > 0
}

/// Whether it is later than `from` and not later than `to`.
fn is_between(epoch: u32, from: u32, to: u32) -> bool {
    is_after(epoch, from) && !is_after(epoch, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_wrap_around() {
        assert!(is_after(0, u32::MAX) && !is_after(u32::MAX, 0));
        assert!(is_between(1, u32::MAX, 1) && !is_between(2, u32::MAX, 1));
        assert!(!is_between(5, 5, 7) && is_between(7, 5, 7));
    }

    #[test]
    fn what_is_over_is_forgotten_before_what_goes_on() {
        let tcp = FlowKey {
            protocol: TCP,
            ..FlowKey::default()
        };
        let lasts = |state| {
            let flow = Flow {
                state,
                ..Flow::default()
            };
            flow.lasts(&tcp) / TICKS_A_SECOND
        };
        assert_eq!(lasts(0), UNANSWERED);
        assert_eq!(lasts(FLOW_ESTABLISHED), ESTABLISHED);
        assert_eq!(lasts(FLOW_ESTABLISHED | FLOW_FIN_IN), HALF_OVER);
        let ended = FLOW_ESTABLISHED | FLOW_FIN_IN | FLOW_CLOSED;
        assert_eq!((lasts(ended), lasts(ended | FLOW_WAITS)), (OVER, WAITING));
        assert_eq!(lasts(FLOW_CLOSED | FLOW_DOUBTED), HALF_OVER);
        assert_eq!(lasts(FLOW_ESTABLISHED | FLOW_DOUBTED), DOUBTED);
        assert_eq!(
            Flow::default().lasts(&FlowKey::default()),
            DATAGRAM * TICKS_A_SECOND
        );
    }
}
