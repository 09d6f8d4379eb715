//! What the workers of all languages share. A runtime's native half is a thin wrapper around it, in its language's terms.
//!
//! In the order of a worker's life: [`control`] is the template's socket to the server, with the messages of
//! [`message`]; [`forkserver`] waits for FORK and reaps [`children`]; [`compaction`] makes its forks cheaper; [`parts`] is what a FORK brings and what the child
//! does with it first, [`inherited`] what it does not keep of its template's; [`channel`] is then its way to the server.
#![deny(unsafe_code)]

pub mod channel;
pub mod children;
#[allow(unsafe_code)]
pub mod compaction;
pub mod control;
pub mod forkserver;
pub mod inherited;
pub mod mappings;
pub mod message;
pub mod parts;

#[allow(unsafe_code)]
pub mod sys;
