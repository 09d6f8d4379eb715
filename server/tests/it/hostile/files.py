import fcntl
import stat
import subprocess


def read(paths):
    """Opens files of the host, also by way of links, other processes' roots and descriptors."""
    found = {}
    for path in paths:
        link = "/tmp/link"
        attempt(os.unlink, link)
        os.symlink(path, link)
        for way in [path, link] + [root + path for root in (
            "/proc/1/root", "/proc/1/cwd", "/proc/2/root", "/proc/self/root/..", "/..", "/proc/self/cwd/../..",
        )]:
            got = attempt(lambda: open(way, "rb").read(1))
            if got not in ("ENOENT", "EACCES", "EPERM", "ENOTDIR", "EISDIR"):
                found[way] = got
            listed = attempt(os.listdir, way)
            if listed == "done":
                found[way + "/"] = "listed"
    return found


def search(needle):
    """Looks for a text in every small file in sight, and in what /proc shows of processes and mounts."""
    needle, hits, seen = needle.encode(), [], 0
    for top, directories, files in os.walk("/"):
        if top == "/":
            directories[:] = [name for name in directories if name not in ("usr", "proc")]
        for name in files:
            path = os.path.join(top, name)
            try:
                if stat.S_ISREG(os.stat(path).st_mode) and needle in open(path, "rb").read(1 << 20):
                    hits.append(path)
                seen += 1
            except OSError:
                pass
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline", "maps", "mountinfo", "cgroup"):
            try:
                if needle in open(f"/proc/{pid}/{name}", "rb").read():
                    hits.append(f"/proc/{pid}/{name}")
            except OSError:
                pass
    return {"hits": hits, "seen": seen}


def inventory():
    """What the root, /etc and /dev hold."""
    return {
        "root": sorted(os.listdir("/")),
        "etc": sorted(os.listdir("/etc")),
        "dev": sorted(os.listdir("/dev")),
        "opt": sorted(os.listdir("/opt") + os.listdir("/opt/hearth")),
        "users": [line.split(":")[0] for line in open("/etc/passwd")],
        "devices": {name: stat.S_ISCHR(os.lstat("/dev/" + name).st_mode) for name in os.listdir("/dev")},
    }


def writable():
    """Every directory in which a file can be made and every file that opens for writing."""
    found = []
    for top, directories, files in os.walk("/"):
        parts = top.split("/")
        if parts[1] == "proc" and len(parts) > 2 and parts[2].isdigit():
            directories.clear()
            continue
        path = os.path.join(top, ".hearth-write-test")
        if attempt(lambda: os.close(os.open(path, os.O_CREAT | os.O_WRONLY))) == "done":
            os.unlink(path)
            found.append(top)
        if parts[1] == "usr":
            # One mount, of the host's, with any number of files: a sample. All of it may take a disk minutes.
            files = files[:20]
            directories[:] = directories[:20]
        for name in files:
            path = os.path.join(top, name)
            if not os.path.islink(path) and not stat.S_ISFIFO(os.lstat(path).st_mode):
                if attempt(lambda: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))) == "done":
                    found.append(path)
    return found


def change():
    """Changes what is there: each must be refused."""
    code, shell = "/var/task/main.py", "/usr/bin/env"
    return {
        "rename": attempt(os.rename, code, "/tmp/main.py"),
        "unlink": attempt(os.unlink, code),
        "truncate": attempt(os.truncate, code, 0),
        "chmod": attempt(os.chmod, code, 0o777),
        "chown": attempt(os.chown, code, 1000, 1000),
        "chown_root": attempt(lambda: (open("/tmp/mine", "w").close(), os.chown("/tmp/mine", 0, 0))),
        "link": attempt(os.link, shell, "/tmp/env"),
        "rename_dir": attempt(os.rename, "/tmp", "/tmp2"),
        "rmdir": attempt(os.rmdir, "/dev/shm"),
        "utime": attempt(os.utime, shell),
        "setxattr": attempt(os.setxattr, shell, "user.a", b"b"),
        "trusted": attempt(os.setxattr, "/tmp", "trusted.a", b"b"),
        "null_device": attempt(os.mknod, "/tmp/null", stat.S_IFCHR | 0o666, os.makedev(1, 3)),
        "memory_device": attempt(os.mknod, "/tmp/mem", stat.S_IFCHR | 0o666, os.makedev(1, 1)),
        "disk_device": attempt(os.mknod, "/tmp/disk", stat.S_IFBLK | 0o666, os.makedev(254, 0)),
        "replace_device": attempt(os.rename, "/dev/null", "/dev/zero"),
        "chmod_device": attempt(os.chmod, "/dev/null", 0o600),
        "own_memory": attempt(lambda: open("/proc/self/mem", "r+b")),
        "init_memory": attempt(lambda: open("/proc/1/mem", "rb")),
        "init_environment": attempt(lambda: open("/proc/1/environ", "rb").read()),
        "init_maps": attempt(lambda: open("/proc/1/maps", "rb").read()),
        "init_root": attempt(os.listdir, "/proc/1/root/"),
        "init_descriptors": attempt(os.listdir, "/proc/1/fd"),
        "core_pattern": attempt(lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/tmp/x")),
        "host_name": attempt(lambda: open("/proc/sys/kernel/hostname", "w").write("x")),
        "sysrq": attempt(lambda: open("/proc/sysrq-trigger", "w").write("b")),
        "kernel_memory": attempt(lambda: open("/proc/kcore", "rb").read(1)),
        "kernel_messages": attempt(lambda: open("/proc/kmsg", "rb").read(1)),
        "oom_score": attempt(lambda: open("/proc/self/oom_score_adj", "w").write("-1000")),
        "uid_map": attempt(lambda: open("/proc/self/uid_map", "w").write("0 0 1")),
    }


def links():
    """Games with links in /tmp end in /tmp."""
    os.makedirs("/tmp/games", exist_ok=True)
    os.chdir("/tmp/games")
    os.symlink("b", "a")
    os.symlink("a", "b")
    os.symlink("../../../../../../../../etc/shadow", "up")
    os.symlink("/proc/self/fd/0", "in")
    os.symlink("/sys/kernel", "sys")
    directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    return {
        "loop": attempt(open, "a"),
        "up": attempt(open, "up"),
        "sys": attempt(os.listdir, "sys"),
        "above_root": attempt(os.open, "../root", os.O_RDONLY, dir_fd=directory),
        "escape": sorted(os.listdir("/../..")) == sorted(os.listdir("/")),
    }


def suid():
    """Programs that would be root's outside."""
    results, programs = {}, 0
    for top in ("/usr/bin", "/usr/sbin", "/usr/lib"):
        for name in os.listdir(top):
            mode = os.lstat(os.path.join(top, name)).st_mode
            programs += bool(stat.S_ISREG(mode) and mode & stat.S_ISUID)
    for command in (["su", "-c", "id", "root"], ["mount", "-t", "tmpfs", "none", "/tmp"], ["umount", "/tmp"],
                    ["unshare", "-r", "id"], ["nsenter", "-t", "1", "-a", "id"], ["chroot", "/", "id"]):
        try:
            done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=10)
            results[command[0]] = [done.returncode, done.stdout.decode()[:200]]
        except OSError as error:
            results[command[0]] = [127, errno.errorcode[error.errno]]
    own = "/tmp/own-suid"
    with open("/usr/bin/id", "rb") as source, open(own, "wb") as copy:
        copy.write(source.read())
    os.chmod(own, 0o6755)
    return {"programs": programs, "results": results, "own": subprocess.check_output([own, "-u"]).decode().strip(),
            "status": {line.split(":")[0]: line.split()[1] for line in open("/proc/self/status")
                       if line.startswith(("Cap", "NoNewPrivs", "Seccomp:"))}}


def watch_programs():
    results = {}
    for name, arguments in {"inotify_init": [], "inotify_init1": [0], "fanotify_init": [0, 0]}.items():
        failed = getattr(libc, name)(*arguments) < 0
        results[name] = errno.errorcode[ctypes.get_errno()] if failed else "done"
    return results


def command_line_of_pid_1():
    with open("/proc/1/cmdline", "rb") as file:
        return file.read().decode()


held = []


def lock(paths):
    """Locks each and keeps the lock; answers what somebody else has locked."""
    refused = {}
    for path in paths:
        held.append(os.open(path, os.O_RDONLY))
        result = attempt(fcntl.flock, held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        if result != "done":
            refused[path] = result
    return refused


def mounts():
    files = [f"/proc/self/{name}" for name in ("mountinfo", "mounts", "mountstats", "maps")]
    return {path: open(path).read() for path in files}
