//! Compiles a package's Python sources before its first boot, in a separate sandbox, because without byte code every
//! boot compiles everything it imports.
//!
//! This is optional: modules without byte code are compiled on import.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::host_error::HostError;
use crate::package::bytecode::{Kept, Sources, collect};
use crate::sandbox::SandboxSpec;
use crate::scheduler::Resources;

/// Below this many bytes of sources, compiling saves a boot less time than creating a sandbox takes.
const WORTHWHILE_BYTES: u64 = 256 << 10;
/// Time limit, including the wait for a permit. What was compiled until then is kept.
const DEADLINE: Duration = Duration::from_secs(30);
/// Packages compiled at a time: each keeps two processors busy.
const AT_A_TIME: usize = 2;
/// Memory of a compiler. Sources of 2 MiB, the largest that are compiled, take less.
const MEMORY_BYTES: u64 = 512 << 20;

/// The compiler's arguments: isolated, without the host's own packages.
const COMPILER: [&str; 2] = ["-IS", "/opt/hearth/python/bytecode.py"];

/// The compiler of byte code.
pub(super) struct Compiler {
    resources: Arc<Resources>,
    permits: Semaphore,
}

impl Compiler {
    pub(super) fn new(resources: Arc<Resources>) -> Self {
        Self {
            resources,
            permits: Semaphore::new(AT_A_TIME),
        }
    }

    /// Compiles byte code beside the sources below `root`, if it pays off. Nobody else uses `root` yet.
    pub(super) async fn compile(&self, root: &Path) {
        let begun = Instant::now();
        match self.try_compile(root, begun + DEADLINE).await {
            Ok(None) => {}
            Ok(Some(Kept {
                files,
                bytes,
                complete,
            })) => {
                let ms = begun.elapsed().as_millis();
                tracing::debug!(files, bytes, complete, ms, "compiled byte code");
            }
            Err(error) => tracing::warn!(%error, "cannot compile byte code"),
        }
    }

    async fn try_compile(&self, root: &Path, deadline: Instant) -> Result<Option<Kept>, HostError> {
        let Some(tag) = self.tag() else {
            return Ok(None);
        };
        let place = root.to_owned();
        let sources = blocking(move || Sources::find(&place)).await?;
        if sources.bytes < WORTHWHILE_BYTES {
            return Ok(None);
        }
        let permit = tokio::time::timeout_at(deadline.into(), self.permits.acquire()).await;
        let _permit =
            permit.map_err(|_| HostError::new("timed out waiting for other compilations"))?;
        let mut sandbox = self
            .resources
            .host
            .create(self.sandbox_spec(root))
            .await
            .map_err(HostError::new)?;
        let streams = sandbox
            .stdout
            .take()
            .into_iter()
            .chain(sandbox.stderr.take());
        let streams = streams.collect();
        let place = root.to_owned();
        let kept = blocking(move || collect(&place, sources, &tag, streams, deadline)).await;
        sandbox.destroy().await;
        kept.map(Some)
    }

    /// The interpreter's tag in the names of byte code files: `cpython-311`.
    fn tag(&self) -> Option<String> {
        let version = self.resources.runtimes.python.version.as_ref().ok()?;
        let mut parts = version.split('.');
        Some(format!("cpython-{}{}", parts.next()?, parts.next()?))
    }

    fn sandbox_spec(&self, root: &Path) -> SandboxSpec {
        let Resources { runtimes, uids, .. } = &*self.resources;
        let uid = uids.take();
        let interpreter = runtimes.python.command.iter().take(1).cloned();
        SandboxSpec {
            id: format!("compiler-{uid}"),
            hostname: "compiler".into(),
            uid_base: uid,
            code_dir: root.to_owned(),
            runtime_name: runtimes.python.name,
            argv: interpreter.chain(COMPILER.map(str::to_owned)).collect(),
            forks: true,
            env: vec![("LANG".into(), "C.UTF-8".into())],
            memory_bytes: MEMORY_BYTES,
            max_instances: 1,
            network: None,
            trust: None,
            processor: None,
            dumpable: false,
            restore: None,
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, HostError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(HostError::new)?.map_err(HostError::new)
}
