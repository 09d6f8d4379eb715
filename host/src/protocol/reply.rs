//! What the host process answers and reports.

use super::frame::{Frame, Malformed, TEXT_MAX, WITH_TEXT};
use super::{Key, LeafNumber, Sequence};

/// Size of every reply.
pub const REPLY_BYTES: usize = WITH_TEXT;
/// Longest text of one, in bytes; longer ones are cut.
pub const REPLY_TEXT_MAX: usize = TEXT_MAX;

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

/// Why a request was not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A step failed: which, and how.
    Step(String, String),
    /// The sandbox is not there.
    Gone,
}

/// One reply, or news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To a server that was just started, and to nothing else: who it is to be. Comes with the data directory's lock, the
    /// listener, and that of the functions if it is separate.
    Start {
        /// User.
        uid: u32,
        /// Group.
        gid: u32,
        /// Whether functions have a listener of their own.
        separate: bool,
    },
    /// What the host can do: one of several, before [`Reply::Up`].
    Capability {
        /// "landlock", "criu" …
        name: String,
        /// Whether it can be used.
        available: bool,
        /// The version if it can be used, or why not.
        text: Option<String>,
    },
    /// Requests are taken from here on.
    Up {
        /// Whether the cgroups are of version 2.
        v2: bool,
        /// Directory of all sandboxes' cgroups in the memory hierarchy.
        cgroups: String,
        /// Which `hearth-init` it is: another one has another text.
        init: String,
    },
    /// A sandbox runs. Comes with the template's control socket, standard output and error.
    Created {
        /// Of which request.
        sequence: Sequence,
        /// The sandbox.
        key: Key,
        /// Name of its cgroup.
        name: String,
        /// Host uid of template and instances: of a pre-warmed sandbox, another one than was asked for.
        uid: u32,
        /// Whether it was pre-warmed.
        was_prewarmed: bool,
    },
    /// A request was not granted.
    Refused(Sequence, Refusal),
    /// A request was done.
    Done(Sequence),
    /// An instance cgroup was asked for, and is there.
    InstanceCgroup(Sequence, Key, LeafNumber),
    /// One was made for later.
    Prepared(Key, LeafNumber),
    /// An instance could not be moved into its cgroup.
    AttachFailed(Key, LeafNumber, String),
    /// A sandbox's processes are gone.
    Ended {
        /// The sandbox.
        key: Key,
        /// "the template exited with status 1" …
        how: String,
        /// Whether the template's leaf met its memory limit.
        out_of_memory: bool,
        /// Status and signal of the template, as far as PID 1 has reported them.
        code: Option<i32>,
        /// See above.
        signal: Option<i32>,
    },
    /// A sandbox was removed.
    Destroyed(Key),
    /// Whether there is a pre-warmed sandbox for the runtime of this name, and whether it is ready.
    Prewarmed {
        /// The runtime.
        runtime: String,
        /// Whether there is one.
        kept: bool,
        /// Whether it is ready.
        ready: bool,
    },
}

impl Reply {
    /// As bytes. Texts are cut where they do not fit.
    #[must_use]
    pub fn encode(&self) -> [u8; REPLY_BYTES] {
        self.frame().encode()
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let reply = Self::of(Frame::decode::<REPLY_BYTES>(bytes)?)?;
        if reply.encode() != *bytes {
            return Err(Malformed::Form);
        }
        Ok(reply)
    }

    /// How many descriptors come with it.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        match self {
            Self::Created { .. } => 3,
            Self::Start { separate, .. } => 2 + usize::from(*separate),
            _ => 0,
        }
    }

    fn frame(&self) -> Frame {
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
            } => Frame {
                kind: 3,
                flags: flag(was_prewarmed, WAS_PREWARMED),
                number: uid,
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

    fn of(frame: Frame) -> Result<Self, Malformed> {
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
            kind => return Err(Malformed::Kind(kind)),
        })
    }
}
