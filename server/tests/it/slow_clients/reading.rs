//! Answers that nobody reads.
