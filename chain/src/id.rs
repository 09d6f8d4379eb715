//! Who takes part in a chain, and to whom a block belongs.

use core::fmt;

/// A process that takes part in a chain: an instance of a member, or the gateway. The server gives the numbers out, and a
/// number again only under a new epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instance(pub u16);

impl Instance {
    /// The chain's gateway, in the server.
    pub const GATEWAY: Self = Self(0);
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::GATEWAY {
            f.write_str("the gateway")
        } else {
            write!(f, "instance {}", self.0)
        }
    }
}

/// A function's place in a chain. 0 is the gateway, which routes may name as a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u8);

impl Member {
    /// The gateway.
    pub const GATEWAY: Self = Self(0);
}

/// To whom a block belongs, which is who gives it back: not who has it in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The gateway itself.
    Gateway,
    /// A request. Its blocks travel from member to member, and come back when it ends.
    Request {
        /// Its number, as the gateway counts them.
        id: u32,
        /// The route that it goes along: nobody is to take it along another.
        route: u8,
    },
    /// An instance, for the payloads of its own calls. They come back when it ends.
    Instance {
        /// The instance.
        instance: Instance,
        /// Which of the processes that had this number.
        epoch: u16,
    },
    /// A call of an instance whose payload or result is larger than a block. They come back when it is over, or the instance ends.
    Call {
        /// The instance that calls.
        instance: Instance,
        /// The number of the block that it calls with: one of its own.
        call: u16,
        /// Whether it was lent for the result, to who was called; else for the payload, to who calls.
        is_result: bool,
    },
}

const REQUEST: u64 = 1 << 62;
const INSTANCE: u64 = 2 << 62;
const CALL: u64 = 3 << 62;

impl Owner {
    /// As one word of the ledger.
    #[inline]
    #[must_use]
    pub const fn pack(self) -> u64 {
        match self {
            Self::Gateway => 0,
            Self::Request { id, route } => REQUEST | (route as u64) << 32 | id as u64,
            Self::Instance { instance, epoch } => {
                INSTANCE | (epoch as u64) << 16 | instance.0 as u64
            }
            Self::Call {
                instance,
                call,
                is_result,
            } => CALL | (is_result as u64) << 32 | (call as u64) << 16 | instance.0 as u64,
        }
    }

    /// From a word of the ledger; none if it says nothing that [`Self::pack`] says.
    #[inline]
    #[must_use]
    pub const fn unpack(word: u64) -> Option<Self> {
        let owner = match word >> 62 {
            0 => Self::Gateway,
            1 => Self::Request {
                id: word as u32,
                route: (word >> 32) as u8,
            },
            2 => Self::Instance {
                instance: Instance(word as u16),
                epoch: (word >> 16) as u16,
            },
            _ => Self::Call {
                instance: Instance(word as u16),
                call: (word >> 16) as u16,
                is_result: word >> 32 & 1 == 1,
            },
        };
        if owner.pack() == word {
            Some(owner)
        } else {
            None
        }
    }

    /// The instance for whose calls it is, if it is for calls.
    #[inline]
    #[must_use]
    pub const fn caller(self) -> Option<Instance> {
        match self {
            Self::Instance { instance, .. } | Self::Call { instance, .. } => Some(instance),
            Self::Gateway | Self::Request { .. } => None,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_one_word() {
        let owners = [
            Owner::Gateway,
            Owner::Request { id: 0, route: 1 },
            Owner::Request {
                id: u32::MAX,
                route: u8::MAX,
            },
            Owner::Instance {
                instance: Instance(u16::MAX),
                epoch: 0,
            },
            Owner::Instance {
                instance: Instance(1),
                epoch: u16::MAX,
            },
            Owner::Call {
                instance: Instance(u16::MAX),
                call: 0,
                is_result: true,
            },
            Owner::Call {
                instance: Instance(0),
                call: u16::MAX,
                is_result: false,
            },
        ];
        for owner in owners {
            assert_eq!(Owner::unpack(owner.pack()), Some(owner));
        }
        for word in [1, REQUEST | 1 << 40, INSTANCE | 1 << 40, CALL | 1 << 33] {
            assert_eq!(Owner::unpack(word), None, "{word:#x}");
        }
    }
}
