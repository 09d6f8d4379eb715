//! The lab: experiments that measure function platforms from outside.
//!
//! It is a client and knows the REST API only, so that the same experiment runs against Hearth and against any other HTTP
//! endpoint. `server/docs/lab.md` is the user's page.
//!
//! - [`cli`]: the command line.
//! - [`load`]: the load generator.
//! - [`platform`]: where functions are: Hearth's REST API, or a given endpoint.
//! - [`run`]: an experiment from its configuration to its files.
//! - [`stellar`]: STeLLAR's configuration and files.
//! - [`statistics`]: order statistics, bootstrap intervals, the decision of a duet.
#![forbid(unsafe_code)]

pub mod cli;
pub mod load;
pub mod platform;
pub mod run;
pub mod statistics;
pub mod stellar;
