//! `hearth-lab`: what `hearth lab` does, for a host that has no Hearth.

use std::process::ExitCode;

fn main() -> ExitCode {
    hearth_lab::cli::main(std::env::args_os(), &[])
}
