//! A sandbox's resolver: reads queries from its sockets, forwards what the policy allows to the host's DNS servers, has
//! the addresses allowed in the kernel, then answers.
//!
//! - [`question`], [`answer`]: parsers, which trust neither side. [`upstream`], [`servers`]: the DNS servers.
//! - [`ask`]: one query from start to end. [`serve`]: the sockets. [`cache`], [`rate`]: fewer queries.

mod answer;
mod ask;
mod cache;
mod question;
mod rate;
mod serve;
mod servers;
mod upstream;

pub use answer::{Answer, Asked, read as read_answer};
pub use ask::{Asker, Names};
pub use question::{Kind, Question, Received, read as read_question};
pub(super) use serve::serve;
pub use servers::of_host;
pub use upstream::Upstream;
