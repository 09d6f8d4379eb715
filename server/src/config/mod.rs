//! Skeleton: config.
