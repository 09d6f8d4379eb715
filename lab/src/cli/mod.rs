//! The command line: `hearth lab …`, and the same as a program of its own, `hearth-lab`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program"
)]

mod agent;
mod duet;
mod fit;
mod gate;
mod job;
mod keep;
mod load;
mod overhead;
mod replay;
mod run;
mod stellar;
mod store;
mod suite;
mod what_if;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::load::process::{self, Generator};
use crate::store::Program;

/// Exit status of a command that ran and fell short.
const FELL_SHORT: u8 = 1;

/// Exit status of a command that could not run.
const COULD_NOT_RUN: u8 = 2;

#[derive(Parser)]
#[command(
    name = "hearth lab",
    bin_name = "hearth lab",
    about = "Measure functions and other HTTP endpoints"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Send requests to an address and print their latencies
    Load(Box<load::Load>),
    /// Run an experiment of a file: in STeLLAR's format, or as the server takes it
    Run(Box<run::Run>),
    /// Make the tail table of STeLLAR's paper for this server
    Stellar(Box<stellar::Stellar>),
    /// Measure what each layer has of a small invocation's time: function, worker, server, client
    Overhead(Box<overhead::Overhead>),
    /// Compare two functions, or two versions of one
    Duet(Box<duet::Duet>),
    /// Compare two source trees by a suite of microbenchmarks
    Suite(Box<suite::Suite>),
    /// Tell whether a new version of a function is slower than the active one
    Gate(Box<gate::Gate>),
    /// Replay recorded requests, or a production trace, to two versions
    Replay(Box<replay::Replay>),
    /// Run a function's recorded calls through other settings of the scheduler
    WhatIf(Box<what_if::WhatIf>),
    /// Measure what a chain's members take of the processors for each request
    Fit(Box<fit::Fit>),
    /// Run experiments that a server has, and report to it
    Agent(Box<agent::Run>),
    /// Run the object store of storage transfers, on another host than the server's
    Store(Box<store::Store>),
    /// The load generator's own process
    #[command(hide = true)]
    Generator,
}

/// Runs a command. The first argument is the program's name. `own` are those with which the program gets here when it is started again,
/// as the load generator's process: none for `hearth-lab`, `lab` for `hearth`.
pub fn main(arguments: impl IntoIterator<Item = OsString>, own: &[&str]) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        // Help and version go to stdout and are no failure.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { COULD_NOT_RUN } else { 0 });
        }
    };
    let done = match arguments.command {
        Command::Load(load) => load.run().map(|()| 0),
        Command::Run(run) => run.run(generator(own), &store(own)),
        Command::Stellar(stellar) => stellar.run(generator(own), &store(own)).map(|()| 0),
        Command::Overhead(overhead) => overhead.run(&generator(own)).map(|()| 0),
        Command::Duet(duet) => duet.run(),
        Command::Suite(suite) => suite.run(),
        Command::Gate(gate) => gate.run(),
        Command::Replay(replay) => replay.run(),
        Command::WhatIf(what_if) => what_if.run().map(|()| 0),
        Command::Fit(fit) => fit.run(),
        Command::Agent(agent) => agent.run(generator(own), &store(own)).map(|()| 0),
        Command::Store(store) => store.run().map(|()| 0),
        Command::Generator => process::serve().map(|()| 0).map_err(Into::into),
    };
    done.map_or_else(
        |error| {
            eprintln!("hearth lab: {error:#}");
            ExitCode::from(COULD_NOT_RUN)
        },
        ExitCode::from,
    )
}

/// The same program as the load generator's process.
fn generator(own: &[&str]) -> Generator {
    let arguments = own.iter().chain(&["generator"]);
    Generator {
        program: "/proc/self/exe".into(),
        arguments: arguments.map(OsString::from).collect(),
    }
}

/// The same program as the process of an object store. By its number, because another program starts it.
fn store(own: &[&str]) -> Program {
    let arguments = own.iter().chain(&["store", "--attached"]);
    Program {
        program: format!("/proc/{}/exe", std::process::id()).into(),
        arguments: arguments.map(OsString::from).collect(),
    }
}
