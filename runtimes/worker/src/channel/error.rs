//! Why an instance is lost.

use std::io;

use hearth_abi::{AbiError, HeadError, Kind};

use crate::chain::MemberError;

/// The channel broke: the instance is lost. The server is trusted, so each of these is a mistake of one side.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The rings or the bells.
    #[error(transparent)]
    Abi(#[from] AbiError),
    /// The head of a request is invalid.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// A message came where another one belongs.
    #[error("a {found:?} message where a {expected:?} message belongs")]
    OutOfOrder {
        /// What belongs there.
        expected: Kind,
        /// What came.
        found: Kind,
    },
    /// GO could not be received.
    #[error("cannot learn from the server whether the instance is wanted: {0}")]
    Go(io::Error),
    /// READY could not be sent.
    #[error("cannot tell the server that the instance is ready: {0}")]
    Ready(io::Error),
    /// The chain that the instance is a member of.
    #[error(transparent)]
    Chain(#[from] MemberError),
    /// The channel is the instance's, and this is another process.
    #[error("a process that the handler forked came back from the handler")]
    ForeignProcess,
}
