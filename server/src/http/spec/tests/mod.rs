//! Every field of the contract: out of range, of the wrong type, unknown, missing; as JSON and as a form.

mod bodies;
mod json;

use super::*;
