//! The real server over HTTP: real sandboxes, real SQLite, a throwaway data directory for each test.
//!
//! The files mirror the routes; `support` starts servers and speaks with them. These tests need root, because sandboxes do.

mod support;

mod hostile;
mod invoke;
mod lifecycle;
