//! Where functions are: [`hearth`] deploys them through its REST API, by way of [`client`], and `copy` has versions copied; `making` knows
//! which may yet come to be. [`chain`]
//! makes them members of chains, [`transfer`] gives them an object store, [`calibrate`] a service time.

pub mod calibrate;
pub mod chain;
pub mod client;
mod copy;
pub mod hearth;
mod making;
pub(crate) mod package;
pub mod transfer;
