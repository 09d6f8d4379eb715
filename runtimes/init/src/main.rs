//! `hearth-init`: builds a sandbox and is its PID 1.
//!
//! Started by the host process in one of these ways:
//! - without arguments, its control socket as standard input: [`jail`], the only place where privileges are dropped;
//! - `probe`: tries what a sandbox needs and prints a report;
//! - `dump`: has CRIU write the template of a live sandbox to an image, see [`dump`];
//! - `criu FILE PROGRAM ARGUMENTS…`: runs `criu check` and keeps in FILE what it found out about the kernel;
//! - `favordynmods DIR`: makes moving processes between cgroups fast, see [`dynmods`].

#![deny(unsafe_code)]

mod adapt;
mod confine;
mod dump;
mod dynmods;
mod enter;
mod error;
mod fill;
mod gate;
mod imagefile;
mod inject;
mod inspect;
mod jail;
mod mounts;
mod network;
mod pid1;
mod prewarmed;
mod probe;
mod protobuf;
mod remark;
mod restore;
mod rootfs;
mod rpc;
mod run_criu;
mod seccomp;
mod smaps;
mod sockets;
mod sys;
mod uffd;

use std::io::Write as _;
use std::process::ExitCode;

use hearth_init::fields::Fields;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (
        arguments.next().as_deref().and_then(|name| name.to_str()),
        arguments.next(),
    ) {
        (None, None) => jail::run(),
        (Some("probe"), None) => print(&probe::run()),
        (Some("dump"), None) => print(&dump::run()),
        (Some("criu"), Some(dir)) => print(&dump::check(dir.as_ref(), arguments)),
        (Some("favordynmods"), Some(dir)) => print(&dynmods::run(dir.as_ref())),
        _ => {
            let _ = writeln!(
                std::io::stderr(),
                "hearth-init is started by hearth, not by hand"
            );
            ExitCode::from(2)
        }
    }
}

/// Prints a report for the host process, which reads standard output.
fn print(report: &impl Fields) -> ExitCode {
    let mut out = std::io::stdout();
    match out.write_all(&report.to_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
