//! Hearth: a function platform for one Linux host.
//!
//! The modules are in the order in which an invocation passes them.

#![deny(unsafe_code)]

pub mod admin;
pub mod announce;
pub mod config;
pub mod host_error;
pub mod limits;
pub mod model;
pub mod people;

pub mod http;
pub mod serve;
pub mod watched;

pub mod engine;
pub mod scheduler;

pub mod criu;
pub mod instance;
pub mod sandbox;

pub mod channel;

pub mod history;
pub mod live;
pub mod package;
pub mod retention;
pub mod store;
pub mod uploads;
