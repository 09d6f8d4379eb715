//! Compiles the system call filter for the machine that this crate is built for.

#[path = "src/seccomp/compile.rs"]
mod compile;
#[path = "src/seccomp/quick.rs"]
#[allow(dead_code, reason = "what only its tests use")]
mod quick;

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

use seccompiler::sock_filter;

fn main() -> Result<(), Box<dyn Error>> {
    for input in ["build.rs", "seccomp", "src/seccomp"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let variable = |name| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    let arch = variable("CARGO_CFG_TARGET_ARCH")?;
    let programs = compile::compile_for(&arch)
        .map_err(|error| format!("the system call filter for {arch}: {error}"))?;
    let mut text = String::new();
    for (name, filter) in [("ENOSYS", programs.enosys), ("ALLOW", programs.allow)] {
        let program = quick::quick(&filter)?;
        writeln!(
            text,
            "pub static {name}: [sock_filter; {}] = [",
            program.len()
        )?;
        for sock_filter { code, jt, jf, k } in program {
            writeln!(
                text,
                "    sock_filter {{ code: {code}, jt: {jt}, jf: {jf}, k: {k} }},"
            )?;
        }
        writeln!(text, "];")?;
    }
    let out = PathBuf::from(variable("OUT_DIR")?);
    Ok(std::fs::write(out.join("programs.rs"), text)?)
}
