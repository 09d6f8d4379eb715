//! Has `hearth-init` dump a template.

use std::io::{Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hearth_init::criu::DumpSpec;
use hearth_init::wire;
use rustix::fs::MemfdFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde::Deserialize;

use super::{Criu, CriuError};
use crate::host_error::HostError;
use crate::sandbox::Dumpable;

/// A dump that takes longer is given up: some ten milliseconds are usual, writing a gigabyte takes seconds.
const DEADLINE: Duration = Duration::from_secs(30);

/// The report of `hearth-init dump`.
#[derive(Deserialize)]
struct Report {
    error: Option<String>,
}

/// Dumps the template of a sandbox into `images`, which leaves it stopped. CRIU writes its log to `work`.
pub(super) async fn dump(
    criu: &Criu,
    init: &Path,
    sandbox: &Dumpable,
    images: &Path,
    work: &Path,
) -> Result<(), CriuError> {
    let failed = |error: std::io::Error| HostError::new(format_args!("for a dump: {error}"));
    let spec = DumpSpec {
        criu: criu.program.clone(),
        images: images.to_owned(),
        work: work.to_owned(),
        outside: sandbox.outside,
        control_peer: sandbox.control_peer,
    };
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|errno| failed(errno.into()))?;
    let order = || -> std::io::Result<()> {
        let mut text = std::fs::File::from(rustix::fs::memfd_create(
            "hearth-dump",
            MemfdFlags::CLOEXEC,
        )?);
        text.write_all(&serde_json::to_vec(&spec)?)?;
        text.rewind()?;
        wire::send(&ours, b"D", &[text.as_fd(), sandbox.init.as_fd()])
    };
    order().map_err(failed)?;
    let run = tokio::process::Command::new(init)
        .arg("dump")
        .env_clear()
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(DEADLINE, run)
        .await
        .map_err(|_| CriuError::Dump(format!("timed out after {} s", DEADLINE.as_secs())))?
        .map_err(failed)?;
    let report: Report = serde_json::from_slice(&output.stdout).map_err(|_| {
        CriuError::Dump(format!(
            "{} sent no report: {}",
            init.display(),
            output.status
        ))
    })?;
    report
        .error
        .map_or(Ok(()), |error| Err(CriuError::Dump(error)))
}
