//! What is invoked.

use serde_json::{Value, json};

use crate::platform::package::BOOTSTRAP;

/// Points of the Monte Carlo estimate, as in the study.
const POINTS: u64 = 1_000;

/// How long `sleep` sleeps, in ms. The study has 1 s, which leaves nothing to see of the other layers.
const SLEEP_MS: u64 = 10;

/// Width and height of the bitmap that is blurred.
const PIXELS: u64 = 64;

/// A workload.
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name, and that of its handler.
    pub name: &'static str,
    /// What it does.
    pub means: &'static str,
}

/// All workloads.
pub const WORKLOADS: [Workload; 4] = [
    Workload {
        name: "empty",
        means: "nothing",
    },
    Workload {
        name: "math",
        means: "π by Monte Carlo, 1,000 points",
    },
    Workload {
        name: "sleep",
        means: "sleeps for 10 ms",
    },
    Workload {
        name: "image",
        means: "draws and box-blurs a bitmap of 64 × 64 pixels",
    },
];

/// A runtime, and its implementation of the workloads.
#[derive(Debug, PartialEq, Eq)]
pub struct Runtime {
    /// The server's name of it.
    pub name: &'static str,
    /// The file in the archive.
    pub(super) file: &'static str,
    /// Its content: a handler for each workload.
    pub(super) source: &'static str,
}

/// All runtimes. A new one needs a line here and a file with a handler for each workload.
pub const RUNTIMES: [Runtime; 3] = [
    Runtime {
        name: "python3",
        file: "main.py",
        source: include_str!("functions/workloads.py"),
    },
    Runtime {
        name: "node",
        file: "main.mjs",
        source: include_str!("functions/workloads.mjs"),
    },
    Runtime {
        name: "provided",
        file: "bootstrap",
        source: BOOTSTRAP,
    },
];

/// The event of every invocation.
pub(super) fn event() -> Value {
    json!({ "points": POINTS, "sleep_ms": SLEEP_MS, "pixels": PIXELS })
}

/// The workloads of these names in the order of [`WORKLOADS`]; all without names.
///
/// # Errors
/// The first name that is none, with those that are.
pub fn workloads(names: &[String]) -> Result<Vec<&'static Workload>, String> {
    chosen(&WORKLOADS, |one| one.name, names)
}

/// The runtimes of these names in the order of [`RUNTIMES`]; all without names.
///
/// # Errors
/// The first name that is none, with those that are.
pub fn runtimes(names: &[String]) -> Result<Vec<&'static Runtime>, String> {
    chosen(&RUNTIMES, |one| one.name, names)
}

fn chosen<T>(
    all: &'static [T],
    name: fn(&T) -> &'static str,
    names: &[String],
) -> Result<Vec<&'static T>, String> {
    let known: Vec<&str> = all.iter().map(name).collect();
    if let Some(unknown) = names.iter().find(|one| !known.contains(&one.as_str())) {
        return Err(format!("{unknown:?} is none of {}", known.join(", ")));
    }
    let is_chosen = |one: &&T| names.is_empty() || names.iter().any(|wanted| wanted == name(one));
    Ok(all.iter().filter(is_chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_choose_and_unknown_ones_are_refused() {
        let names = |names: &[&str]| names.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        assert_eq!(workloads(&[]).expect("all").len(), WORKLOADS.len());
        let chosen = workloads(&names(&["image", "empty"])).expect("known");
        let chosen: Vec<&str> = chosen.iter().map(|one| one.name).collect();
        assert_eq!(chosen, ["empty", "image"]);
        let error = runtimes(&names(&["node", "cobol"])).expect_err("unknown");
        assert_eq!(error, "\"cobol\" is none of python3, node, provided");
    }

    #[test]
    fn every_runtime_has_every_workload() {
        let bootstrap = include_str!("../../../runtimes/provided/src/bin/hearth-workloads.rs");
        for runtime in &RUNTIMES {
            let source = match runtime.name {
                "provided" => bootstrap,
                _ => runtime.source,
            };
            for workload in &WORKLOADS {
                let defined = ["def {}(", "const {} =", "\"{}\" =>"]
                    .iter()
                    .any(|form| source.contains(&form.replace("{}", workload.name)));
                assert!(defined, "{} in {}", workload.name, runtime.name);
            }
        }
    }
}
