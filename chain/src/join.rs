//! How an instance becomes a member of a chain: messages from the server on its control socket, with descriptors.
//!
//! | message | descriptors |
//! | --- | --- |
//! | [`Join`]: once, first | blocks, ledger, route table, own board, the gateway's board, and the bell that wakes the gateway or, with `sk_msg`, the connection |
//! | [`Join::Names`]: once, next | none |
//! | [`Join::Peer`]: for each instance to which or from which there is an edge | its board, to read |
//!
//! An edge from X to Y is the output of X's board with Y's number, and the input of Y's board with X's. Numbers are given out once
//! in a chain's life, so each edge begins on fresh words, and it does not matter which side hears of it first.
//!
//! The server is trusted; what it says is checked all the same, so that a mistake ends in an error.

use crate::id::{Instance, Member};

/// Descriptors of [`Join::Chain`].
pub const JOIN_DESCRIPTORS: usize = 6;
/// Most bytes of a message: the names of 255 members.
pub const MESSAGE_BYTES_MAX: usize = 32 << 10;
/// Longest name of a member, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

const CHAIN_TAG: u8 = b'J';
const NAMES_TAG: u8 = b'N';
const PEER_TAG: u8 = b'P';
const CHAIN_BYTES: usize = 18;
const PEER_BYTES: usize = 5;

/// How descriptors are carried in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// [`crate::Ring`], which spins for so many microseconds at most before it sleeps.
    Ring {
        /// Microseconds.
        busy_poll_us: u32,
    },
    /// [`crate::Poll`].
    Poll,
    /// [`crate::SkMsg`].
    SkMsg,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Join {
    /// The instance is a member from now on.
    Chain {
        /// Its number.
        instance: Instance,
        /// The member that it is an instance of.
        member: Member,
        /// How descriptors travel.
        carrier: Carrier,
        /// Inputs and outputs of every board of the chain.
        edges: u16,
        /// Slots of each output.
        slots: u32,
        /// Whether its handler has payloads in place.
        in_place: bool,
    },
    /// The names of the chain's members, that of member 1 first.
    Names(Vec<String>),
    /// Another instance of the chain.
    Peer {
        /// Its number.
        instance: Instance,
        /// The member that it is an instance of.
        member: Member,
        /// Whether it may send to this instance.
        sends: bool,
        /// Whether this instance may send to it.
        receives: bool,
    },
}

impl Join {
    /// The bytes that travel.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            &Self::Chain {
                instance,
                member,
                carrier,
                edges,
                slots,
                in_place,
            } => {
                let (tag, busy_poll_us) = match carrier {
                    Carrier::Ring { busy_poll_us } => (0, busy_poll_us),
                    Carrier::Poll => (1, 0),
                    Carrier::SkMsg => (2, 0),
                };
                bytes.push(CHAIN_TAG);
                bytes.extend_from_slice(&instance.0.to_le_bytes());
                bytes.extend_from_slice(&[member.0, tag]);
                bytes.extend_from_slice(&busy_poll_us.to_le_bytes());
                bytes.extend_from_slice(&u32::from(edges).to_le_bytes());
                bytes.extend_from_slice(&slots.to_le_bytes());
                bytes.push(in_place.into());
            }
            Self::Names(names) => {
                bytes.push(NAMES_TAG);
                for name in names {
                    let name = &name.as_bytes()[..name.len().min(NAME_BYTES_MAX)];
                    bytes.push(name.len() as u8);
                    bytes.extend_from_slice(name);
                }
            }
            &Self::Peer {
                instance,
                member,
                sends,
                receives,
            } => {
                bytes.push(PEER_TAG);
                bytes.extend_from_slice(&instance.0.to_le_bytes());
                bytes.extend_from_slice(&[member.0, u8::from(sends) | u8::from(receives) << 1]);
            }
        }
        bytes
    }

    /// Reads a message; none if it is none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if let Some((&NAMES_TAG, mut rest)) = bytes.split_first() {
            let mut names = Vec::new();
            while let Some((&len, after)) = rest.split_first() {
                let (name, after) = after.split_at_checked(len.into())?;
                names.push(core::str::from_utf8(name).ok()?.to_owned());
                rest = after;
            }
            return Some(Self::Names(names));
        }
        let instance = Instance(u16::from_le_bytes([*bytes.get(1)?, *bytes.get(2)?]));
        let member = Member(*bytes.get(3)?);
        let word = |at: usize| {
            let word: Option<[u8; 4]> = bytes.get(at..at + 4)?.try_into().ok();
            word.map(u32::from_le_bytes)
        };
        match (bytes[0], bytes.len()) {
            (CHAIN_TAG, CHAIN_BYTES) if bytes[17] < 2 => Some(Self::Chain {
                instance,
                member,
                carrier: match bytes[4] {
                    0 => Carrier::Ring {
                        busy_poll_us: word(5)?,
                    },
                    1 => Carrier::Poll,
                    2 => Carrier::SkMsg,
                    _ => return None,
                },
                edges: u16::try_from(word(9)?).ok()?,
                slots: word(13)?,
                in_place: bytes[17] == 1,
            }),
            (PEER_TAG, PEER_BYTES) if bytes[4] < 4 => Some(Self::Peer {
                instance,
                member,
                sends: bytes[4] & 1 != 0,
                receives: bytes[4] & 2 != 0,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_its_bytes_and_nothing_else_is_one() {
        let instance = Instance(0x1234);
        let member = Member(7);
        let mut all = vec![];
        for carrier in [
            Carrier::Poll,
            Carrier::SkMsg,
            Carrier::Ring { busy_poll_us: 50 },
        ] {
            all.push(Join::Chain {
                instance,
                member,
                carrier,
                edges: 512,
                slots: 1024,
                in_place: carrier == Carrier::Poll,
            });
        }
        for (sends, receives) in [(false, true), (true, false), (true, true)] {
            all.push(Join::Peer {
                instance,
                member,
                sends,
                receives,
            });
        }
        for message in all {
            let bytes = message.encode();
            assert!(bytes.len() <= MESSAGE_BYTES_MAX);
            assert_eq!(Join::decode(&bytes), Some(message));
            assert_eq!(Join::decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Join::decode(&[&bytes[..], &[0]].concat()), None);
        }
        let names = Join::Names(vec!["cart".into(), "pay".into()]);
        assert_eq!(Join::decode(&names.encode()), Some(names.clone()));
        let bytes = names.encode();
        assert_eq!(Join::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Join::decode(b"N\x01\xff"), None);
        assert_eq!(Join::decode(b""), None);
        assert_eq!(Join::decode(b"X1234"), None);
    }
}
