//! Where functions are: [`hearth`] deploys them through its REST API, by way of [`client`], and [`chain`] makes them members of chains.

pub mod chain;
pub mod client;
pub mod hearth;
pub(crate) mod package;
