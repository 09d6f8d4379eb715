//! Makes a sandbox's cgroups and directory and starts `hearth-init` there.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hearth_init::criu::{CriuProgram, RestoreSpec, WORK};
use hearth_init::{Assignment, JailSpec};
use tokio::sync::watch;

use super::launch::{TemplateEnds, launch};
use super::limits::Limits;
use super::live::{CRIU_DIR, LiveSandbox};
use super::thread::Thread;
use super::{SandboxError, SandboxSpec};

/// Where a sandbox is made, and with what.
pub(super) struct Site<'a> {
    pub name: &'a str,
    pub uid_base: u32,
    pub criu: Option<&'a CriuProgram>,
    /// Whether CRIU is to restore into it.
    pub restores: bool,
    pub limits: Option<&'a Limits>,
}

impl Site<'_> {
    /// Makes the cgroups and the directory and starts `hearth-init` with what `complete` makes of a specification without
    /// runtime and function.
    pub(super) fn launch(
        self,
        thread: &Thread,
        complete: impl FnOnce(JailSpec) -> JailSpec,
    ) -> Result<(LiveSandbox, TemplateEnds), SandboxError> {
        let group = thread
            .top
            .sandbox(self.name, self.limits)
            .map_err(|error| SandboxError::step("cgroup", error))?;
        let dir = thread.dir.join(self.name);
        let (root, criu_dir) = (dir.join("root"), dir.join(CRIU_DIR));
        let mut dirs = vec![dir.clone(), root.clone()];
        if self.restores {
            dirs.extend([criu_dir.clone(), criu_dir.join(WORK)]);
        }
        let launched = dirs
            .iter()
            .try_for_each(|dir| make_directory(dir))
            .map_err(|error| SandboxError::step("directory", error))
            .and_then(|()| {
                let jail = complete(JailSpec {
                    root,
                    cgroup_procs: group.procs_of_init(),
                    uid_base: self.uid_base,
                    runtime_dir: PathBuf::new(),
                    runtime_name: String::new(),
                    criu: self.criu.cloned(),
                    criu_dir: self.restores.then_some(criu_dir),
                    assignment: None,
                });
                launch(&thread.init, &jail).map_err(|error| SandboxError::step("launch", error))
            });
        let launched = match launched {
            Ok(launched) => launched,
            Err(error) => {
                // Nothing runs; what cannot be removed now is cleared at the next start.
                let _ = group.remove();
                let _ = fs::remove_dir_all(&dir);
                return Err(error);
            }
        };
        let live = LiveSandbox {
            group,
            dir,
            uid: self.uid_base + 1,
            control: Some(launched.control),
            builder: Some(launched.builder),
            init: None,
            prewarmed: None,
            waiting: None,
            template_end: None,
            ended: watch::Sender::new(None),
            pool: Arc::default(),
            instance_cgroups: 0,
            gone: false,
            destroying: false,
            destroyed: Vec::new(),
        };
        Ok((live, launched.template))
    }
}

/// Names become paths here.
pub(super) fn check(names: &[&str]) -> Result<(), SandboxError> {
    let plain = |name: &&str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    if names.iter().all(plain) {
        Ok(())
    } else {
        Err(SandboxError::step(
            "specification",
            format!("the names {names:?} must be of a-z, 0-9 and -"),
        ))
    }
}

fn make_directory(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(dir)
}

pub(super) fn assignment(spec: SandboxSpec, limits: &Limits) -> Assignment {
    Assignment {
        hostname: spec.hostname,
        code_dir: spec.code_dir,
        argv: spec.argv,
        env: spec.env,
        tmp_bytes: limits.tmp,
        shm_bytes: limits.shm,
        max_processes: limits.pids,
        // No file can be larger than the memory it is in.
        max_file_bytes: limits.cgroup_memory,
        restore: spec.restore.map(|source| RestoreSpec {
            images: source.images,
        }),
    }
}
