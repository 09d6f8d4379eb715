//! Compiles the programs for the kernel with clang.

use std::path::{Path, PathBuf};
use std::process::Command;

/// `probe` is for tests; the crate embeds the others.
const PROGRAMS: [&str; 8] = [
    "audit", "flood", "gateway", "ingress", "nothing", "probe", "redirect", "sproxy",
];

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let compiler = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    for program in PROGRAMS {
        let source = Path::new("bpf").join(program).with_extension("bpf.c");
        // Version 3 of the instruction set has compare-and-swap; kernels know it since 5.12.
        let status = Command::new(&compiler)
            .args([
                "-O2",
                "-g",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-sign-compare",
            ])
            .args(["-target", "bpf", "-mcpu=v3"])
            // Where a function's arguments are is a matter of the architecture.
            .arg(format!("-D__TARGET_ARCH_{}", kernel_name(&architecture)))
            // Debian keeps <asm/types.h> in a directory of the architecture.
            .arg(format!("-I/usr/include/{architecture}-linux-gnu"))
            // Paths in the debugging information would make the build depend on where it runs.
            .arg(format!(
                "-fdebug-prefix-map={}=.",
                env!("CARGO_MANIFEST_DIR")
            ))
            .arg("-c")
            .arg(&source)
            .arg("-o")
            .arg(out.join(program).with_extension("o"))
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => panic!(
                "{compiler} could not compile {}: {status}",
                source.display()
            ),
            Err(error) => {
                panic!("cannot run {compiler} ({error}): scripts/setup.sh build installs it")
            }
        }
    }
}

/// What the kernel calls an architecture.
fn kernel_name(architecture: &str) -> &str {
    match architecture {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => other,
    }
}
