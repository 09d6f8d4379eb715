//! The API against its own description: what every route answers is what `/openapi.json` says, and what a schema takes
//! the server takes, and nothing else.

mod answers;
mod client;
mod document;
mod experiments;
mod gates;
mod requests;
