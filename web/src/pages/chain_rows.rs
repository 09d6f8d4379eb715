//! What the kernel counts and refuses of a chain, as its page shows it.

use super::Moment;

/// An instance of a member, by the kernel's count.
#[derive(Debug, Clone)]
pub struct ChainInstanceRow {
    /// Its member, and its number.
    pub name: String,
    /// Requests and calls that it got.
    pub received: String,
    /// Those a second.
    pub rate: String,
    /// Those that it has in hand, or that wait for it.
    pub in_hand: String,
    /// How long it had them, on average.
    pub response: String,
    /// Descriptors that it sent and must not.
    pub refused: String,
}

/// What an instance sent to another and must not.
#[derive(Debug, Clone)]
pub struct ChainRefusalRow {
    /// The sender.
    pub from: String,
    /// The target.
    pub to: String,
    /// Why.
    pub reason: String,
    /// How often.
    pub count: String,
    /// When it was last.
    pub last: Moment,
}
