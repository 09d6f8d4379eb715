//! The native half of a Node.js worker, the addon `hearth_node.node`: the template's control socket and forks
//! ([`template`]), and an instance's end of the shared-memory channel ([`channel`]). The JavaScript half is
//! `bootstrap.js` and the modules in `worker/`. What is not Node's own is the crate `hearth-worker`.
//!
//! # How Node is forked
//! Nobody promises that it can be, so the template is prepared for it:
//! - V8 runs single-threaded and without its thread pool (flags in `server/src/engine/runtimes/node.rs`): a fork has
//!   only the thread that forked. For the same reason functions have no `worker_threads` (`worker/threads.js`).
//! - `memory` takes back V8's wish that its heap be left out of forks.
//! - The fork happens on the main thread, outside of any promise, while the event loop stands still ([`template`]). What the
//!   import has given to the thread pool is waited for, because its answer would come to the template alone; timers that the
//!   import has set go on in every child.
//! - The child gives its event loop descriptors of its own at once ([`eventloop`]). libuv and libc renew their locks, pipes
//!   and thread pool by themselves (`pthread_atfork`). SIGCHLD is the template's only between its forks.
//! - An event loop that runs dry would wait for V8's threads, so it never does: see [`eventloop`].
//! - A child is left only by `_exit`: Node's own way out joins threads that a fork does not have.
//!
//! # What a child renews
//! `Math.random`, in the function's own realm and in every `node:vm` context (`worker/random.js`); `process.pid` and the
//! clocks that count from the start (`worker/renewal.js`). OpenSSL seeds itself anew when it finds another process number,
//! and Node's caches of random UUIDs and integers are emptied in the template, so that each child fills its own.
//!
//! # What makes it fast
//! A child pays for each page that it changes and for all that it does for the first time. So the template
//! - lives through some requests before it imports the function, over a channel that leads back into itself (`rehearsal`):
//!   children find that code compiled, and the JavaScript object of their channel made;
//! - collects its garbage and has V8 sweep all of its heap, which would otherwise happen in every child, page by page;
//! - leaves the child nothing to renew that can be settled before.
//!
//! The first request is waited for straight after READY, without a turn of the event loop. A pre-forked instance does
//! one more warm-up round itself, so that those pages are already copied when the request comes.
//!
//! # Where it cannot be forked
//! The server tries all this out before it relies on it (`bootstrap.js --probe`), and has [`preforked`] for a Node where it
//! fails: processes that boot by themselves and import the function ahead of time.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod blocks;
pub mod channel;
#[allow(unsafe_code)]
pub mod collector;
#[allow(unsafe_code)]
pub mod eventloop;
mod memory;
pub mod preforked;
mod process;
mod rehearsal;
pub mod template;

#[allow(unsafe_code)]
mod sys;
