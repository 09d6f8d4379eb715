//! Hearth: a function platform for one Linux host.
//!
//! The modules are listed in the order in which an invocation passes through them, and each uses only those below it.
//! `tests/architecture.rs` enforces that.

#![deny(unsafe_code)]

pub mod announce;

pub mod triggers;

pub mod http;
pub mod serve;

pub mod live;

pub mod tail;

pub mod lab;

pub mod catalog;

pub mod chains;

pub mod engine;
pub mod scheduler;

pub mod instance;

pub mod network;
pub mod ports;

pub mod ingress;

pub mod criu;
pub mod sandbox;

pub mod channel;

pub mod runtimes;

pub mod package;

pub mod retention;

pub mod history;

pub mod secrets;

pub mod admin;
pub mod store;

pub mod config;

pub mod accounts;
pub mod model;

pub mod uploads;

pub mod host_error;
pub mod limits;
pub mod system;
pub mod turns;
pub mod watched;
