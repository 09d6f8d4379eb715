//! The expressions of a rule: each loads part of a packet, compares it, or acts. All use the first registers, which hold
//! numbers in the machine's byte order if the kernel made them, and in network byte order if they come from a packet.
//!
//! One file: a table of the kernel's expressions, one short method for each.

use super::Messages;

/// `NFT_REG32_00`, the first register of 4 bytes. A longer value goes on in the next ones.
const REGISTER: u32 = 8;
const VERDICT_REGISTER: u32 = 0;

const PAYLOAD_NETWORK: u32 = 1;
const PAYLOAD_TRANSPORT: u32 = 2;

/// Comparisons.
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const GREATER_OR_EQUAL: u32 = 5;
const LESS_OR_EQUAL: u32 = 3;

/// What `reject` answers: an ICMP message of either family, or a TCP reset.
const TCP_RESET: u32 = 1;
const ICMPX: u32 = 2;
const HOST_UNREACHABLE: u8 = 2;
const ADMIN_PROHIBITED: u8 = 3;

/// What can be loaded.
#[derive(Clone, Copy)]
pub(in crate::network) enum Load {
    /// Index of the interface on which the packet arrived.
    InInterface,
    /// Index of the interface on which it leaves.
    OutInterface,
    /// Family, 1 byte.
    Family,
    /// Transport protocol, 1 byte.
    Protocol,
    /// From the start of the IP header: offset and length.
    Network(u32, u32),
    /// Destination port.
    Port,
    /// State of the connection, as bits.
    ConnectionState,
    /// Status of the connection, as bits.
    ConnectionStatus,
}

/// A rule's verdict.
#[derive(Clone, Debug)]
pub(in crate::network) enum Verdict {
    Drop,
    Accept,
    Return,
    Jump(String),
    Goto(String),
}

impl Verdict {
    pub(in crate::network) fn jump(chain: impl Into<String>) -> Self {
        Self::Jump(chain.into())
    }

    pub(in crate::network) fn goto(chain: impl Into<String>) -> Self {
        Self::Goto(chain.into())
    }

    /// Writes it as the data of an expression or a map.
    pub(super) fn put(&self, to: &mut Messages) {
        let (code, chain) = match self {
            Self::Drop => (0, None),
            Self::Accept => (1, None),
            Self::Return => (-5_i32, None),
            Self::Jump(chain) => (-3, Some(chain)),
            Self::Goto(chain) => (-4, Some(chain)),
        };
        to.nest(2, |verdict| {
            verdict.put_u32(1, code.cast_unsigned());
            if let Some(chain) = chain {
                verdict.put_text(2, chain);
            }
        });
    }
}

/// The expressions of one rule.
pub(in crate::network) struct Expressions<'a>(&'a mut Messages);

impl<'a> Expressions<'a> {
    pub(super) fn new(list: &'a mut Messages) -> Self {
        Self(list)
    }

    fn add(&mut self, name: &str, data: impl FnOnce(&mut Messages)) -> &mut Self {
        self.0.nest(1, |item| {
            item.put_text(1, name).nest(2, data);
        });
        self
    }

    /// Loads a value into the registers from number `at` on.
    pub(in crate::network) fn load(&mut self, what: Load, at: u32) -> &mut Self {
        let register = REGISTER + at;
        let meta = |key: u32| {
            move |data: &mut Messages| {
                data.put_u32(1, register).put_u32(2, key);
            }
        };
        let payload = |base: u32, offset: u32, length: u32| {
            move |data: &mut Messages| {
                data.put_u32(1, register)
                    .put_u32(2, base)
                    .put_u32(3, offset)
                    .put_u32(4, length);
            }
        };
        match what {
            Load::InInterface => self.add("meta", meta(4)),
            Load::OutInterface => self.add("meta", meta(5)),
            Load::Family => self.add("meta", meta(15)),
            Load::Protocol => self.add("meta", meta(16)),
            Load::ConnectionState => self.add("ct", meta(0)),
            Load::ConnectionStatus => self.add("ct", meta(1)),
            Load::Network(offset, length) => {
                self.add("payload", payload(PAYLOAD_NETWORK, offset, length))
            }
            Load::Port => self.add("payload", payload(PAYLOAD_TRANSPORT, 2, 2)),
        }
    }

    fn compare(&mut self, operation: u32, value: &[u8]) -> &mut Self {
        self.add("cmp", |data| {
            data.put_u32(1, REGISTER)
                .put_u32(2, operation)
                .nest(3, |data| {
                    data.put(1, value);
                });
        })
    }

    /// Continues if the value is equal.
    pub(in crate::network) fn is(&mut self, what: Load, value: &[u8]) -> &mut Self {
        self.load(what, 0).compare(EQUAL, value)
    }

    /// Continues if it is different.
    pub(in crate::network) fn is_not(&mut self, what: Load, value: &[u8]) -> &mut Self {
        self.load(what, 0).compare(NOT_EQUAL, value)
    }

    /// Continues if the bits of `mask` are equal.
    pub(in crate::network) fn is_masked(
        &mut self,
        what: Load,
        mask: &[u8],
        value: &[u8],
    ) -> &mut Self {
        self.load(what, 0).mask(mask).compare(EQUAL, value)
    }

    /// Continues if any of these bits is set in a number of 4 bytes.
    pub(in crate::network) fn has_any(&mut self, what: Load, bits: u32) -> &mut Self {
        self.load(what, 0)
            .mask(&bits.to_ne_bytes())
            .compare(NOT_EQUAL, &[0; 4])
    }

    /// Continues if none of them is set.
    pub(in crate::network) fn has_none(&mut self, what: Load, bits: u32) -> &mut Self {
        self.load(what, 0)
            .mask(&bits.to_ne_bytes())
            .compare(EQUAL, &[0; 4])
    }

    fn mask(&mut self, mask: &[u8]) -> &mut Self {
        self.add("bitwise", |data| {
            data.put_u32(1, REGISTER)
                .put_u32(2, REGISTER)
                .put_u32(3, mask.len() as u32)
                .nest(4, |data| {
                    data.put(1, mask);
                })
                .nest(5, |data| {
                    data.put(1, &vec![0; mask.len()]);
                });
        })
    }

    /// Continues if the destination port is in this range.
    pub(in crate::network) fn has_port(&mut self, first: u16, last: u16) -> &mut Self {
        self.load(Load::Port, 0)
            .compare(GREATER_OR_EQUAL, &first.to_be_bytes())
            .compare(LESS_OR_EQUAL, &last.to_be_bytes())
    }

    /// Puts a constant into the registers from number `at` on.
    pub(in crate::network) fn constant(&mut self, value: &[u8], at: u32) -> &mut Self {
        self.add("immediate", |data| {
            data.put_u32(1, REGISTER + at).nest(2, |data| {
                data.put(1, value);
            });
        })
    }

    /// Continues if the registers' value is in a set.
    pub(in crate::network) fn is_in(&mut self, set: &str) -> &mut Self {
        self.add("lookup", |data| {
            data.put_text(1, set).put_u32(2, REGISTER);
        })
    }

    /// Continues if it is not.
    pub(in crate::network) fn is_not_in(&mut self, set: &str) -> &mut Self {
        self.add("lookup", |data| {
            data.put_text(1, set).put_u32(2, REGISTER).put_u32(5, 1);
        })
    }

    /// Follows a map's verdict for the registers' value; continues if it has none.
    pub(in crate::network) fn by_map(&mut self, map: &str) -> &mut Self {
        self.add("lookup", |data| {
            data.put_text(1, map)
                .put_u32(2, REGISTER)
                .put_u32(3, VERDICT_REGISTER);
        })
    }

    /// Sets the packet's mark to the first register.
    pub(in crate::network) fn mark_packet(&mut self) -> &mut Self {
        self.add("meta", |data| {
            data.put_u32(2, 3).put_u32(3, REGISTER);
        })
    }

    /// Sets the connection's mark to it.
    pub(in crate::network) fn mark_connection(&mut self) -> &mut Self {
        self.add("ct", |data| {
            data.put_u32(2, 3).put_u32(4, REGISTER);
        })
    }

    /// Continues up to a rate of packets per second with this burst; or, with `over`, above it.
    pub(in crate::network) fn packet_rate(
        &mut self,
        rate: u64,
        burst: u32,
        over: bool,
    ) -> &mut Self {
        self.rate(rate, burst, 0, over)
    }

    /// Continues above a rate of bytes per second.
    pub(in crate::network) fn over_byte_rate(&mut self, rate: u64, burst: u32) -> &mut Self {
        self.rate(rate, burst, 1, true)
    }

    fn rate(&mut self, rate: u64, burst: u32, kind: u32, over: bool) -> &mut Self {
        self.add("limit", |data| {
            data.put_u64(1, rate)
                .put_u64(2, 1)
                .put_u32(3, burst)
                .put_u32(4, kind)
                .put_u32(5, u32::from(over));
        })
    }

    /// Counts the connections through this rule and continues if there are more than `most`.
    pub(in crate::network) fn over_connections(&mut self, most: u32) -> &mut Self {
        self.add("connlimit", |data| {
            data.put_u32(1, most).put_u32(2, 1);
        })
    }

    /// Counts with a named counter.
    pub(in crate::network) fn count(&mut self, counter: &str) -> &mut Self {
        self.add("objref", |data| {
            data.put_u32(1, super::OBJECT_COUNTER).put_text(2, counter);
        })
    }

    /// Reports the packet's first bytes to a netlink group.
    pub(in crate::network) fn report(&mut self, group: u16, bytes: u32) -> &mut Self {
        self.add("log", |data| {
            data.put(1, &group.to_be_bytes())
                .put_u32(3, bytes)
                .put(4, &1_u16.to_be_bytes());
        })
    }

    /// Rejects as prohibited: EHOSTUNREACH over IPv4, EACCES over IPv6.
    pub(in crate::network) fn prohibit(&mut self) {
        self.add("reject", |data| {
            data.put_u32(1, ICMPX).put(2, &[ADMIN_PROHIBITED]);
        });
    }

    /// Rejects as unreachable: EHOSTUNREACH over both, and invisible for UDP.
    pub(in crate::network) fn say_unreachable(&mut self) {
        self.add("reject", |data| {
            data.put_u32(1, ICMPX).put(2, &[HOST_UNREACHABLE]);
        });
    }

    /// Resets the connection. TCP only.
    pub(in crate::network) fn reset(&mut self) {
        self.add("reject", |data| {
            data.put_u32(1, TCP_RESET).put(2, &[0]);
        });
    }

    /// Rewrites the source to the address of the outgoing interface.
    pub(in crate::network) fn masquerade(&mut self) {
        self.add("masq", |_| {});
    }

    pub(in crate::network) fn verdict(&mut self, verdict: Verdict) {
        self.add("immediate", |data| {
            data.put_u32(1, VERDICT_REGISTER)
                .nest(2, |data| verdict.put(data));
        });
    }
}
