//! The jail, read top to bottom: from the host's root to an unprivileged template. `server/docs/sandbox.md` has the
//! same steps as a list.
//!
//! One file: whoever reviews the sandbox reads every step in the order in which privileges go, without leaving it.
//!
//! Three processes take part, each made by the one before it:
//! - *stage 0* is what the server started: root on the host, in the host's namespaces. It builds the root and goes.
//! - *PID 1* is root inside the sandbox only, in namespaces of its own, a child of the server.
//! - *the template* is an ordinary user inside the sandbox, and becomes the function's interpreter.

use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use hearth_init::fields::Fields as _;
use hearth_init::{
    INNER_UID, JailSpec, MAX_REPORT, Report, START, START_FDS, TEMPLATE_CONTROL_FD, TEMPLATE_PID,
    wire,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{DumpableBehavior, Pid, Signal};
use rustix::thread::CapabilitySet;

use crate::enter::{Sizes, enter_root};
use crate::error::JailError;
use crate::prewarmed::Prewarmed;
use crate::restore::{self, Restorer};
use crate::sys::{self, Fork};
use crate::{confine, network, pid1, rootfs};

/// Badness of PID 1 and template for the kernel's out-of-memory killer, in thousandths of all memory; instances get
/// more when they are attached to their cgroups. Protects the server, whose own is 0.
const OOM_SCORE: &str = "100";

/// What the server sends to stage 0.
struct Order {
    spec: JailSpec,
    stdout: OwnedFd,
    stderr: OwnedFd,
    /// Descriptor 3, kept taken so that nothing else gets the number the template's control socket will have.
    slot: OwnedFd,
}

/// Builds the sandbox described on standard input's socket, and then is its PID 1.
pub fn run() -> ExitCode {
    let Ok((control, slot)) = take_control() else {
        return ExitCode::from(2);
    };
    match jail(&control, slot) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If the server is gone, there is nothing left to report to.
            let _ = pid1::send(&control, &error.report(), &[]);
            ExitCode::FAILURE
        }
    }
}

fn jail(control: &OwnedFd, slot: OwnedFd) -> Result<(), JailError> {
    // ---- Stage 0: root on the host ----
    let mut order = receive_order(control, slot)?;
    let spec = &order.spec;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));

    // 1. Into the sandbox's cgroup first: whatever follows is limited and accounted for.
    for path in &spec.cgroup_procs {
        fs::write(path, "0").map_err(|source| JailError::Cgroup {
            path: path.display().to_string(),
            source,
        })?;
    }
    //    When memory runs out, the kernel shall take a sandbox and not the server.
    fs::write("/proc/self/oom_score_adj", OOM_SCORE)
        .map_err(JailError::privileges("raising oom_score_adj"))?;
    // 2. Nothing of the server's login: keys, supplementary groups. The pipes become the template's own, so that it can
    //    open /dev/stdout.
    sys::forget_session_keyring();
    rustix::thread::set_thread_groups(&[]).map_err(JailError::privileges("dropping groups"))?;
    for pipe in [&order.stdout, &order.stderr] {
        let owner = rustix::fs::Uid::from_raw(spec.uid_base + 1);
        let group = rustix::fs::Gid::from_raw(spec.uid_base + 1);
        rustix::fs::fchown(pipe, Some(owner), Some(group))
            .map_err(JailError::privileges("giving the pipes to the template"))?;
    }
    // 3. The root, in a mount namespace of this process alone.
    sys::unshare_mounts().map_err(JailError::mount("a mount namespace"))?;
    rootfs::open_up(&spec.root)?;
    let incomplete = rootfs::build(spec)?;
    let prewarmed = incomplete.map(Prewarmed::new).transpose()?;
    //    CRIU and an image to be restored are opened while they are in sight.
    let restorer = match &spec.assignment {
        None => Some(Restorer::ahead(spec)?),
        Some(function) => match &function.restore {
            Some(restore) => Some(Restorer::of_image(spec, &restore.images)?),
            None => None,
        },
    };
    // 4. New user, mount, pid, ipc, uts, net and cgroup namespaces. The child is PID 1 in them and the server's child.
    //    The network namespace is empty but for its loopback: nothing leads out of it.
    let (mut mapped, map) = io::pipe().map_err(JailError::Control)?;
    if let Fork::Parent(pid, pidfd) =
        sys::fork_into_namespaces(true).map_err(JailError::Namespaces)?
    {
        // 5. Two users exist inside: root is uid_base, the template uid_base + 1. Stage 0 ends here, unless there is no
        //    function yet.
        map_users(control, pid, pidfd, map, spec.uid_base)?;
        return prewarmed.map_or(Ok(()), |prewarmed| prewarmed.serve(control, spec));
    }

    // ---- PID 1: root inside the sandbox only ----
    drop(map);
    if mapped.read(&mut [0]).map_err(JailError::Control)? == 0 {
        return Ok(()); // stage 0 failed and reported it
    }
    drop(mapped);
    let prewarmed = prewarmed.map(Prewarmed::inside);
    become_inner_root()?;
    // The server may have died before this; then the control socket has ended, which PID 1 sees as soon as it listens.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(JailError::privileges("dying with the server"))?;
    rustix::process::setsid().map_err(JailError::privileges("a session"))?;
    if let Some(function) = &spec.assignment {
        rustix::system::sethostname(function.hostname.as_bytes())
            .map_err(JailError::privileges("the host name"))?;
    }
    // 6. /proc, /tmp and /dev/shm of its own; the prepared root becomes the root, and the host's tree is let go. The
    //    loopback is switched on.
    enter_root(spec.assignment.as_ref().map(Sizes::of))?;
    network::bring_up()?;
    //    The template's control socket: made here, in the sandbox's network namespace.
    let (server_end, template_control) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|error| JailError::Control(error.into()))?;
    let control_inode = rustix::fs::fstat(&template_control)
        .map_err(|error| JailError::Control(error.into()))?
        .st_ino;
    let mut has_network = spec
        .assignment
        .as_ref()
        .is_some_and(|function| function.network);
    let (template, restored) = match restorer {
        // 8a. The template comes out of its image, by CRIU, which needs what step 7 takes away and so starts before it; the
        //     template is stopped until PID 1 is done.
        Some(restorer) => {
            let ends = restore::Ends {
                control: &template_control,
                stdout: &order.stdout,
                stderr: &order.stderr,
            };
            let mut criu = restorer.start(&ends)?;
            // 7. For PID 1 already: what it has it keeps for now, and CRIU has its own.
            confine::lock_capabilities()?;
            if let Some(prewarmed) = &prewarmed {
                restorer.wait_at_gate(&mut criu)?;
                pid1::send(control, &Report::Prewarmed, &[]).map_err(JailError::Control)?;
                let Some(network) = prewarmed.wait(&criu)? else {
                    return Ok(()); // nobody is left who would need it
                };
                has_network = network;
            }
            let restored = restorer.restore(criu)?;
            if has_network && !network::wait(control)? {
                return Ok(());
            }
            (restored.template, Some(restored))
        }
        None => {
            // 7. From here on neither exec nor a change of user can grant capabilities, and most can never be regained.
            confine::lock_capabilities()?;
            //    The host process has worked on the network meanwhile.
            if has_network && !network::wait(control)? {
                return Ok(());
            }
            (boot(&mut order, &template_control)?, None)
        }
    };
    drop(template_control);
    drop(order);
    // 9. PID 1 keeps the one capability it needs, to kill the sandbox's other user's processes, and can get no other.
    give_up_privileges(CapabilitySet::KILL)?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(JailError::privileges("hiding from /proc"))?;
    // Changing users has cleared it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(JailError::privileges("dying with the server"))?;

    if let Some(restored) = &restored {
        restored.resume();
    }
    pid1::send(
        control,
        &Report::Ready { control_inode },
        &[server_end.as_fd()],
    )
    .map_err(JailError::Control)?;
    drop(server_end);
    // Stage 0 of a former pre-warmed sandbox, with the image's mount, and CRIU.
    let leftovers = restored.map(|restored| (prewarmed, restored.spent));
    pid1::serve(control, template, leftovers).map_err(JailError::Control)
}

/// 8. Forks the template, while PID 1 can still make it another user, and waits until its program runs.
fn boot(order: &mut Order, control: &OwnedFd) -> Result<Pid, JailError> {
    let (failure, failed) = io::pipe().map_err(JailError::Control)?;
    // Its threads and children come after it in number, too. Without that file there is no CRIU that would care.
    let _ = fs::write("/proc/sys/kernel/ns_last_pid", TEMPLATE_PID.to_string());
    let template = match sys::fork_numbered(TEMPLATE_PID).map_err(JailError::Namespaces)? {
        Fork::Parent(pid, _) => pid,
        Fork::Child => {
            drop(failure);
            let error = template(order, control);
            report_from_template(failed, &error);
            std::process::exit(1);
        }
    };
    drop(failed);
    wait_for_exec(failure)?;
    Ok(template)
}

/// The template's side of the fork: an ordinary user that can gain nothing, and then the interpreter. Returns only when
/// something failed.
fn template(order: &mut Order, control: &OwnedFd) -> JailError {
    let Some(function) = &order.spec.assignment else {
        return JailError::Spec("no function".into());
    };
    let program = function.argv.first().cloned().unwrap_or_default();
    let mut start = || -> Result<io::Error, JailError> {
        // 10. A session of its own, so that it can be restored without PID 1's; uid 1000 without capabilities,
        //     permanently.
        rustix::process::setsid().map_err(JailError::privileges("the template's session"))?;
        let uid = rustix::thread::Uid::from_raw(INNER_UID);
        let gid = rustix::thread::Gid::from_raw(INNER_UID);
        rustix::thread::set_thread_res_gid(gid, gid, gid)
            .map_err(JailError::id_map("becoming group 1000"))?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)
            .map_err(JailError::id_map("becoming user 1000"))?;
        give_up_privileges(CapabilitySet::empty())?;
        // 11. Limits that hold for each process, and its processor, which whatever it starts inherits.
        confine::limit_resources(function)?;
        if let Some(place) = function.processor {
            confine::pin(place)?;
        }
        // 12. Standard streams and the control socket; every other descriptor closes at exec.
        let null = File::open("/dev/null").map_err(JailError::Control)?;
        rustix::stdio::dup2_stdin(&null).map_err(|e| JailError::Control(e.into()))?;
        rustix::stdio::dup2_stdout(&order.stdout).map_err(|e| JailError::Control(e.into()))?;
        rustix::stdio::dup2_stderr(&order.stderr).map_err(|e| JailError::Control(e.into()))?;
        rustix::process::chdir("/var/task").map_err(JailError::mount("entering /var/task"))?;
        // 13. Files: Landlock says again what the mounts say, and holds where a mount would not.
        confine::restrict_files(None)?;
        // 14. System calls: the last step, since it forbids most of the above.
        sys::close_on_exec_from(3).map_err(JailError::Control)?;
        rustix::io::dup2(control, &mut order.slot).map_err(|e| JailError::Control(e.into()))?;
        crate::seccomp::install()?;
        Ok(Command::new(&program)
            .args(function.argv.iter().skip(1))
            .env_clear()
            .envs(function.env.iter().map(|(name, value)| (name, value)))
            .exec())
    };
    match start() {
        Err(error) => error,
        Ok(source) => JailError::Exec { program, source },
    }
}

/// Takes the control socket off standard input, where no program started from here shall find it, and keeps descriptor 3
/// free for the template's.
fn take_control() -> io::Result<(OwnedFd, OwnedFd)> {
    sys::close_from(TEMPLATE_CONTROL_FD)?;
    let slot = OwnedFd::from(File::open("/dev/null")?);
    if slot.as_raw_fd() != TEMPLATE_CONTROL_FD {
        return Err(io::ErrorKind::InvalidInput.into()); // standard input was closed
    }
    let control = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(&slot)?;
    Ok((control, slot))
}

fn receive_order(control: &OwnedFd, slot: OwnedFd) -> Result<Order, JailError> {
    let mut buffer = [0; 16];
    let (length, fds) = wire::receive(control, &mut buffer).map_err(JailError::Control)?;
    if buffer[..length] != [START] {
        return Err(JailError::Spec("not a start message".into()));
    }
    let [spec, stdout, stderr] = <[OwnedFd; START_FDS]>::try_from(fds)
        .map_err(|fds| JailError::Spec(format!("{} descriptors, not {START_FDS}", fds.len())))?;
    let mut bytes = Vec::new();
    File::from(spec)
        .read_to_end(&mut bytes)
        .map_err(JailError::Control)?;
    let spec = JailSpec::from_bytes(&bytes).map_err(|error| JailError::Spec(error.to_string()))?;
    if let Some(function) = &spec.assignment
        && function.argv.is_empty()
    {
        return Err(JailError::Spec("no program".into()));
    }
    Ok(Order {
        spec,
        stdout,
        stderr,
        slot,
    })
}

/// Stage 0's last step: hands the server PID 1's pidfd, maps the two users, and lets PID 1 go on.
fn map_users(
    control: &OwnedFd,
    pid: Pid,
    pidfd: Option<OwnedFd>,
    mut map: PipeWriter,
    base: u32,
) -> Result<(), JailError> {
    // First of all the pidfd: whatever happens next, the server can kill and reap its new child.
    let fds: Vec<_> = pidfd.iter().map(AsFd::as_fd).collect();
    let spawned = Report::Spawned {
        pid: pid.as_raw_nonzero().get(),
    };
    pid1::send(control, &spawned, &fds).map_err(JailError::Control)?;

    let proc = format!("/proc/{}", pid.as_raw_nonzero());
    let lines = format!("0 {base} 1\n{INNER_UID} {} 1\n", base + 1);
    fs::write(format!("{proc}/setgroups"), "deny").map_err(JailError::id_map("setgroups"))?;
    fs::write(format!("{proc}/uid_map"), &lines).map_err(JailError::id_map("uid_map"))?;
    fs::write(format!("{proc}/gid_map"), &lines).map_err(JailError::id_map("gid_map"))?;
    map.write_all(&[1]).map_err(JailError::Control)
}

fn become_inner_root() -> Result<(), JailError> {
    let (uid, gid) = (rustix::thread::Uid::ROOT, rustix::thread::Gid::ROOT);
    rustix::thread::set_thread_res_gid(gid, gid, gid)
        .map_err(JailError::id_map("becoming group 0 inside"))?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)
        .map_err(JailError::id_map("becoming user 0 inside"))
}

/// Keeps `keep` and permanently drops everything else.
fn give_up_privileges(keep: CapabilitySet) -> Result<(), JailError> {
    confine::keep_capabilities(keep)?;
    rustix::thread::set_no_new_privs(true).map_err(JailError::privileges("no_new_privs"))
}

/// Reports to PID 1 why there is no template.
fn report_from_template(mut failed: PipeWriter, error: &JailError) {
    // If PID 1 is gone, so is everything else in a moment.
    let _ = failed.write_all(&error.report().to_bytes());
}

/// The pipe ends without a word when the template's exec has closed it.
fn wait_for_exec(failure: PipeReader) -> Result<(), JailError> {
    let mut bytes = Vec::new();
    failure
        .take(MAX_REPORT as u64)
        .read_to_end(&mut bytes)
        .map_err(JailError::Control)?;
    if bytes.is_empty() {
        return Ok(());
    }
    match Report::from_bytes(&bytes) {
        Ok(Report::Failed { step, detail }) => Err(JailError::Template { step, detail }),
        other => Err(JailError::Spec(format!("unexpected report: {other:?}"))),
    }
}
