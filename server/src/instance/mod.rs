//! Skeleton: instance.
