//! The expressions of a rule: each loads part of a packet, compares it, or acts. All use the first registers, which hold
//! numbers in the machine's byte order if the kernel made them, and in network byte order if they come from a packet.
//!
//! One file: a table of the kernel's expressions, one short method for each.

use std::ops::RangeInclusive;

use super::{Attribute, Bytes, Messages, Nest, Text, U32, U64};

/// `NFT_REG32_00`, the first register of 4 bytes. A longer value goes on in the next ones.
const REGISTER: u32 = 8;
const VERDICT_REGISTER: u32 = 0;

/// Where the offset of what is loaded is counted from: the IP header, or what follows it.
const NETWORK: Attribute<'_> = U32(2, 1);
const TRANSPORT: Attribute<'_> = U32(2, 2);

/// Comparisons.
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const GREATER_OR_EQUAL: u32 = 5;
const LESS_OR_EQUAL: u32 = 3;

/// What `reject` answers: an ICMP message of either family, or a TCP reset.
const TCP_RESET: u32 = 1;
const ICMPX: u32 = 2;
const ADMIN_PROHIBITED: u8 = 3;

/// What can be loaded: by which expression, and that one's parameters beside the register.
#[derive(Clone, Copy)]
pub(crate) struct Load(&'static str, &'static [Attribute<'static>]);

impl Load {
    /// Index of the interface on which the packet arrived.
    pub(crate) const IN_INTERFACE: Self = Self("meta", &[U32(2, 4)]);
    /// Index of the interface on which it leaves.
    pub(crate) const OUT_INTERFACE: Self = Self("meta", &[U32(2, 5)]);
    /// The packet's mark.
    pub(crate) const MARK: Self = Self("meta", &[U32(2, 3)]);
    /// Family, 1 byte.
    pub(crate) const FAMILY: Self = Self("meta", &[U32(2, 15)]);
    /// Transport protocol, 1 byte.
    pub(crate) const PROTOCOL: Self = Self("meta", &[U32(2, 16)]);
    /// State of the connection, as bits.
    pub(crate) const STATE: Self = Self("ct", &[U32(2, 0)]);
    /// Status of the connection, as bits.
    pub(crate) const STATUS: Self = Self("ct", &[U32(2, 1)]);
    /// Addresses, by their offset from the start of the IP header, and their length.
    pub(crate) const SOURCE4: Self = Self("payload", &[NETWORK, U32(3, 12), U32(4, 4)]);
    pub(crate) const SOURCE6: Self = Self("payload", &[NETWORK, U32(3, 8), U32(4, 16)]);
    pub(crate) const DESTINATION4: Self = Self("payload", &[NETWORK, U32(3, 16), U32(4, 4)]);
    pub(crate) const DESTINATION6: Self = Self("payload", &[NETWORK, U32(3, 24), U32(4, 16)]);
    /// The last four bytes of an IPv6 source.
    pub(crate) const SOURCE6_END: Self = Self("payload", &[NETWORK, U32(3, 20), U32(4, 4)]);
    /// Destination port.
    pub(crate) const PORT: Self = Self("payload", &[TRANSPORT, U32(3, 2), U32(4, 2)]);
}

/// A rule's verdict.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    Drop,
    Accept,
    Return,
    Jump(String),
    Goto(String),
}

impl Verdict {
    pub(crate) fn jump(chain: impl Into<String>) -> Self {
        Self::Jump(chain.into())
    }

    pub(crate) fn goto(chain: impl Into<String>) -> Self {
        Self::Goto(chain.into())
    }

    /// Writes it as the data of an expression or a map.
    pub(super) fn attributes(&self) -> Vec<Attribute<'_>> {
        let (code, chain) = match self {
            Self::Drop => (0, None),
            Self::Accept => (1, None),
            Self::Return => (-5_i32, None),
            Self::Jump(chain) => (-3, Some(chain)),
            Self::Goto(chain) => (-4, Some(chain)),
        };
        let mut attributes = vec![U32(1, code.cast_unsigned())];
        attributes.extend(chain.map(|chain| Text(2, chain)));
        attributes
    }
}

/// The expressions of one rule.
pub(crate) struct Expressions<'a>(&'a mut Messages);

impl<'a> Expressions<'a> {
    pub(super) fn new(list: &'a mut Messages) -> Self {
        Self(list)
    }

    fn add(&mut self, name: &str, data: &[Attribute<'_>]) -> &mut Self {
        self.0.put(&[Nest(1, &[Text(1, name), Nest(2, data)])]);
        self
    }

    /// Loads a value into the registers from number `at` on.
    pub(crate) fn load(&mut self, Load(name, what): Load, at: u32) -> &mut Self {
        self.add(name, &[&[U32(1, REGISTER + at)][..], what].concat())
    }

    fn compare(&mut self, operation: u32, value: &[u8]) -> &mut Self {
        let value = Nest(3, &[Bytes(1, value)]);
        self.add("cmp", &[U32(1, REGISTER), U32(2, operation), value])
    }

    /// Continues if the value is equal.
    pub(crate) fn is(&mut self, what: Load, value: &[u8]) -> &mut Self {
        self.load(what, 0).compare(EQUAL, value)
    }

    /// Continues if it is different.
    pub(crate) fn is_not(&mut self, what: Load, value: &[u8]) -> &mut Self {
        self.load(what, 0).compare(NOT_EQUAL, value)
    }

    /// Continues if the bits of `mask` are equal.
    pub(crate) fn is_masked(&mut self, what: Load, mask: &[u8], value: &[u8]) -> &mut Self {
        self.load(what, 0).mask(mask).compare(EQUAL, value)
    }

    /// Continues if any of these bits is set in a number of 4 bytes.
    pub(crate) fn has_any(&mut self, what: Load, bits: u32) -> &mut Self {
        self.load(what, 0)
            .mask(&bits.to_ne_bytes())
            .compare(NOT_EQUAL, &[0; 4])
    }

    /// Continues if none of them is set.
    pub(crate) fn has_none(&mut self, what: Load, bits: u32) -> &mut Self {
        self.is_masked(what, &bits.to_ne_bytes(), &[0; 4])
    }

    fn mask(&mut self, mask: &[u8]) -> &mut Self {
        let (registers, length) = ([U32(1, REGISTER), U32(2, REGISTER)], mask.len());
        let zeroes = vec![0; length];
        let bits = [Nest(4, &[Bytes(1, mask)]), Nest(5, &[Bytes(1, &zeroes)])];
        self.add(
            "bitwise",
            &[&registers[..], &[U32(3, length as u32)], &bits].concat(),
        )
    }

    /// Continues if the destination port is in this range.
    pub(crate) fn has_port(&mut self, first: u16, last: u16) -> &mut Self {
        self.load(Load::PORT, 0)
            .compare(GREATER_OR_EQUAL, &first.to_be_bytes())
            .compare(LESS_OR_EQUAL, &last.to_be_bytes())
    }

    /// Puts a constant into the registers from number `at` on.
    pub(crate) fn constant(&mut self, value: &[u8], at: u32) -> &mut Self {
        let value = Nest(2, &[Bytes(1, value)]);
        self.add("immediate", &[U32(1, REGISTER + at), value])
    }

    /// Continues if the registers' value is in a set.
    pub(crate) fn is_in(&mut self, set: &str) -> &mut Self {
        self.add("lookup", &[Text(1, set), U32(2, REGISTER)])
    }

    /// Follows a map's verdict for the registers' value; continues if it has none.
    pub(crate) fn by_map(&mut self, map: &str) {
        let verdict = U32(3, VERDICT_REGISTER);
        self.add("lookup", &[Text(1, map), U32(2, REGISTER), verdict]);
    }

    /// Sets the packet's mark to the first register.
    pub(crate) fn mark_packet(&mut self) -> &mut Self {
        self.add("meta", &[U32(2, 3), U32(3, REGISTER)])
    }

    /// Sets the connection's mark to it.
    pub(crate) fn mark_connection(&mut self) -> &mut Self {
        self.add("ct", &[U32(2, 3), U32(4, REGISTER)])
    }

    /// Continues up to a rate of packets per second with this burst; or, with `over`, above it.
    pub(crate) fn packet_rate(&mut self, rate: u64, burst: u32, over: bool) -> &mut Self {
        self.rate(rate, burst, 0, over)
    }

    /// Continues above a rate of bytes per second.
    pub(crate) fn over_byte_rate(&mut self, rate: u64, burst: u32) -> &mut Self {
        self.rate(rate, burst, 1, true)
    }

    fn rate(&mut self, rate: u64, burst: u32, kind: u32, over: bool) -> &mut Self {
        let a_second = [U64(1, rate), U64(2, 1)];
        let how = [U32(3, burst), U32(4, kind), U32(5, u32::from(over))];
        self.add("limit", &[&a_second[..], &how].concat())
    }

    /// Counts the connections through this rule and continues if there are more than `most`.
    pub(crate) fn over_connections(&mut self, most: u32) -> &mut Self {
        self.add("connlimit", &[U32(1, most), U32(2, 1)])
    }

    /// Counts with a named counter.
    pub(crate) fn count(&mut self, counter: &str) -> &mut Self {
        self.add("objref", &[U32(1, super::OBJECT_COUNTER), Text(2, counter)])
    }

    /// Reports the packet's first bytes to a netlink group, once as many reports wait or the oldest has waited for as long as
    /// the group allows.
    pub(crate) fn report(&mut self, group: u16, bytes: u32, waiting: u16) -> &mut Self {
        let (group, waiting) = (group.to_be_bytes(), waiting.to_be_bytes());
        self.add(
            "log",
            &[Bytes(1, &group), U32(3, bytes), Bytes(4, &waiting)],
        )
    }

    /// Rejects as prohibited: EHOSTUNREACH over IPv4, EACCES over IPv6. Not for TCP, whose sockets may not hear it.
    pub(crate) fn prohibit(&mut self) {
        self.reject(ICMPX, ADMIN_PROHIBITED);
    }

    /// Resets the connection. TCP only.
    pub(crate) fn reset(&mut self) {
        self.reject(TCP_RESET, 0);
    }

    fn reject(&mut self, kind: u32, code: u8) {
        self.add("reject", &[U32(1, kind), Bytes(2, &[code])]);
    }

    /// Rewrites the source to the address of the outgoing interface.
    pub(crate) fn masquerade(&mut self) {
        self.add("masq", &[]);
    }

    /// The same with one of these ports.
    pub(crate) fn masquerade_as(&mut self, ports: &RangeInclusive<u16>) {
        // Of `linux/netfilter/nf_nat.h`.
        const PORTS_SPECIFIED: u32 = 2;
        self.constant(&ports.start().to_be_bytes(), 0)
            .constant(&ports.end().to_be_bytes(), 1)
            .add(
                "masq",
                &[
                    U32(1, PORTS_SPECIFIED),
                    U32(2, REGISTER),
                    U32(3, REGISTER + 1),
                ],
            );
    }

    pub(crate) fn verdict(&mut self, verdict: Verdict) {
        let verdict = verdict.attributes();
        let data = [Nest(2, &verdict)];
        self.add("immediate", &[U32(1, VERDICT_REGISTER), Nest(2, &data)]);
    }
}
