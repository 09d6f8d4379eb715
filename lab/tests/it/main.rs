//! The load generator and the command line against servers whose behaviour is known.

mod load;
mod run;
mod store;
mod support;
