//! Skeleton: channel.
