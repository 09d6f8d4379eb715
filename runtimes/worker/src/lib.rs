//! What the workers of all languages share. A runtime's native half is a thin wrapper around it, in its language's terms.
//!
//! In the order of a worker's life: [`control`] is the template's socket to the server, with the messages of
//! [`message`]; [`threads`] counts what an import has left running; [`forkserver`] waits for START and reaps [`children`];
//! [`compaction`] makes its forks cheaper; [`parts`] is what a START brings and what the instance does with it first,
//! [`inherited`] what a fork does not keep of its template's, [`reseed`] what a process renews that becomes an instance
//! without a fork; [`channel`] is then its way to the server, or [`chain`] to the next member of its chain, and [`pages`] what large payloads are handed over in.
#![deny(unsafe_code)]

pub mod chain;
pub mod channel;
pub mod children;
#[allow(unsafe_code)]
pub mod compaction;
pub mod control;
pub mod forkserver;
pub mod inherited;
pub mod mappings;
pub mod message;
#[allow(unsafe_code)]
mod owner;
#[allow(unsafe_code)]
pub mod pages;
pub mod parts;
pub mod reseed;
pub mod threads;

#[allow(unsafe_code)]
pub mod sys;
