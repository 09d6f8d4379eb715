//! Hearth's programs in the kernel, and typed handles on them. Nothing of Hearth is used here, and nothing of aya is seen
//! outside.
//!
//! Loading and attaching ([`Ingress`], [`Redirect`], [`xsk::open`]) need root. What they make is used through descriptors,
//! which a process without privileges may hold: [`Maps`] from [`Descriptors`], [`xsk::Socket`] from [`xsk::Opened`].
//!
//! - [`records`]: what `bpf/shared.h` says, in Rust
//! - [`packet`]: the twin of the programs' parser
//! - [`datagram`]: UDP in a frame, and the reply to it
//! - [`clock`]: the kernel's clock that time stamps and expiries are in
//! - [`interfaces`]: the interfaces of the host, and what is attached to them
//! - [`limits`]: rates as the programs want them
//! - [`Maps`]: the maps of the ingress
//! - [`Ingress`]: loads and attaches it
//! - [`Redirect`]: forwarding past the stack
//! - [`xsk`]: AF_XDP sockets
#![deny(unsafe_code)]

pub mod clock;
pub mod datagram;
mod ingress;
pub mod interfaces;
pub mod limits;
mod maps;
pub mod packet;
pub mod records;
mod redirect;
mod report;
pub mod xsk;

pub use ingress::{AttachError, Attachment, Capacity, Ingress, LoadError, Mode, Wanted};
pub use maps::{
    Addresses, Descriptors, Functions, Listeners, Lists, MapError, Maps, Ports, Sources, Verdict,
};
pub use redirect::{Path, Redirect, RedirectError};
pub use report::{MapReport, ProgramReport};
