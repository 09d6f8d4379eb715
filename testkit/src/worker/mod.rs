//! The server's side of a template and its instances, for the tests and examples of every runtime's crate: boots the
//! assembled runtime directory with the distribution's interpreter, outside of any sandbox.

mod instance;
pub mod language;
pub mod measure;
mod siblings;

use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use hearth_abi::{Bell, Blocking, Region};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use instance::{Answer, Instance, Reply};
use language::language;
pub use siblings::check_siblings;

/// Longest wait for anything: a hang fails the test instead of stopping the run.
const TIMEOUT: Duration = Duration::from_secs(30);

const RING_BYTES: u32 = 256 * 1024;

/// The runtime directory, assembled once a process from this build's extension.
pub fn runtime_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let binary = std::env::current_exe().expect("own path");
        let profile_dir = binary
            .ancestors()
            .nth(2)
            .expect("binaries lie below the profile");
        // Where cargo has put it when it built this binary; one level up it may be of an earlier build.
        let built = profile_dir.join("deps");
        let dest = profile_dir.join(format!(
            "{}-test-{}",
            language().package,
            std::process::id()
        ));
        let package = language().crate_dir().join("package.sh");
        let status = Command::new(package)
            .arg(&built)
            .arg(&dest)
            .status()
            .expect("package.sh");
        assert!(status.success(), "package.sh: {status}");
        remove_at_exit(&dest);
        dest
    })
}

/// Statics are not dropped: the directory goes with a child that outlives this process by a moment.
fn remove_at_exit(dir: &Path) {
    let script = "cat >/dev/null; rm -rf -- \"$0\"";
    let child = Command::new("/bin/sh")
        .args(["-c", script])
        .arg(dir)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh");
    // Its stdin closes when this process ends.
    std::mem::forget(child);
}

/// A template and the server's end of its control socket.
pub struct Template {
    process: Child,
    control: Option<OwnedFd>,
    stdout: File,
    stderr: File,
    /// Removed with the template.
    _code: TempDir,
    forks: u64,
}

/// Boots a template over one module, `main`.
pub fn boot(source: &str) -> Template {
    let mut template = Template::start(&[(language().main, source)], "main.handler");
    let message = template.message();
    assert_eq!(message["type"], "booted", "{message}");
    template
}

/// Boots a template that must not come up, and returns its error.
pub fn boot_error(files: &[(&str, &str)], handler: &str) -> Value {
    let mut template = Template::start(files, handler);
    let message = template.message();
    assert_eq!(message["type"], "import_error", "{message}");
    assert_eq!(template.wait().code(), Some(1));
    message["error"].clone()
}

impl Template {
    /// Starts the interpreter over `files` and sends the configuration; does not wait for an answer.
    pub fn start(files: &[(&str, &str)], handler: &str) -> Self {
        Self::start_mode(files, handler, None)
    }

    /// The same, with a word after the bootstrap's name.
    pub fn start_mode(files: &[(&str, &str)], handler: &str, mode: Option<&str>) -> Self {
        let code = tempfile::tempdir().expect("temporary directory");
        let task = code.path().join("task");
        fs::create_dir(&task).expect("directory");
        // As in a sandbox: what the runtime offers for import lies beside the code's directory.
        symlink(
            runtime_dir().join("node_modules"),
            code.path().join("node_modules"),
        )
        .expect("link");
        for (name, source) in files {
            let path = task.join(name);
            fs::create_dir_all(path.parent().expect("a file lies in a directory"))
                .expect("directory");
            fs::write(path, source).expect("source file");
        }
        let (control, theirs) = seqpacket();
        let (stdout, stdout_end) = pipe();
        let (stderr, stderr_end) = pipe();
        let mut command = Command::new(language().program());
        command
            .args(language().flags)
            .arg(runtime_dir().join(language().bootstrap))
            .args(mode)
            .current_dir(&task)
            .env_clear();
        command
            .stdin(Stdio::null())
            .stdout(stdout_end)
            .stderr(stderr_end);
        let process = spawn_with_control(&mut command, theirs).expect("interpreter");
        let config = json!({
            "type": "config", "handler": handler, "function": "hello", "version": 3, "memory_mb": 128,
            "code_dir": task,
        });
        send(&control, config.to_string().as_bytes(), SendFlags::NOSIGNAL).expect("configuration");
        Self {
            process,
            control: Some(control),
            stdout: stdout.into(),
            stderr: stderr.into(),
            _code: code,
            forks: 0,
        }
    }

    /// The control socket.
    pub fn control(&self) -> BorrowedFd<'_> {
        self.control.as_ref().expect("open").as_fd()
    }

    /// The template's next message.
    pub fn message(&mut self) -> Value {
        wait_readable(self.control(), "the template");
        let mut buffer = vec![0; 256 * 1024];
        let received = recv(self.control(), buffer.as_mut_slice(), RecvFlags::empty());
        let read = received.map_or(0, |(read, _)| read);
        assert!(read > 0, "the template ended: {}", self.drain_stderr());
        serde_json::from_slice(&buffer[..read]).expect("JSON")
    }

    /// Forks an instance and waits until it is ready.
    pub fn fork(&mut self) -> Instance {
        let mut instance = self.fork_unready();
        instance.wait_ready().expect("ready");
        instance
    }

    /// Sends GO and FORK.
    pub fn fork_unready(&mut self) -> Instance {
        let (instance, descriptors) = prepare_instance();
        instance.go();
        self.send_fork(&descriptors.each_ref().map(AsFd::as_fd));
        instance
    }

    /// Forks an instance ahead: it waits for GO.
    pub fn prefork(&mut self) -> Instance {
        let (instance, descriptors) = prepare_instance();
        self.send_fork(&descriptors.each_ref().map(AsFd::as_fd));
        instance
    }

    /// Sends a FORK message with these descriptors; returns its number.
    pub fn send_fork(&mut self, descriptors: &[BorrowedFd<'_>]) -> u64 {
        self.forks += 1;
        let mut message = vec![b'F'];
        message.extend_from_slice(&self.forks.to_le_bytes());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(6))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(descriptors)));
        sendmsg(
            self.control(),
            &[IoSlice::new(&message)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )
        .expect("FORK");
        self.forks
    }

    /// Closes the control socket, which ends the template.
    pub fn close(&mut self) -> ExitStatus {
        self.control = None;
        self.wait()
    }

    /// Waits for the template's end.
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.process.try_wait().expect("wait") {
                return status;
            }
            assert!(Instant::now() < until, "the template does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// What the template itself printed so far.
    pub fn drain_stdout(&self) -> String {
        drain(&self.stdout)
    }

    /// What the template itself printed to stderr so far.
    pub fn drain_stderr(&self) -> String {
        drain(&self.stderr)
    }

    /// Process id of the template.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The server's ends of an instance to come, and the descriptors for its FORK message.
pub fn prepare_instance() -> (Instance, [OwnedFd; 6]) {
    let (region, channel) = Region::create(RING_BYTES).expect("region");
    let (ring_worker, worker_bell) = Bell::pair().expect("bell");
    let (host_bell, sleep_host) = Bell::pair().expect("bell");
    let (ready, their_ready) = seqpacket();
    let (stdout, their_stdout) = pipe();
    let (stderr, their_stderr) = pipe();
    // The harness waits on the bell itself, with a limit.
    let bell = sleep_host.as_fd().try_clone_to_owned().expect("dup");
    let blocking = Blocking::new(region.host(), sleep_host, ring_worker);
    let instance = Instance::new(blocking, bell, ready, stdout, stderr);
    (
        instance,
        [
            channel,
            worker_bell.into(),
            host_bell.into(),
            their_ready,
            their_stdout,
            their_stderr,
        ],
    )
}

/// Puts the control socket on descriptor 3 of the new process.
#[allow(unsafe_code)]
fn spawn_with_control(command: &mut Command, control: OwnedFd) -> io::Result<Child> {
    let fd = control.as_raw_fd();
    // SAFETY: between fork and exec the closure calls nothing but dup2 and fcntl, which are async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            // A descriptor that is 3 already stays closed-on-exec under dup2.
            let result = if fd == 3 {
                libc::fcntl(3, libc::F_SETFD, 0)
            } else {
                libc::dup2(fd, 3)
            };
            if result < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            }
        });
    }
    let child = command.spawn();
    drop(control);
    child
}

fn seqpacket() -> (OwnedFd, OwnedFd) {
    socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .expect("socketpair")
}

/// A pipe: the end to read, which does not block, and the end to write.
fn pipe() -> (OwnedFd, OwnedFd) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).expect("pipe");
    rustix::fs::fcntl_setfl(&read, rustix::fs::OFlags::NONBLOCK).expect("non-blocking");
    (read, write)
}

/// Reads what is there.
pub fn drain(pipe: &File) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    // Ends with WouldBlock when the writer is still there.
    let _ = (&*pipe).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits until `fd` can be read.
pub fn wait_readable(fd: BorrowedFd<'_>, whom: &str) {
    let timeout = Timespec {
        tv_sec: TIMEOUT.as_secs() as i64,
        tv_nsec: 0,
    };
    let ready = poll(
        &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
        Some(&timeout),
    )
    .expect("poll");
    assert!(ready > 0, "{whom} does not answer");
}
