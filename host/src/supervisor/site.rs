//! Makes a sandbox's cgroups and directory and starts `hearth-init` there.

use std::collections::{HashMap, HashSet};
use std::fs;

use hearth_init::criu::{CriuProgram, RestoreSpec, WORK};
use hearth_init::{Assignment, JailSpec};

use super::launch::{TemplateEnds, launch};
use super::live::{CRIU_DIR, LiveSandbox};
use super::outbound::WayOut;
use crate::directories::make_directory;
use crate::images;
use crate::limits::Limits;
use crate::protocol::Papers;
use crate::protocol::request::Order;
use crate::{Host, SandboxError};

/// Where a sandbox is made, and with what.
pub(super) struct Site<'a> {
    pub name: String,
    pub uid_base: u32,
    pub criu: Option<&'a CriuProgram>,
    /// Whether CRIU is to restore into it.
    pub restores: bool,
    pub limits: Option<&'a Limits>,
    pub runtime: &'a str,
}

impl Site<'_> {
    /// Makes the cgroups and the directory and starts `hearth-init`.
    pub(super) fn launch(
        self,
        host: &Host,
        assignment: Option<Assignment>,
    ) -> Result<(LiveSandbox, TemplateEnds), SandboxError> {
        let runtime_dir = host.settings.runtimes.join(self.runtime);
        if !runtime_dir.is_dir() {
            return Err(SandboxError::specification("there is no such runtime"));
        }
        let group = host
            .top
            .sandbox(&self.name, self.limits)
            .map_err(|error| SandboxError::step("cgroup", error))?;
        let dir = host.dir.join(&self.name);
        let (root, criu_dir) = (dir.join("root"), dir.join(CRIU_DIR));
        let mut dirs = vec![dir.clone(), root.clone()];
        if self.restores {
            dirs.extend([criu_dir.clone(), criu_dir.join(WORK)]);
        }
        let launched = dirs
            .iter()
            .try_for_each(|dir| make_directory(dir, 0o700))
            .map_err(|error| SandboxError::step("directory", error))
            .and_then(|()| {
                let jail = JailSpec {
                    root,
                    cgroup_procs: group.procs_of_init(),
                    uid_base: self.uid_base,
                    runtime_dir,
                    runtime_name: self.runtime.to_owned(),
                    criu: self.criu.cloned(),
                    criu_dir: self.restores.then_some(criu_dir),
                    assignment,
                };
                launch(&host.settings.init, &jail)
                    .map_err(|error| SandboxError::step("launch", error))
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
            name: self.name,
            group,
            dir,
            uid: self.uid_base + 1,
            max_instances: 0,
            control: Some(launched.control),
            builder: Some(launched.builder),
            init: None,
            prewarmed: None,
            way_out: WayOut::None,
            waiting: None,
            outside: None,
            template_end: None,
            leaves: HashSet::new(),
            removed_leaves: HashSet::new(),
            sweep_is_due: false,
            prepared: Vec::new(),
            frozen: HashMap::new(),
            boosted_from: None,
            instance_cgroups: 0,
            gone: false,
            destroying: false,
            removing: false,
            tell: false,
        };
        Ok((live, launched.template))
    }
}

pub(super) fn assignment(
    host: &Host,
    papers: Papers,
    limits: &Limits,
    order: &Order,
) -> Result<Assignment, SandboxError> {
    let restore = papers
        .image
        .map(|image| images::existing(&host.settings, &image).map(|images| RestoreSpec { images }));
    Ok(Assignment {
        hostname: papers.hostname,
        code_root: host.settings.data_dir.clone(),
        code: papers.code,
        argv: papers.argv,
        env: papers.env,
        tmp_bytes: limits.tmp,
        shm_bytes: limits.shm,
        max_processes: limits.pids,
        // No file can be larger than the memory it is in.
        max_file_bytes: limits.cgroup_memory,
        restore: restore.transpose()?,
        network: order.network,
        trust: papers.trust,
        processor: order.processor,
    })
}
