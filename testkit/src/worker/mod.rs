//! The server's side of a template and its instances, for the tests and examples of every runtime's crate: boots the
//! assembled runtime directory with the distribution's interpreter, outside of any sandbox.

mod assembled;
pub mod contract;
mod instance;
pub mod language;
pub mod measure;
mod siblings;
mod sockets;
mod template;

pub use assembled::runtime_dir;
pub use instance::{Answer, Instance, Reply, prepare_instance};
pub use siblings::check_siblings;
pub use template::{Template, boot, boot_error};
