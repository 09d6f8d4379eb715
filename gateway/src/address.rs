//! Which addresses sandboxes have: one of IPv4 and one of IPv6 each, whose last bits are the number of their slot. By these
//! the server tells whose a connection is that the kernel reports.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use crate::protocol::Prefix;
use crate::settings::Settings;

/// Index of the gateway's interface to the host; added to a slot for the interface to its sandbox.
pub(crate) const UPLINK: u32 = 1000;
pub(crate) const INTERFACE: u32 = UPLINK;
/// Bits of an address that distinguish the sandboxes of one Hearth: enough for every possible sandbox.
const SHARE_BITS: u8 = 12;
const SLOT_BITS: u32 = (1 << SHARE_BITS) - 1;
/// The longest prefix of IPv4 that has room for a few.
const LONGEST: u8 = 28;

/// The addresses of slots.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    block: Prefix,
    block6: Prefix,
    first: u32,
    first6: u128,
}

impl Addresses {
    /// All of the configured addresses.
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        let (block, block6) = (settings.block, settings.block6);
        match (block.address(), block6.address()) {
            (IpAddr::V4(first), IpAddr::V6(first6))
                if (8..=LONGEST).contains(&block.length()) && block6.length() <= 96 =>
            {
                Ok(Self {
                    block,
                    block6,
                    first: first.to_bits(),
                    first6: first6.to_bits(),
                })
            }
            _ => Err("the addresses for sandboxes are too few".to_owned()),
        }
    }

    /// The share of the Hearth with this number on the host, if there are enough.
    pub(crate) fn share(&self, number: u32) -> Option<Self> {
        let length = self.block.length().max(32 - SHARE_BITS);
        let shares = 1_u32 << (length - self.block.length());
        if number >= shares {
            return None;
        }
        let first = self.first + (number << (32 - length));
        let first6 = self.first6 | u128::from(first);
        Some(Self {
            block: Prefix::new(Ipv4Addr::from_bits(first).into(), length)?,
            block6: Prefix::new(Ipv6Addr::from_bits(first6).into(), 96 + length)?,
            first,
            first6: self.first6,
        })
    }

    /// The share as prefixes.
    pub(crate) fn blocks(&self) -> [Prefix; 2] {
        [self.block, self.block6]
    }

    /// The addresses with all bits of the slot zero.
    pub(crate) fn slot_zero(&self) -> [IpAddr; 2] {
        let four = self.first & !SLOT_BITS;
        let six = self.first6 | u128::from(four);
        [
            Ipv4Addr::from_bits(four).into(),
            Ipv6Addr::from_bits(six).into(),
        ]
    }

    /// The addresses of a slot; slot 0 is the gateway.
    pub(crate) fn of(&self, slot: u32) -> [IpAddr; 2] {
        let four = Ipv4Addr::from_bits(self.four(slot));
        let six = Ipv6Addr::from_bits(self.first6 | u128::from(self.four(slot)));
        [four.into(), six.into()]
    }

    /// The mark of a slot's connections: the last four bytes of its addresses as a register holds them.
    pub(crate) fn mark(&self, slot: u32) -> u32 {
        u32::from_ne_bytes(self.four(slot).to_be_bytes())
    }

    fn four(&self, slot: u32) -> u32 {
        match slot {
            0 => self.first + 1,
            slot => self.first & !SLOT_BITS | slot,
        }
    }

    /// The slots that there are: without the first address, the gateway's, and the last.
    fn slots(&self) -> RangeInclusive<u32> {
        let first = self.first & SLOT_BITS;
        first + 2..=first + (1 << (32 - self.block.length())) - 2
    }
}

/// The free slots.
pub(crate) struct Slots {
    /// Returned slots. They are reused last, so that late packets meet no other sandbox.
    free: VecDeque<u32>,
    next: u32,
    most: u32,
}

impl Slots {
    pub(crate) fn new(addresses: &Addresses) -> Self {
        let (next, most) = addresses.slots().into_inner();
        Self {
            free: VecDeque::new(),
            next,
            most,
        }
    }

    pub(crate) fn take(&mut self) -> Option<u32> {
        if self.next <= self.most {
            self.next += 1;
            return Some(self.next - 1);
        }
        self.free.pop_front()
    }

    pub(crate) fn put(&mut self, slot: u32) {
        self.free.push_back(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_addresses_of_its_own() {
        let settings = Settings {
            block: Prefix::new(Ipv4Addr::new(10, 0, 0, 16).into(), 28).unwrap(),
            ..Settings::default()
        };
        let addresses = Addresses::new(&settings).unwrap();
        let gateway = addresses.of(0);
        assert_eq!(gateway[0].to_string(), "10.0.0.17");
        assert_eq!(gateway[1].to_string(), "fd68:6561:7274:68::a00:11");
        assert!(addresses.share(1).is_none(), "too few for a second Hearth");
        let mut slots = Slots::new(&addresses.share(0).unwrap());
        let mut all: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!((all.len(), all[0]), (13, 18));
        let last = addresses.of(all[12])[0];
        assert_eq!(last.to_string(), "10.0.0.30", "the last but one");
        all.dedup();
        assert_eq!(all.len(), 13);
        slots.put(7);
        slots.put(3);
        assert_eq!(
            (slots.take(), slots.take(), slots.take()),
            (Some(7), Some(3), None)
        );
    }

    #[test]
    fn every_hearth_has_a_share() {
        let all = Addresses::new(&Settings::default()).unwrap();
        let third = all.share(2).unwrap();
        assert_eq!(third.of(0)[0].to_string(), "198.19.32.1");
        assert_eq!(third.of(9)[1].to_string(), "fd68:6561:7274:68::c613:2009");
        let [four, six] = third.blocks();
        assert_eq!((four.length(), six.length()), (20, 116));
        assert!(four.contains(third.of(4094)[0]) && six.contains(third.of(4094)[1]));
        assert!(!all.share(3).unwrap().blocks()[1].contains(third.of(4094)[1]));
        assert!(all.share(15).is_some() && all.share(16).is_none());
    }

    #[test]
    fn a_block_must_have_room() {
        for (block, block6) in [("10.0.0.0", 96), ("fd00::", 96), ("10.0.0.0", 97)] {
            let length = if block6 == 96 { 29 } else { 18 };
            let settings = Settings {
                block: Prefix::new(block.parse().unwrap(), length).unwrap(),
                block6: Prefix::new(Ipv6Addr::LOCALHOST.into(), block6).unwrap(),
                ..Settings::default()
            };
            assert!(Addresses::new(&settings).is_err(), "{settings:?}");
        }
    }
}
