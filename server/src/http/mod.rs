//! Skeleton: http.
