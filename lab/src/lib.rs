//! The lab: experiments that measure function platforms from outside.
//!
//! It is a client and knows the REST API only, so that the same experiment runs against Hearth and against any other HTTP
//! endpoint. `server/docs/lab.md` is the user's page.
//!
//! - [`cli`]: the command line.
//! - [`load`]: the load generator.
//! - [`platform`]: where functions are: Hearth's REST API, or a given endpoint.
//! - [`run`]: an experiment from its configuration to its files.
//! - [`stellar`]: STeLLAR's configuration and files. [`table`]: the tail table of its paper. [`store`]: the object store of its storage
//!   transfers.
//! - [`duet`]: which of two versions is faster. [`suite`]: the same of two source trees with microbenchmarks.
//! - [`overhead`]: what each layer has of a small invocation's time.
//! - [`replay`]: recorded requests, sent once more to two versions.
//! - [`job`]: experiments that a server keeps and an agent runs.
//! - [`plot`]: plots, as SVG.
//! - [`statistics`]: order statistics, bootstrap intervals, the decision of a duet.
#![forbid(unsafe_code)]

pub mod cli;
pub mod duet;
pub mod job;
pub mod load;
pub mod overhead;
pub mod platform;
pub mod plot;
pub mod replay;
pub mod run;
pub mod statistics;
pub mod stellar;
pub mod store;
pub mod suite;
pub mod table;
