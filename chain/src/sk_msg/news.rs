//! What travels on a connection beside descriptors, in records of the same size: `bpf/sproxy.h` has the same numbers.

use crate::descriptor::Descriptor;
use crate::id::Instance;

/// Where the source of a delivered descriptor is, and the target of one that was denied.
pub(super) const SOURCE_AT: u32 = 48;
const HOP_AT: u32 = 51;
const KIND_AT: u32 = 60;
const KIND: u64 = 7 << KIND_AT;
/// The kind of a record that is no descriptor. Instances cannot send it: the kernel refuses it.
const NEWS: u64 = 7 << KIND_AT;
const RETURNED_AT: u32 = 63;

/// What the gateway tells an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// There is something on the control socket.
    Look,
    /// A peer has ended, and all that it sent was sent before.
    Gone(Instance),
}

impl News {
    /// As it travels.
    #[must_use]
    pub fn to_words(self) -> [u64; 2] {
        let instance = match self {
            Self::Look => 0,
            Self::Gone(peer) => peer.0,
        };
        [u64::from(instance) << SOURCE_AT, NEWS]
    }
}

/// Why the kernel did not deliver a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Members send no such kind.
    Kind,
    /// The chain has no such instance, or not any more.
    Target,
    /// No edge allows it.
    Edge,
    /// The sender did not have the block in hand.
    Block,
    /// The target's socket was just gone.
    Gone,
    /// Of a program that knows more reasons than this library.
    Unknown(u8),
}

/// A descriptor that the kernel did not deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denied {
    /// As it was sent, to its target; kind and hop are lost. If the block is returned, generation and block are the kernel's word,
    /// else the sender's, as all the rest.
    pub descriptor: Descriptor,
    /// Why.
    pub reason: Reason,
    /// The sender had the block in hand, and now the gateway has.
    pub is_returned: bool,
}

impl Denied {
    /// From a record at the gateway's end; none if it is another record.
    #[must_use]
    pub fn read([first, second]: [u64; 2]) -> Option<Self> {
        if second & KIND != NEWS {
            return None;
        }
        let descriptor = Descriptor::from_words([first, second & !KIND]).ok()?;
        Some(Self {
            descriptor,
            reason: match (second >> HOP_AT) as u8 {
                1 => Reason::Kind,
                2 => Reason::Target,
                3 => Reason::Edge,
                4 => Reason::Block,
                5 => Reason::Gone,
                other => Reason::Unknown(other),
            },
            is_returned: second >> RETURNED_AT == 1,
        })
    }
}

/// A record at an instance's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    News(News),
    /// With its source, which it has in the place of its target, too.
    Descriptor(Instance, Descriptor),
}

/// Reads a record. Every bit pattern is one: where it comes from, the kernel says.
pub(super) fn read(words: [u64; 2]) -> Record {
    let instance = Instance((words[0] >> SOURCE_AT) as u16);
    match Descriptor::from_words(words) {
        Ok(descriptor) => Record::Descriptor(instance, descriptor),
        // Of the eight kinds one is no descriptor's.
        Err(_) if instance == Instance::GATEWAY => Record::News(News::Look),
        Err(_) => Record::News(News::Gone(instance)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::{Kind, Table};

    /// The words of a descriptor as they arrive from `from`.
    fn arrived(words: [u64; 2], from: Instance) -> [u64; 2] {
        [
            words[0] & !(0xffff << SOURCE_AT) | u64::from(from.0) << SOURCE_AT,
            words[1],
        ]
    }

    #[test]
    fn a_record_is_a_descriptor_with_its_source_or_news() {
        let descriptor = Descriptor {
            request: 7,
            generation: 8,
            target: Instance(3),
            block: 9,
            len: 10,
            route: 1,
            hop: 2,
            table: Table::B,
            kind: Kind::Reply,
            more: true,
        };
        let words = descriptor.to_words().expect("legal");
        let arrived = arrived(words, Instance(5));
        assert_eq!(
            read(arrived),
            Record::Descriptor(
                Instance(5),
                Descriptor {
                    target: Instance(5),
                    ..descriptor
                }
            )
        );
        for news in [News::Look, News::Gone(Instance(9))] {
            assert_eq!(read(news.to_words()), Record::News(news));
        }
    }

    #[test]
    fn what_was_denied_says_why_and_whose_the_block_is() {
        for (number, reason) in [
            (1_u8, Reason::Kind),
            (2, Reason::Target),
            (3, Reason::Edge),
            (4, Reason::Block),
            (5, Reason::Gone),
            (77, Reason::Unknown(77)),
        ] {
            for is_returned in [false, true] {
                let second =
                    0x1234 | u64::from(number) << 51 | 7_u64 << 60 | u64::from(is_returned) << 63;
                let denied = Denied::read([6 << 48 | 11, second]).expect("denied");
                assert_eq!((denied.reason, denied.is_returned), (reason, is_returned));
                let Descriptor {
                    target,
                    request,
                    block,
                    ..
                } = denied.descriptor;
                assert_eq!((target, request, block), (Instance(6), 11, 0x1234));
            }
        }
        assert_eq!(Denied::read([0, 0]), None);
    }
}
