//! The suites, one result file each.

pub mod ablation;
pub mod bursts;
pub mod busy;
pub mod chains;
pub mod compare;
pub mod console;
pub mod ingress;
pub mod lab;
mod median;
pub mod memory;
pub mod network;
pub mod pair;
pub mod ring;
pub mod slow;
pub mod starts;
pub mod transports;
pub mod uploads;
pub mod warm;

use crate::results::Document;
use crate::scale::Scale;

/// Measures and adds to the document.
pub type Suite = fn(Scale, &mut Document) -> anyhow::Result<()>;

/// All of them by name, in the order in which they run and stand in the report.
pub const ALL: [(&str, Suite); 13] = [
    ("ring", ring::run),
    ("starts", starts::run),
    ("warm", warm::run),
    ("uploads", uploads::run),
    ("bursts", bursts::run),
    ("busy", busy::run),
    ("slow", slow::run),
    ("network", network::run),
    ("ingress", ingress::run),
    ("chains", chains::run),
    ("memory", memory::run),
    ("console", console::run),
    ("lab", lab::run),
];

/// Parts of suites, which run by themselves only when they are asked for by name: to look at one thing again and again.
pub const PARTS: [(&str, Suite); 16] = [
    ("ablation", ablation::run),
    ("chains-hops", chains::of_hops),
    ("chains-lengths", chains::with_goals),
    ("compare", compare::run),
    ("ingress-datagrams", ingress::datagrams::run),
    ("ingress-flood", ingress::flood::run),
    ("ingress-hops", ingress::hops::run),
    ("ingress-packets", ingress::packets),
    ("starts-fork", starts::forks),
    ("starts-restore", starts::restores),
    ("starts-threads", starts::with_threads),
    ("starts-deployed", starts::deployed),
    ("starts-large", starts::large),
    ("starts-alive", starts::alive),
    ("starts-restarted", starts::restarted),
    ("starts-pandas", starts::pandas),
];
