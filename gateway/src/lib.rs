//! The gateway: between the sandboxes' network namespaces and the host's own is one that only this process is in. It knows
//! addresses, ports and limits; names are the server's. It may administer networks, and nothing else.
//!
//! ```text
//! sandbox ── eth0 ═ s<n> ── gateway ── up ═ hearth<n> ── the host's own network namespace
//! ```
//! The gateway has no file: it ends with the process, however that ends. The host's own namespace has one interface, which
//! ends with its peer, and one table, which ends with its socket. `server/docs/gateway.md` explains the design,
//! `server/docs/privileges.md` what each process may do.
//!
//! The modules are listed from the outside in, and each uses only those below it:
//! - [`process`]: `hearth gateway` as a process: from root to one capability.
//! - [`serve`]: takes what the host process and the server have to say.
//! - [`gateway`]: the namespace, and the work done in it.
//! - [`fast`]: what passes without having to meet the rules.
//! - [`interfaces`]: work that nothing waits for.
//! - [`rules`]: what passes. [`ranges`]: what never does.
//! - [`connections`]: tracked connections. [`refusals`]: reports of refused packets.
//! - [`nft`], [`link`]: the kernel's interfaces, over [`netlink`].
//! - [`address`]: addresses by slot. [`settings`]: what the administrator chooses. [`protocol`]: the server's messages.
//! - [`sys`]: system calls.

#![deny(unsafe_code)]

pub mod process;

mod serve;

mod gateway;

mod fast;

mod interfaces;

mod rules;

mod ranges;

mod connections;
mod refusals;

mod link;
mod nft;

mod netlink;

mod address;
mod settings;

pub mod protocol;

pub mod sys;

pub use self::settings::Settings;
