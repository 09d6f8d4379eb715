//! Replay: requests as they once came, sent once more to two versions of a function, in shadow.
//!
//! Each arrival runs on both versions next to each other, in random order, and on the first once more as a control: a duet whose trials
//! come at recorded times. All run on copies that serve nobody else, and reach nothing but what the replay's policy names. The second may be
//! the first with other settings.
//!
//! - [`traffic`]: arrivals. [`recorded`]: from the history; [`azure`]: from Azure's traces.
//! - [`variant`]: a version with other settings. [`shadow`]: its copies. [`network`]: what they may reach. [`parts`]: what has new ones.
//! - [`run`]: all of it, against a Hearth server. [`sending`]: at their times.

pub mod azure;
pub mod network;
pub mod parts;
pub mod recorded;
pub mod run;
mod sending;
mod shadow;
pub mod traffic;
pub mod variant;

pub use network::Network;
pub use run::{ReplayError, Replayed, Settings, run};
pub use traffic::{Arrival, Traffic};
pub use variant::{Changes, Variant};
