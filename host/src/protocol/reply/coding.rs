//! How each reply is laid out in a [`Frame`].

use super::{Refusal, Reply};
use crate::protocol::Counters;
use crate::protocol::frame::{Frame, Malformed};

const AVAILABLE: u8 = 1;
const HAS_TEXT: u8 = 2;
const V2: u8 = 1;
const WAS_PREWARMED: u8 = 1;
const OUT_OF_MEMORY: u8 = 1;
const HAS_CODE: u8 = 2;
const HAS_SIGNAL: u8 = 4;
const SEPARATE: u8 = 1;
const KEPT: u8 = 1;
const READY: u8 = 2;

impl Reply {
    pub(super) fn frame(&self) -> Frame {
        let empty = Frame::default();
        let flag = |set, flag: u8| if set { flag } else { 0 };
        match self.clone() {
            Self::Start { uid, gid, separate } => Frame {
                kind: 13,
                flags: flag(separate, SEPARATE),
                number: uid,
                count: gid,
                ..empty
            },
            Self::Capability {
                name,
                available,
                text,
            } => Frame {
                kind: 1,
                flags: flag(available, AVAILABLE) | flag(text.is_some(), HAS_TEXT),
                name,
                text: text.unwrap_or_default(),
                ..empty
            },
            Self::Up { v2, cgroups, init } => Frame {
                kind: 2,
                flags: flag(v2, V2),
                name: init,
                text: cgroups,
                ..empty
            },
            Self::Created {
                sequence,
                key,
                name,
                uid,
                was_prewarmed,
                interface,
            } => Frame {
                kind: 3,
                flags: flag(was_prewarmed, WAS_PREWARMED),
                number: uid,
                count: interface,
                sequence,
                key,
                name,
                ..empty
            },
            Self::Refused(sequence, Refusal::Gone) => Frame {
                kind: 4,
                sequence,
                ..empty
            },
            Self::Refused(sequence, Refusal::Step(step, detail)) => Frame {
                kind: 5,
                sequence,
                name: step,
                text: detail,
                ..empty
            },
            Self::Done(sequence) => Frame {
                kind: 6,
                sequence,
                ..empty
            },
            Self::InstanceCgroup(sequence, key, leaf) => Frame {
                kind: 7,
                sequence,
                key,
                leaf,
                ..empty
            },
            Self::Prepared(key, leaf) => Frame {
                kind: 8,
                key,
                leaf,
                ..empty
            },
            Self::AttachFailed(key, leaf, text) => Frame {
                kind: 9,
                key,
                leaf,
                text,
                ..empty
            },
            Self::Ended {
                key,
                how,
                out_of_memory,
                code,
                signal,
            } => Frame {
                kind: 10,
                flags: flag(out_of_memory, OUT_OF_MEMORY)
                    | flag(code.is_some(), HAS_CODE)
                    | flag(signal.is_some(), HAS_SIGNAL),
                key,
                number: code.unwrap_or_default().cast_unsigned(),
                count: signal.unwrap_or_default().cast_unsigned(),
                text: how,
                ..empty
            },
            Self::Refusals => Frame { kind: 14, ..empty },
            Self::Counters(sequence, counters) => Frame {
                kind: 15,
                sequence,
                key: counters.bytes_out,
                leaf: counters.packets_out,
                amount: counters.bytes_in,
                micros: counters.packets_in,
                more: counters.connections,
                number: (counters.refused >> 32) as u32,
                count: counters.refused as u32,
                ..empty
            },
            Self::Socket(sequence) => Frame {
                kind: 16,
                sequence,
                ..empty
            },
            Self::Destroyed(key) => Frame {
                kind: 11,
                key,
                ..empty
            },
            Self::Prewarmed {
                runtime,
                kept,
                ready,
            } => Frame {
                kind: 12,
                flags: flag(kept, KEPT) | flag(ready, READY),
                name: runtime,
                ..empty
            },
        }
    }

    pub(super) fn of(frame: Frame) -> Result<Self, Malformed> {
        let has = |flag: u8| frame.flags & flag != 0;
        let (sequence, key, leaf) = (frame.sequence, frame.key, frame.leaf);
        Ok(match frame.kind {
            1 => Self::Capability {
                available: has(AVAILABLE),
                text: has(HAS_TEXT).then_some(frame.text),
                name: frame.name,
            },
            2 => Self::Up {
                v2: has(V2),
                cgroups: frame.text,
                init: frame.name,
            },
            3 => Self::Created {
                was_prewarmed: has(WAS_PREWARMED),
                uid: frame.number,
                interface: frame.count,
                sequence,
                key,
                name: frame.name,
            },
            4 => Self::Refused(sequence, Refusal::Gone),
            5 => Self::Refused(sequence, Refusal::Step(frame.name, frame.text)),
            6 => Self::Done(sequence),
            7 => Self::InstanceCgroup(sequence, key, leaf),
            8 => Self::Prepared(key, leaf),
            9 => Self::AttachFailed(key, leaf, frame.text),
            10 => Self::Ended {
                out_of_memory: has(OUT_OF_MEMORY),
                code: has(HAS_CODE).then_some(frame.number.cast_signed()),
                signal: has(HAS_SIGNAL).then_some(frame.count.cast_signed()),
                key,
                how: frame.text,
            },
            11 => Self::Destroyed(key),
            12 => Self::Prewarmed {
                kept: has(KEPT),
                ready: has(READY),
                runtime: frame.name,
            },
            13 => Self::Start {
                uid: frame.number,
                gid: frame.count,
                separate: has(SEPARATE),
            },
            14 => Self::Refusals,
            15 => Self::Counters(
                sequence,
                Counters {
                    bytes_out: key,
                    packets_out: leaf,
                    bytes_in: frame.amount,
                    packets_in: frame.micros,
                    connections: frame.more,
                    refused: u64::from(frame.number) << 32 | u64::from(frame.count),
                },
            ),
            16 => Self::Socket(sequence),
            kind => return Err(Malformed::Kind(kind)),
        })
    }
}
