//! A sandbox's resolver: takes questions from its sockets, asks the host's DNS servers for what the policy allows, has the
//! addresses allowed in the kernel, and answers then.
//!
//! - [`question`], [`answer`]: what is parsed, without trust in either side. [`upstream`], [`servers`]: who is asked.
//! - [`ask`]: one question from beginning to end. [`serve`]: the sockets. [`cache`], [`rate`]: how little is asked.

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
