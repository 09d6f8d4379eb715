//! The real server over HTTP: real sandboxes, real SQLite, a throwaway data directory for each test.
//!
//! The files mirror the routes; `support` starts servers and speaks with them. These tests need root, because sandboxes do.

mod browser;
mod clients;
mod conformance;
mod contract;
mod support;

mod access;
mod accounts;
mod audit;
mod bodies;
mod bytecode;
mod code_edit;
mod conditional;
mod console;
mod cors;
mod early_answers;
mod exhaustion;
mod fields;
mod frozen;
mod functions;
mod history;
mod hostile;
mod invoke;
mod lambda;
mod lifecycle;
mod live;
mod logging;
mod logins;
mod loopback;
mod matrix;
mod mutations;
mod node;
mod notes;
mod origins;
mod packages;
mod privileges;
mod readme;
mod real_packages;
mod restore;
mod retention;
mod runtime;
mod saved_events;
mod scopes;
mod slow_clients;
mod stages;
mod starters;
mod threads;
mod tiers;
mod trigger;
mod trigger_answer;
mod trigger_stream;
mod uploads;
mod version_pages;
mod versions;
