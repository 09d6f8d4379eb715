import mmap
import subprocess
import threading

# Shared by all instances.
counter = (ctypes.c_uint64 * 1).from_buffer(mmap.mmap(-1, 4096))

if os.environ.get("EARLY"):
    import snapshot_restore_py

    snapshot_restore_py.register_after_restore(lambda: early_rabbits())


def visible(host_pid):
    """Processes in sight, and what kill says to a process of the host."""
    names = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            names[pid] = open(f"/proc/{pid}/comm").read().strip()
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended since it was listed
    return {"processes": names, "me": os.getpid(), "parent": os.getppid(),
            "host": "inside" if str(host_pid) in names else attempt(os.kill, host_pid, signal.SIGKILL)}


def fork_bomb():
    while True:
        try:
            os.fork()
        except OSError:
            pass


def process_bomb():
    children = []
    while True:
        try:
            children.append(subprocess.Popen(["/usr/bin/sleep", "1000"]))
        except OSError:
            time.sleep(0.01)


def count_forks():
    """Forks as often as it can, and ends them all."""
    children = []
    try:
        while len(children) < 5000:
            pid = os.fork()
            if pid == 0:
                signal.pause()
            children.append(pid)
        refused = "never"
    except OSError as error:
        refused = errno.errorcode[error.errno]
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return {"children": len(children), "refused": refused}


def thread_bomb():
    stop, threads = threading.Event(), 0
    try:
        while threads < 5000:
            threading.Thread(target=stop.wait, daemon=True).start()
            threads += 1
    except RuntimeError:
        pass
    stop.set()
    return threads


def daemon():
    """A process that leaves its session and its parent, and says goodbye to signals."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            libc.prctl(36, 0, 0, 0, 0)
            open("/tmp/daemon", "w").write(str(os.getpid()))
            while True:
                time.sleep(1)
        os._exit(0)
    os.wait()
    while not os.path.exists("/tmp/daemon"):
        time.sleep(0.01)
    return "left"


def daemon_and_die():
    daemon()
    os._exit(7)


def run_as_rabbit():
    """Is another process every moment: whoever wants to kill it by its number comes late."""
    fork = 57 if os.uname().machine == "x86_64" else None
    while True:
        child = libc.syscall(fork) if fork else os.fork()
        if child > 0:
            libc._exit(0)
        elif child == 0:
            counter[0] += 1


def breed(count):
    # Who adopts them does not have to wait for each: what is left of them would use up the limit of processes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in range(count):
        if os.fork() == 0:
            run_as_rabbit()


def rabbits():
    breed(5)
    before = counter[0]
    while counter[0] <= before + 10:
        time.sleep(0.01)
    os.write(1, b"they ran\n")
    os._exit(7)


def early_rabbits():
    """The same from a hook that runs before the instance is ready, and so before it is in its cgroup."""
    if os.environ.get("EARLY"):
        breed(3)


def ignore_everything():
    for number in range(1, 65):
        attempt(signal.signal, number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass


def burn():
    for _ in range(4):
        if os.fork() == 0:
            break
    while True:
        pass


def kill_init():
    return {str(number): attempt(os.kill, 1, number) for number in (0, 1, 2, 9, 11, 15, 18, 19)}


def kill_template():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(20)


def stop_template():
    os.kill(os.getppid(), signal.SIGSTOP)
    os._exit(7)


def kill_siblings():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) not in (1, os.getpid(), os.getppid()):
            attempt(os.kill, int(pid), signal.SIGKILL)
    return "killed"


def kill_everything():
    os.kill(-1, signal.SIGKILL)
    time.sleep(20)


def sleep(seconds):
    time.sleep(seconds)
    return "slept"
