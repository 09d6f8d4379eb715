//! What travels: 16 bytes that say where a payload lies and on behalf of which request.
//!
//! ```text
//! bits    of the first word            bits    of the second word
//!  0..32  request                       0..16  block
//! 32..48  generation                   16..43  length, in bytes
//! 48..64  target: the receiver         43..51  route
//!                                      51..59  hop: the position in the route
//!                                      59      table: which of the two route tables
//!                                      60..63  kind
//!                                      63      more: the message goes on in another block
//! ```
//!
//! SPRIGHT's descriptor has 32 bits for the next instance, 32 unused, and a pointer, which works only where all
//! processes map the pool at one address. A block's number is an offset that can be checked with one comparison, and leaves room for
//! what SPRIGHT keeps in the payload's header, where each member can rewrite it: request, route and hop.
//!
//! The **target** stands here for `sk_msg`, whose program finds the receiver's socket by it. The **source** does not:
//! it comes from the transport, which knows it by the ring or the socket that a descriptor arrived on.
//!
//! The **generation** is the lower 16 bits of the block's, so a descriptor of a much earlier use may match by chance, once in
//! 65,536 uses. Therefore the receiver also checks that the block belongs to the descriptor's request, and goes along its route
//! ([`crate::PoolView::check`]). It protects honest members from their own late answers; a hostile one can read the current
//! generation in the ledger and spoil what is its chain's.

use crate::error::Refused;
use crate::id::{Instance, Owner};

/// Size on the wire.
pub const DESCRIPTOR_BYTES: usize = 16;
/// Most blocks in a pool: 16 bits.
pub const MAX_BLOCKS: u32 = 1 << 16;
/// Largest block, in bytes: a full pool of the smallest blocks is 256 MiB, and one of 8,192 of the largest 64 GiB.
pub const MAX_BLOCK_BYTES: u32 = 8 << 20;
/// Longest payload, in bytes, in a run of blocks: the length's 27 bits hold it.
pub const MAX_PAYLOAD_BYTES: u32 = 64 << 20;

const BLOCK_BITS: u32 = 16;
const LEN_BITS: u32 = 27;
const LEN_AT: u32 = BLOCK_BITS;
const ROUTE_AT: u32 = LEN_AT + LEN_BITS;
const HOP_AT: u32 = ROUTE_AT + 8;
const TABLE_AT: u32 = HOP_AT + 8;
const KIND_AT: u32 = TABLE_AT + 1;
const MORE_AT: u32 = KIND_AT + 3;

const _: () = assert!(MORE_AT == 63 && MAX_BLOCKS == 1 << BLOCK_BITS);
const _: () = assert!(MAX_BLOCK_BYTES <= MAX_PAYLOAD_BYTES && MAX_PAYLOAD_BYTES < 1 << LEN_BITS);

/// What the receiver does with the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Handles it; the route says who is next.
    Pass = 0,
    /// Handles it and replies to the sender, with the same block.
    Call = 1,
    /// Has it as the result of its call.
    Reply = 2,
    /// Has it as the error of its call, or of the request; from the gateway, as the answer that there is no room.
    Failure = 3,
    /// May use the block for calls of its own; or, with a request's number, goes on with that request in this block. From the gateway
    /// only.
    Grant = 4,
    /// Gets the block back unused; or, with a request's number, is asked for room for as many bytes as its length says.
    Return = 5,
    /// Has it as the result of the request, wherever on the route that is.
    End = 6,
}

impl Kind {
    /// All of them, by number.
    pub const ALL: [Self; 7] = [
        Self::Pass,
        Self::Call,
        Self::Reply,
        Self::Failure,
        Self::Grant,
        Self::Return,
        Self::End,
    ];
}

/// Which of the two route tables a request follows from its start to its end; see [`crate::routes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Table {
    /// The first.
    A = 0,
    /// The second.
    B = 1,
}

impl Table {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// Where a payload lies, whose it is and how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// The request, as the gateway counts them.
    pub request: u32,
    /// The lower half of the block's generation.
    pub generation: u16,
    /// To whom it is sent.
    pub target: Instance,
    /// The block's number.
    pub block: u32,
    /// The payload's length, in bytes.
    pub len: u32,
    /// The route.
    pub route: u8,
    /// The position in the route.
    pub hop: u8,
    /// The table that has the route.
    pub table: Table,
    /// What it is for.
    pub kind: Kind,
    /// Whether the message goes on in another block. None does: one that says so is refused, and only the kernel's records of what it
    /// has refused use the bit.
    pub more: bool,
}

impl Descriptor {
    /// One of request 1 that says no more than this.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn for_test(target: Instance, kind: Kind) -> Self {
        Self {
            request: 1,
            generation: 0,
            target,
            block: 0,
            len: 0,
            route: 0,
            hop: 0,
            table: Table::A,
            kind,
            more: false,
        }
    }

    /// Its request, as the owner of a block.
    #[inline]
    #[must_use]
    pub const fn owner(&self) -> Owner {
        Owner::Request {
            id: self.request,
            route: self.route,
        }
    }

    /// The two words that travel.
    ///
    /// # Errors
    /// The block's number or the length is beyond what any pool has.
    #[inline]
    pub fn to_words(&self) -> Result<[u64; 2], Refused> {
        if self.block >= MAX_BLOCKS {
            return Err(Refused::OutsidePool {
                block: self.block,
                blocks: MAX_BLOCKS,
            });
        }
        if self.len > MAX_PAYLOAD_BYTES {
            return Err(Refused::TooLong {
                len: self.len,
                room: MAX_PAYLOAD_BYTES,
            });
        }
        let first = u64::from(self.request)
            | u64::from(self.generation) << 32
            | u64::from(self.target.0) << 48;
        let second = u64::from(self.block)
            | u64::from(self.len) << LEN_AT
            | u64::from(self.route) << ROUTE_AT
            | u64::from(self.hop) << HOP_AT
            | (self.table as u64) << TABLE_AT
            | (self.kind as u64) << KIND_AT
            | u64::from(self.more) << MORE_AT;
        Ok([first, second])
    }

    /// Reads what travelled. Every bit pattern is a descriptor or one typed error; whether it may be followed,
    /// [`crate::PoolView::check`] and [`crate::Pool::check`] say.
    ///
    /// # Errors
    /// The kind is unknown.
    #[inline]
    pub fn from_words([first, second]: [u64; 2]) -> Result<Self, Refused> {
        let kind = (second >> KIND_AT & 7) as u8;
        let kind = *Kind::ALL
            .get(usize::from(kind))
            .ok_or(Refused::UnknownKind(kind))?;
        Ok(Self {
            request: first as u32,
            generation: (first >> 32) as u16,
            target: Instance((first >> 48) as u16),
            block: second as u32 & (MAX_BLOCKS - 1),
            len: (second >> LEN_AT) as u32 & ((1 << LEN_BITS) - 1),
            route: (second >> ROUTE_AT) as u8,
            hop: (second >> HOP_AT) as u8,
            table: if second >> TABLE_AT & 1 == 0 {
                Table::A
            } else {
                Table::B
            },
            kind,
            more: second >> MORE_AT == 1,
        })
    }

    /// The bytes that travel, for a transport of bytes.
    ///
    /// # Errors
    /// As [`Self::to_words`].
    pub fn to_bytes(&self) -> Result<[u8; DESCRIPTOR_BYTES], Refused> {
        let [first, second] = self.to_words()?;
        Ok((u128::from(first) | u128::from(second) << 64).to_le_bytes())
    }

    /// Reads the bytes that travelled.
    ///
    /// # Errors
    /// As [`Self::from_words`].
    pub fn from_bytes(bytes: [u8; DESCRIPTOR_BYTES]) -> Result<Self, Refused> {
        let whole = u128::from_le_bytes(bytes);
        Self::from_words([whole as u64, (whole >> 64) as u64])
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEAST: Descriptor = Descriptor {
        request: 0,
        generation: 0,
        target: Instance::GATEWAY,
        block: 0,
        len: 0,
        route: 0,
        hop: 0,
        table: Table::A,
        kind: Kind::Pass,
        more: false,
    };

    #[test]
    fn each_field_has_bits_of_its_own() {
        let fields = [
            Descriptor {
                request: u32::MAX,
                ..LEAST
            },
            Descriptor {
                generation: u16::MAX,
                ..LEAST
            },
            Descriptor {
                target: Instance(u16::MAX),
                ..LEAST
            },
            Descriptor {
                block: MAX_BLOCKS - 1,
                ..LEAST
            },
            Descriptor {
                len: MAX_PAYLOAD_BYTES,
                ..LEAST
            },
            Descriptor {
                route: u8::MAX,
                ..LEAST
            },
            Descriptor {
                hop: u8::MAX,
                ..LEAST
            },
            Descriptor {
                table: Table::B,
                ..LEAST
            },
            Descriptor {
                kind: Kind::Return,
                ..LEAST
            },
            Descriptor {
                more: true,
                ..LEAST
            },
        ];
        let mut seen = [0; 2];
        for field in fields {
            let words = field.to_words().expect("in range");
            assert_eq!(Descriptor::from_words(words), Ok(field));
            for (seen, word) in seen.iter_mut().zip(words) {
                assert_eq!(*seen & word, 0, "{field:?}");
                *seen |= word;
            }
        }
        assert_eq!(LEAST.to_words(), Ok([0, 0]));
    }

    #[test]
    fn what_no_pool_has_is_not_encoded() {
        let block = Descriptor {
            block: MAX_BLOCKS,
            ..LEAST
        };
        assert!(matches!(block.to_words(), Err(Refused::OutsidePool { .. })));
        let len = Descriptor {
            len: MAX_PAYLOAD_BYTES + 1,
            ..LEAST
        };
        assert!(matches!(len.to_bytes(), Err(Refused::TooLong { .. })));
    }

    proptest! {
        /// What is read is what stood there: no bit is ignored, but those of an unknown kind are refused.
        #[test]
        fn any_sixteen_bytes_are_a_descriptor_or_refused(bytes: [u8; DESCRIPTOR_BYTES]) {
            match Descriptor::from_bytes(bytes) {
                Ok(descriptor) if descriptor.len <= MAX_PAYLOAD_BYTES => {
                    prop_assert_eq!(descriptor.to_bytes(), Ok(bytes));
                }
                Ok(descriptor) => {
                    let refused = matches!(descriptor.to_bytes(), Err(Refused::TooLong { .. }));
                    prop_assert!(refused);
                }
                Err(refused) => {
                    prop_assert_eq!(refused, Refused::UnknownKind(bytes[15] >> 4 & 7));
                    prop_assert!(bytes[15] >> 4 & 7 > 6);
                }
            }
        }
    }
}
