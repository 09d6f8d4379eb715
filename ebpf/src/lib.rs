//! Hearth's programs in the kernel, and typed handles on them. Nothing of Hearth is used here, and nothing of aya is seen
//! outside.
//!
//! Loading and attaching ([`Ingress`], [`sproxy::Sproxy`], [`Redirect`], [`xsk::open`]) need root. What they make is used through descriptors,
//! which a process without privileges may hold: [`Maps`] from [`Descriptors`], [`sproxy::Exchange`] from
//! [`sproxy::Descriptors`], [`xsk::Socket`] from [`xsk::Opened`].
//!
//! The modules are listed so that each uses only those below it:
//! - [`audit`]: counts what processes do on a request's path, for measurements
//! - [`Floor`]: what to measure the programs beside
//! - [`Flood`]: a generator of packets for measurements
//! - [`Redirect`]: forwarding past the stack
//! - [`gateway`]: the fast way of sandboxes' connections
//! - [`sproxy`]: carries what the instances of a chain send to each other
//! - [`Ingress`]: loads and attaches the ingress
//! - `programs`: what loading and attaching have in common
//! - `link`: attaching
//! - `signals`: what loading is not to be disturbed by
//! - [`xsk`]: AF_XDP sockets
//! - [`Maps`]: the maps of the ingress
//! - [`ProgramReport`], [`MapReport`]: what is loaded
//! - [`limits`]: rates as the programs want them
//! - [`interfaces`]: the interfaces of the host, and what is attached to them
//! - [`datagram`]: UDP in a frame, and the reply to it
//! - [`records`]: what `bpf/shared.h` says, in Rust
//! - [`packet`]: the twin of the programs' parser
//! - [`clock`]: the kernel's clock that time stamps and expiries are in
#![deny(unsafe_code)]

pub mod audit;

mod floor;

mod flood;

mod redirect;

pub mod gateway;
pub mod sproxy;

mod ingress;

mod programs;

mod link;

mod signals;

pub mod xsk;

mod maps;

mod report;

pub mod limits;

pub mod interfaces;

pub mod datagram;

pub mod records;

pub mod packet;

pub mod clock;

pub use flood::Flood;
pub use floor::Floor;
pub use ingress::{Attachment, Capacity, Ingress};
pub use maps::{
    Addresses, Descriptors, Functions, Listeners, Lists, MapError, Maps, Ports, Sources, Verdict,
};
pub use programs::{AttachError, LoadError, Mode, Wanted};
pub use redirect::{Path, Redirect, RedirectError};
pub use report::{MapReport, ProgramReport};
