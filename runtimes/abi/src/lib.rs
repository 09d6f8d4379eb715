//! The shared-memory channel between the Hearth server and one instance of a function.
//!
//! One memfd ([`Region`]) is mapped by both sides and holds a versioned header and two single-producer single-consumer
//! byte rings, one each way. It carries frames: a 32-byte header (length, kind, flags, invocation id, CRC32) and a
//! payload. A message larger than a frame is streamed in frames flagged [`Flags::MORE`]; a full ring is back-pressure,
//! never loss. An idle side announces that it sleeps and waits on a [`Bell`]; while both sides are busy, no system
//! calls are made.
//!
//! **Trust.** The host treats the worker as hostile: every shared word is loaded once and bounded, headers are copied
//! out before they are used, and a payload's checksum is verified on the private copy. Whatever the worker writes into
//! the region, the host gets frames or a typed [`Violation`]; it never panics, spins or leaves the map. The worker
//! trusts the host.
//!
//! **How to sleep.** This order of steps ensures that no wake-up is lost:
//! - A receiver that gets no frame calls [`Receiver::prepare_wait`]; after `true` it sleeps on its bell, then takes the
//!   rings ([`Bell::drain`]), calls [`Receiver::cancel_wait`] and looks again. After `false` it looks again at once.
//! - A sender that finds the ring full does the same with [`Sender::prepare_wait`]; it is one bell for both.
//! - After sending, [`Sender::bell_needed`] says whether to ring the peer's bell; after releasing,
//!   [`Receiver::bell_needed`]. Both are asked once for any number of frames.
//!
//! [`Blocking`] does all this for a worker.
//!
//! **How to spin.** A side that expects its peer soon calls [`Sender::warm_up`] and then polls [`Receiver::is_ready`]
//! ([`spin`]); while it waits, it prepares the memory of its next frame.
//!
//! Read in this order: [`layout`] (what lies where), [`ring`] (positions and wake-ups; the part that loom
//! models), [`frame`] and [`message`] (what travels), then the two ends [`Sender`] and [`Receiver`].
//!
//! Every integer in the region is little-endian and the region is shared by processes of one machine, so only
//! little-endian targets are supported.
#![deny(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!("the channel's integers are native and little-endian");

pub mod frame;
pub mod layout;
pub mod message;
pub mod ring;

mod error;
mod sync;

#[allow(unsafe_code)]
pub mod checksum;
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code)]
mod fold;

// Loom replaces the atomics by its own, which cannot lie in a mapping: its build holds the ring's core alone.
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod area;
#[cfg(not(loom))]
mod bell;
#[cfg(not(loom))]
mod blocking;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod counters;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod receiver;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod region;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod sender;
#[cfg(not(loom))]
pub mod spin;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod stamps;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod time_slice;

pub use error::{AbiError, Violation};
pub use frame::{Flags, FrameHeader, Kind};
pub use layout::PROTOCOL_VERSION;
pub use message::{HeadError, RequestHead, Trigger};
pub use sync::full_fence;

#[cfg(not(loom))]
pub use {
    bell::Bell,
    blocking::{Blocking, Message},
    counters::{Counters, Stops},
    receiver::{Frame, Receiver},
    region::{Endpoint, Region},
    sender::Sender,
    stamps::{StampLine, Stamps, monotonic_ns},
};
