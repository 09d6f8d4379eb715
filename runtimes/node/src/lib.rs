//! The native half of a Node.js worker, the addon `hearth_node.node`: the template's control socket and forks
//! ([`template`]), and an instance's end of the shared-memory channel ([`channel`]). The JavaScript half is
//! `bootstrap.js` and the modules in `worker/`. What is not Node's own is the crate `hearth-worker`.
//!
//! **How Node is forked.** Nobody promises that it can be, so the template is prepared for it: V8 runs single-threaded
//! and without its thread pool, the event loop holds no live handle, and [`memory`] takes back V8's wish that its heap
//! be left out of forks. The fork happens on the main thread, which is the only one the child then has; the child
//! renews its event loop at once and is left only by `_exit`. The server tries all this out before it relies on it
//! (`bootstrap.js --probe`), and has [`spares`] for a Node where it fails.
#![deny(unsafe_code)]

pub mod channel;
#[allow(unsafe_code)]
pub mod eventloop;
mod memory;
mod process;
mod rehearsal;
pub mod spares;
pub mod template;

#[allow(unsafe_code)]
mod sys;
