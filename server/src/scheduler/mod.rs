//! Skeleton: scheduler.
