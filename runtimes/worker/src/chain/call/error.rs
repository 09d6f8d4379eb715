//! Why a call has no result.

use crate::chain::MemberError;

/// A call that has no result. The handler may go on.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nothing to call for.
    #[error("there is no request of a chain to make calls for")]
    NoRequest,
    /// The chain has no such member.
    #[error("the chain has no member {0:?}")]
    NoMember(String),
    /// Its edges do not allow it.
    #[error("the chain's edges do not let this member call {0:?}, or pass a request on to it")]
    NotAllowed(String),
    /// The payload does not fit.
    #[error("the payload has {bytes} bytes, and there is room for {limit}")]
    TooLarge {
        /// Bytes of the payload.
        bytes: usize,
        /// Bytes that it may have.
        limit: usize,
    },
    /// The pool has no run of blocks that is long enough.
    #[error("the payload has {0} bytes, and the chain's pool has no room for so many now")]
    PoolExhausted(usize),
    /// As many calls are under way as there may be.
    #[error("this instance has no block left for another call")]
    NoBlock,
    /// Nobody takes it in time.
    #[error("member \"{0}\" did not take the call in time")]
    Unreached(String),
    /// The other member's process ended.
    #[error("the process of member \"{0}\" ended before it replied")]
    Crashed(String),
    /// The request's time is up.
    #[error("member \"{0}\" did not reply in time")]
    TimedOut(String),
    /// The other member failed: its error, as JSON text.
    #[error("member \"{member}\" failed")]
    Failed {
        /// The member.
        member: String,
        /// Its error.
        error: Vec<u8>,
    },
    /// The other member replied with what it must not send.
    #[error("member \"{0}\" replied with what its chain does not allow")]
    Broken(String),
    /// Nobody waits for the result: who called has ended.
    #[error("the process that called has ended")]
    CallerGone,
    /// There is no such call.
    #[error("there is no call {0} under way")]
    NoCall(u32),
    /// The instance is lost.
    #[error(transparent)]
    Member(#[from] MemberError),
}

impl CallError {
    /// Its type, as errors of functions have one.
    #[must_use]
    pub fn error_type(&self) -> &'static str {
        match self {
            Self::NoRequest => "Chain.NoRequest",
            Self::NoMember(_) => "Chain.NoMember",
            Self::NotAllowed(_) => "Chain.NotAllowed",
            Self::TooLarge { .. } => "Chain.PayloadTooLarge",
            Self::PoolExhausted(_) => "Chain.PoolExhausted",
            Self::NoBlock => "Chain.TooManyCalls",
            Self::Unreached(_) => "Chain.NoInstance",
            Self::Crashed(_) => "Chain.MemberCrashed",
            Self::TimedOut(_) => "Chain.Timeout",
            Self::Failed { .. } => "Chain.MemberFailed",
            Self::Broken(_) => "Chain.RuleBroken",
            Self::CallerGone => "Chain.CallerGone",
            Self::NoCall(_) => "Chain.NoCall",
            Self::Member(_) => "Chain.Broken",
        }
    }

    /// The other member's error, JSON text, if it failed.
    #[must_use]
    pub fn cause(&self) -> Option<&[u8]> {
        match self {
            Self::Failed { error, .. } => Some(error),
            _ => None,
        }
    }
}
