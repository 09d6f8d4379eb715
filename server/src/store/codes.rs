//! The integers that stand for enumerations in the database. A code never changes its meaning.

use jiff::Timestamp;

use crate::model::{
    ActorKind, ExperimentState, GateState, LogStream, Role, StartKind, Status, Trigger,
};

/// A value of the database that this version of the server cannot read.
#[derive(Debug, thiserror::Error)]
#[error("{value} is not a {what}")]
pub(super) struct UnknownValue {
    what: &'static str,
    value: i64,
}

/// Packs what a row could not be read for into sqlx's error for it.
pub(super) fn decode_error(source: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(source))
}

/// An enumeration that is stored as an integer.
pub(crate) trait StoredCode: Sized + Copy + 'static {
    /// Every value with its code.
    const CODES: &'static [(Self, i64)];
    /// What it is called in an error message.
    const WHAT: &'static str;

    /// The integer that stands for this value.
    fn code(self) -> i64;

    /// The value this integer stands for.
    fn from_code(code: i64) -> Result<Self, sqlx::Error> {
        Self::CODES
            .iter()
            .find_map(|(value, known)| (*known == code).then_some(*value))
            .ok_or_else(|| {
                decode_error(UnknownValue {
                    what: Self::WHAT,
                    value: code,
                })
            })
    }
}

/// One list per enumeration, from which both directions come; `code` is a `match`, so that a new variant without a code
/// does not compile.
macro_rules! codes {
    ($type:ident, $what:literal, $($variant:ident = $code:literal),+ $(,)?) => {
        impl StoredCode for $type {
            const CODES: &'static [(Self, i64)] = &[$(($type::$variant, $code)),+];
            const WHAT: &'static str = $what;

            fn code(self) -> i64 {
                match self {
                    $($type::$variant => $code),+
                }
            }
        }
    };
}

codes!(
    Trigger,
    "trigger",
    Invoke = 1,
    Http = 2,
    Async = 3,
    Schedule = 4,
    Udp = 5,
    Chain = 6,
    Tcp = 7,
    Coap = 8,
    Mqtt = 9
);
codes!(
    ExperimentState,
    "state of an experiment",
    Queued = 1,
    Running = 2,
    Succeeded = 3,
    FellShort = 4,
    Failed = 5,
    Cancelled = 6,
);
codes!(
    GateState,
    "state of a gate",
    Pending = 1,
    Passed = 2,
    Refused = 3,
    NotJudged = 4,
    Overridden = 5,
);
codes!(
    Status,
    "status",
    Queued = 1,
    Running = 2,
    Succeeded = 3,
    Failed = 4,
    TimedOut = 5,
    Crashed = 6,
    OutOfMemory = 7,
    Cancelled = 8,
    Dead = 9,
);
codes!(
    StartKind,
    "start kind",
    Warm = 1,
    Fork = 2,
    Restore = 3,
    Boot = 4
);
codes!(LogStream, "log stream", Stdout = 1, Stderr = 2);
codes!(Role, "role", Viewer = 1, Operator = 2, Admin = 3);
codes!(ActorKind, "kind of actor", User = 1, Token = 2, Nobody = 3);

/// Bit of a payload's flags: there is more of it than is kept.
pub(super) const PAYLOAD_TRUNCATED: i64 = 1;
/// Bit of a payload's flags: it is not text.
pub(super) const PAYLOAD_BINARY: i64 = 2;

/// SQLite's integers are signed: a count or duration beyond them (292,000 years in µs) is stored as the largest.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The other direction; columns of counts and durations hold nothing negative.
pub(super) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// A column that holds a `u32`.
pub(super) fn narrow(what: &'static str, value: i64) -> Result<u32, sqlx::Error> {
    u32::try_from(value).map_err(|_| decode_error(UnknownValue { what, value }))
}

/// A `_us` column of a time.
pub(super) fn timestamp(microseconds: i64) -> Result<Timestamp, sqlx::Error> {
    Timestamp::from_microsecond(microseconds).map_err(decode_error)
}
