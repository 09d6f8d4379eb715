//! The language runtimes of this node, and the uids their sandboxes run as.

mod native;
mod node;
mod provided;
mod python;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use hearth_host::UIDS;
use serde_json::{Value, json};

use crate::config::Config;
use crate::model::{InvalidField, Runtime};

/// Where a sandbox has the function's code.
const CODE: &str = "/var/task";

/// One language runtime.
#[derive(Debug, Clone)]
pub struct RuntimeFiles {
    /// Host directory with its bootstrap and native module.
    pub dir: PathBuf,
    /// Directory name below `/opt/hearth` inside the sandbox.
    pub name: &'static str,
    /// What the template executes, as seen inside, without what depends on the function: see [`Self::argv`]. Nothing if the
    /// function itself is the program.
    pub command: Vec<String>,
    /// Flag that gives the interpreter's own limit on its heap, in MiB, if it has one: it comes after the program.
    pub heap_flag: Option<&'static str>,
    /// The interpreter's version, or why it cannot be used.
    pub version: Result<String, String>,
    /// Whether instances are forks of the template, or why they are processes that boot by themselves.
    pub fork: Result<(), String>,
    /// Why a template forks nothing, has no image, and always becomes the one instance of its sandbox, if that is so.
    pub becomes: Option<&'static str>,
}

impl RuntimeFiles {
    /// The command line of a template with this handler and this much memory, as seen in the sandbox.
    pub fn argv(&self, handler: &str, memory_mb: u32) -> Vec<String> {
        if self.command.is_empty() {
            return vec![format!("{CODE}/{handler}")];
        }
        let mut argv = self.command.clone();
        if let Some(flag) = self.heap_flag {
            argv.insert(1, format!("{flag}={memory_mb}"));
        }
        argv
    }

    fn describe(&self) -> Value {
        let fork = match (&self.fork, self.becomes) {
            (Ok(()), Some(reason)) => Err(reason.to_owned()),
            (fork, _) => fork.clone(),
        };
        let fork = match (&self.version, &fork) {
            (Ok(_), Ok(())) => json!({ "available": true, "reason": null }),
            (Ok(_), Err(reason)) | (Err(reason), _) => {
                json!({ "available": false, "reason": reason })
            }
        };
        match &self.version {
            Ok(version) => {
                json!({ "available": true, "reason": null, "version": version, "fork": fork })
            }
            Err(reason) => {
                json!({ "available": false, "reason": reason, "version": null, "fork": fork })
            }
        }
    }
}

/// All of them.
#[derive(Debug, Clone)]
pub struct Runtimes {
    /// `python3`.
    pub python: RuntimeFiles,
    /// `node`.
    pub node: RuntimeFiles,
    /// `native`.
    pub native: RuntimeFiles,
    /// `provided`.
    pub provided: RuntimeFiles,
}

impl Runtimes {
    /// Looks for the interpreters and for the runtimes' files below `dir`. Runs each interpreter once, blocking.
    pub fn probe(dir: &Path, config: &Config) -> Self {
        std::thread::scope(|scope| {
            let node = scope.spawn(|| node::probe(dir, config));
            let python = python::probe(dir, &config.python);
            // A probe that panicked is a bug, which shall show.
            let node = node
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let native = native::probe(dir);
            Self {
                python,
                node,
                native,
                provided: provided::probe(dir),
            }
        })
    }

    /// Rewrites every reason with the paths that the administrator knows.
    #[must_use]
    pub fn with_paths(mut self, shown: impl Fn(&str) -> String) -> Self {
        for files in [
            &mut self.python,
            &mut self.node,
            &mut self.native,
            &mut self.provided,
        ] {
            if let Err(reason) = &mut files.version {
                *reason = shown(reason);
            }
            if let Err(reason) = &mut files.fork {
                *reason = shown(reason);
            }
        }
        self
    }

    /// The one of this language.
    pub fn get(&self, runtime: Runtime) -> &RuntimeFiles {
        match runtime {
            Runtime::Python3 => &self.python,
            Runtime::Node => &self.node,
            Runtime::Native => &self.native,
            Runtime::Provided => &self.provided,
        }
    }

    /// Whether functions of this runtime can be deployed.
    ///
    /// # Errors
    /// [`InvalidField`] for the field `runtime`.
    pub fn check(&self, runtime: Runtime) -> Result<(), InvalidField> {
        let Err(problem) = &self.get(runtime).version else {
            return Ok(());
        };
        Err(InvalidField {
            field: "runtime".into(),
            value: serde_json::to_string(&runtime).unwrap_or_default(),
            rule: format!("is not available on this node: {problem}"),
        })
    }

    /// For `GET /api/v1/node`.
    pub fn describe(&self) -> Value {
        json!({
            "python3": self.python.describe(),
            "node": self.node.describe(),
            "native": self.native.describe(),
            "provided": self.provided.describe(),
        })
    }
}

/// What is wrong with the runtime's directory, if its entry is missing.
fn missing(bootstrap: &Path) -> Option<String> {
    (!bootstrap.is_file()).then(|| {
        format!(
            "{} is missing; build it with `make build`",
            bootstrap.display()
        )
    })
}

/// Hands out pairs of host uids (init; template and instances): each sandbox has its own. They are used again after far more
/// sandboxes than can be alive at once.
#[derive(Debug, Default)]
pub struct UidRange {
    next: AtomicU32,
}

impl UidRange {
    /// The first uid of a fresh pair.
    pub fn take(&self) -> u32 {
        let pairs = (UIDS.end - UIDS.start) / 2;
        UIDS.start + 2 * (self.next.fetch_add(1, Ordering::Relaxed) % pairs)
    }
}
