//! The server's side of a template.

use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, send, sendmsg,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::assembled::runtime_dir;
use super::instance::{Instance, prepare_instance};
use super::language::language;
use super::sockets::{TIMEOUT, drain, pipe, seqpacket, wait_readable};
use crate::figures::children;
use crate::processes::is_alive;
use crate::program::wait;
use crate::wait::poll;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(2);

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

    /// Forks an instance ahead: it waits for GO if it has hooks to run, else for a request.
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

    /// Waits until pre-forked instances have come to where only GO lets them go on, and asserts that none says more than
    /// that.
    pub fn assert_waiting(&self, preforked: &[&Instance]) {
        for instance in preforked {
            instance.assert_waiting();
        }
    }

    /// Waits until this many of its children run, however many have ended.
    pub fn wait_for_children(&self, count: usize) {
        let are_so_many = || {
            let children = children(self.pid()).expect("it runs");
            let running = children.into_iter().filter(|pid| is_alive(*pid));
            (running.count() == count).then_some(())
        };
        poll(TIMEOUT, LOOK, are_so_many).expect("so many children");
    }

    /// Closes the control socket, which ends the template.
    pub fn close(&mut self) -> ExitStatus {
        self.control = None;
        self.wait()
    }

    /// Waits for the template's end.
    pub fn wait(&mut self) -> ExitStatus {
        wait(&mut self.process, TIMEOUT).expect("the template ends")
    }

    /// What the template itself printed so far.
    pub fn drain_stdout(&self) -> String {
        drain(&self.stdout)
    }

    /// What the template itself printed to stderr so far.
    pub fn drain_stderr(&self) -> String {
        drain(&self.stderr)
    }

    /// Sends it a signal.
    pub fn kill(&self, signal: Signal) {
        crate::processes::signal(self.pid(), signal).expect("it runs");
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
