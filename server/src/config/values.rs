//! Settings with a few values.

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// See [`Config::network_fast`](super::Config::network_fast).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Auto {
    /// Where it works.
    Auto,
    /// Never.
    Off,
}

/// See [`Config::node_fork`](super::Config::node_fork).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum NodeFork {
    /// Where it works.
    Auto,
    /// Never.
    Off,
}
