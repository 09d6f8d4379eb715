//! Where functions are: [`hearth`] deploys them through its REST API, by way of [`client`].

pub mod client;
pub mod hearth;
pub(crate) mod package;
