//! Requests to the host process.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hearth_host::protocol::request::Order;
use hearth_host::protocol::{ChainNumber, Papers, Protocol, Request};
use hearth_host::{Probed, SandboxError, process};
use parking_lot::Mutex;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::thread::Pid;

use super::client::{Answer, Client, introduction, relative};
use super::gateway::{self, Gateway};
use super::{
    Capability, KernelPolicy, PrewarmedBoard, PrewarmedSpec, Reports, RestoreSource, Sandbox,
    SandboxSpec,
};

fn open(
    settings: hearth_host::Settings,
    hearth: &Path,
) -> Result<(hearth_host::Host, process::Gateway, OwnedFd), SandboxError> {
    let probed = Probed::kernel(&settings.init)?;
    let (gateway, to_gateway) = process::Gateway::start(hearth, &settings.gateway)
        .map_err(|error| SandboxError::step("gateway", error))?;
    let host = hearth_host::Host::open(settings, probed)?;
    Ok((host, gateway, to_gateway))
}

/// The narrow interface to everything that needs root. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<HostInner>);

struct HostInner {
    client: Arc<Client>,
    capabilities: Vec<Capability>,
    init: String,
    data_dir: PathBuf,
    reports: Mutex<Option<Reports>>,
}

impl Host {
    /// The host process and the gateway at the other ends of these sockets, which say what they are at once. `data_dir` is the
    /// data directory, by the server's path.
    ///
    /// # Errors
    /// When they do not.
    pub fn connect(socket: OwnedFd, gateway: OwnedFd, data_dir: &Path) -> io::Result<Self> {
        let mut introduction = introduction(&socket)?;
        let gateway::Introduction { outbound, reports } = gateway::introduction(&gateway)?;
        introduction.capabilities.push(outbound.into());
        Ok(Self(Arc::new(HostInner {
            client: Client::start(socket, &introduction, Gateway::start(gateway)?)?,
            capabilities: introduction.capabilities,
            init: introduction.init,
            data_dir: data_dir.to_owned(),
            reports: Mutex::new(reports.map(Reports::new).transpose()?),
        })))
    }

    /// Does what the host process does on a thread of this one, which has to be root's, with a gateway by this program
    /// `hearth`: for tests and benchmarks that have no server. May block for some hundred milliseconds.
    ///
    /// # Errors
    /// [`SandboxError::Missing`] when the host cannot give something that every sandbox needs.
    pub fn start(settings: hearth_host::Settings, hearth: PathBuf) -> Result<Self, SandboxError> {
        let failed = |error: io::Error| SandboxError::step("thread", error);
        let data_dir = settings.data_dir.clone();
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|errno| failed(errno.into()))?;
        let (opened, outcome) = std::sync::mpsc::channel();
        std::thread::Builder::new()
            .name("hearth-host".to_owned())
            .spawn(move || match open(settings, &hearth) {
                Ok((host, gateway, to_gateway)) => {
                    // Its receiver waits for it.
                    let _ = opened.send(Ok(to_gateway));
                    if let Err(error) = host.serve(theirs, Some(gateway)) {
                        tracing::error!(%error, "the host's thread has ended");
                    }
                }
                Err(error) => drop(opened.send(Err(error))),
            })
            .map_err(failed)?;
        let gateway = outcome
            .recv()
            .unwrap_or_else(|_| Err(SandboxError::shut_down()))?;
        Self::connect(ours, gateway, &data_dir).map_err(failed)
    }

    /// Pre-warms a sandbox for restores of this runtime, without waiting for it. Does nothing without CRIU.
    pub fn keep_prewarmed(&self, spec: &PrewarmedSpec) {
        let runtime = spec.runtime_name.to_owned();
        self.0
            .client
            .send(Request::KeepPrewarmed(spec.uid_base, runtime));
    }

    /// Ends the pre-warmed sandbox of this runtime, without waiting for it.
    pub fn end_prewarmed(&self, runtime_name: &str) {
        let runtime = runtime_name.to_owned();
        self.0.client.send(Request::EndPrewarmed(runtime));
    }

    /// Gives a thread of this process the raised priority, or the ordinary one again, without waiting for it. Does nothing
    /// where the host cannot.
    pub fn prioritize(&self, thread: Pid, raised: bool) {
        let thread = thread.as_raw_nonzero().get().cast_unsigned();
        self.0.client.send(Request::Prioritize(thread, raised));
    }

    /// Opens a port for functions: a socket that listens, or one for datagrams.
    ///
    /// # Errors
    /// [`SandboxError::owner_of_port`] when another process has it.
    pub async fn open_port(&self, protocol: Protocol, port: u16) -> Result<OwnedFd, SandboxError> {
        let request = |sequence| Request::OpenPort(sequence, protocol, port);
        match self.0.client.ask(request, Vec::new()).await? {
            Answer::Socket(socket) => Ok(socket),
            _ => Err(SandboxError::Gone),
        }
    }

    /// Makes a connection for an instance of a chain: the instance's end, and the gateway's.
    ///
    /// # Errors
    /// [`SandboxError`].
    pub async fn connect_chain(&self, chain: ChainNumber) -> Result<[OwnedFd; 2], SandboxError> {
        let request = |sequence| Request::Connect(sequence, chain);
        match self.0.client.ask(request, Vec::new()).await? {
            Answer::Connection(ends) => Ok(ends),
            _ => Err(SandboxError::Gone),
        }
    }

    /// Has no more of them made for a chain, without waiting for it.
    pub fn end_chain(&self, chain: ChainNumber) {
        self.0.client.send(Request::EndChain(chain));
    }

    /// The pre-warmed sandboxes.
    pub fn prewarmed(&self) -> &PrewarmedBoard {
        &self.0.client.prewarmed
    }

    /// Which `hearth-init` builds the sandboxes: another one has another text.
    pub fn init(&self) -> &str {
        &self.0.init
    }

    /// What was probed, and what holds now.
    pub fn capabilities(&self) -> Vec<Capability> {
        let mut all = self.0.capabilities.clone();
        all.push(self.0.client.gateway.fast().into());
        all
    }

    /// One of them by name.
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.0
            .capabilities
            .iter()
            .find(|capability| capability.name == name)
    }

    /// Why no sandbox can have a network on this host; none where it can.
    pub fn outbound_missing(&self) -> Option<&str> {
        let capability = self.capability("network_outbound");
        capability.and_then(|capability| capability.reason.as_deref())
    }

    /// What the kernel tells of packets and connections of sandboxes; once, and only where sandboxes can have a network.
    pub fn take_reports(&self) -> Option<Reports> {
        self.0.reports.lock().take()
    }

    /// Makes a sandbox and starts the template in it. Dropping the future undoes it.
    ///
    /// # Errors
    /// [`SandboxError::Step`] with the step that failed; nothing of it is left then.
    pub async fn create(&self, spec: SandboxSpec) -> Result<Sandbox, SandboxError> {
        if spec.network.is_some()
            && let Some(reason) = self.outbound_missing()
        {
            return Err(SandboxError::Missing {
                what: "outbound network".to_owned(),
                reason: reason.to_owned(),
                remedy: "use \"network\": \"none\"".to_owned(),
            });
        }
        let order = Order {
            uid_base: spec.uid_base,
            memory_bytes: spec.memory_bytes,
            max_instances: spec.max_instances,
            forks: spec.forks,
            dumpable: spec.dumpable,
            restore_limit: spec.restore.as_ref().map(|source| source.limit),
            network: spec.network.is_some(),
            processor: spec.processor,
        };
        let function: Arc<str> = spec.hostname.as_str().into();
        let papers = Papers {
            id: spec.id,
            hostname: spec.hostname,
            code: relative(&spec.code_dir, &self.0.data_dir)?,
            runtime: spec.runtime_name.to_owned(),
            argv: spec.argv,
            env: spec.env,
            image: spec.restore.map(|RestoreSource { image, .. }| image),
            trust: spec.trust,
        };
        let policy = spec.network.as_ref().map(KernelPolicy::seal);
        let fds = std::iter::once(papers.seal())
            .chain(policy)
            .collect::<io::Result<_>>();
        let fds = fds.map_err(|error| SandboxError::step("papers", error))?;
        let request = |sequence| Request::Create(sequence, order);
        match self.0.client.ask(request, fds).await? {
            Answer::Sandbox(sandbox) => {
                self.watch_throttling(&sandbox, function);
                Ok(sandbox)
            }
            _ => Err(SandboxError::Gone),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.0.client
    }

    /// Removes an image, and waits for that.
    pub async fn remove_image(&self, name: &str) {
        let request = |sequence| Request::RemoveImage(sequence, name.to_owned());
        if let Err(error) = self.0.client.ask(request, Vec::new()).await {
            tracing::warn!(image = name, %error, "cannot remove an image");
        }
    }

    /// Has an image removed, without waiting for it.
    pub fn order_removal(&self, name: &str) {
        // Nothing waits for the answer: what cannot be removed now is removed at the next start.
        self.0.client.send(Request::RemoveImage(0, name.to_owned()));
    }

    /// Destroys every sandbox and removes all cgroups and directories. Waits until that is done.
    pub async fn shutdown(&self) {
        // An error means that it was done before.
        let _ = self.0.client.ask(Request::Shutdown, Vec::new()).await;
    }
}
