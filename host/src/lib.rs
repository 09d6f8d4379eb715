//! The host process: everything that needs root, and nothing else. No HTTP, no JSON, no SQL, no memory shared with a
//! function, no async runtime.
//!
//! It takes over what was prepared before there was a server ([`Host`]), then does what the server asks for over one socket
//! ([`Host::serve`]) until one of the two ends; every sandbox ends with it.
//!
//! It has few dependencies, because all of them run as root: single fields of `/proc` are read without `procfs-core`.
//!
//! The modules are listed from the outside in, and each uses only those below it:
//! - [`process`]: the host process as a process, and how the server drops its privileges.
//! - [`supervisor`]: owns the sandboxes' state; takes requests, init's reports and process exits.
//! - [`gateway`]: the gateway, another process, which connects sandboxes. [`network`]: what it needs from within them.
//! - [`prepare`]: what is done before there is a server.
//! - [`chains`]: connections for chains.
//! - [`images`]: dumps templates, removes images. [`ports`]: opens those of functions. [`helpers`]: the threads that do such things.
//! - [`cgroup`]: limits, on v1 and v2. [`limits`]: arithmetic over them. [`scheduling`]: how threads get processors.
//! - [`peer`]: a socket to another process. [`protocol`]: the messages.
//!
//! `server/docs/privileges.md` explains which process may do what, `server/docs/sandbox.md` how each resource is contained.

#![deny(unsafe_code)]

pub mod process;

mod supervisor;

mod gateway;

mod prepare;

mod images;
mod ports;

mod helpers;
mod network;

mod chains;

pub mod cgroup;
pub mod cores;
mod limits;
pub mod scheduling;

mod children;
mod directories;
mod settings;

mod error;

pub mod peer;

pub mod protocol;

pub mod memfd;

pub use self::limits::CPU_PERIOD_US;

pub use self::error::{Capability, HostProcessError, SandboxError};
pub use self::prepare::{Host, Probed, find_init, server_environment};
pub use self::settings::{
    CRIU_SETTING, CriuChoice, FIRST_UID, GATEWAY_USER, IMAGES, PortSettings, RUN, Settings, UIDS,
};
