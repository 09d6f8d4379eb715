//! Real sandboxes, made as root on this machine, with small Python programs as templates.
//!
//! Needs `hearth-init`: `cargo build -p hearth-init` first. Every test has its own directory, users and cgroups, so they
//! may run at the same time.

mod confinement;
mod figures;
mod harness;
mod instance_cgroups;
mod killed;
mod lifecycle;
mod limits;
mod network;
