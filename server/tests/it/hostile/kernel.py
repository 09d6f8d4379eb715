import mmap
import platform
import resource

# name: (x86_64, aarch64, arguments). The arguments are harmless where the call is allowed.
CALLS = {
    "ptrace": (101, 117, (0,)), "mount": (165, 40, ()), "umount2": (166, 39, ()), "bpf": (321, 280, ()),
    "unshare": (272, 97, (0x10000000,)), "setns": (308, 268, (0, 0)), "setuid": (105, 146, (0,)),
    "setgid": (106, 144, (0,)), "setgroups": (116, 159, (0, 0)), "setresuid": (117, 147, (0, 0, 0)),
    "setresgid": (119, 149, (0, 0, 0)), "setreuid": (113, 145, (0, 0)), "setfsuid": (122, 151, (0,)),
    "capset": (126, 91, ()), "chroot": (161, 51, (b"/",)), "pivot_root": (155, 41, (b"/tmp", b"/tmp")),
    "keyctl": (250, 219, (0, -3, 0)), "add_key": (248, 217, ()), "request_key": (249, 218, ()),
    "perf_event_open": (298, 241, ()), "userfaultfd": (323, 282, (1,)), "io_uring_enter": (426, 426, ()),
    "io_uring_register": (427, 427, ()), "init_module": (175, 105, ()), "finit_module": (313, 273, ()),
    "delete_module": (176, 106, ()), "kexec_load": (246, 104, ()), "kexec_file_load": (320, 294, ()),
    "reboot": (169, 142, ()), "personality": (135, 92, (0x0400000,)), "iopl": (172, None, (3,)),
    "ioperm": (173, None, (0, 1, 1)), "modify_ldt": (154, None, ()), "name_to_handle_at": (303, 264, ()),
    "open_by_handle_at": (304, 265, ()), "process_vm_readv": (310, 270, (1,)),
    "process_vm_writev": (311, 271, (1,)), "process_madvise": (440, 440, ()), "kcmp": (312, 272, (1, 1)),
    "pidfd_getfd": (438, 438, ()), "settimeofday": (164, 170, ()), "clock_settime": (227, 112, ()),
    "clock_adjtime": (305, 266, ()), "adjtimex": (159, 171, ()), "sethostname": (170, 161, (b"x", 1)),
    "setdomainname": (171, 162, (b"x", 1)), "swapon": (167, 224, ()), "swapoff": (168, 225, ()),
    "acct": (163, 89, ()), "syslog": (103, 116, (10,)), "quotactl": (179, 60, ()), "open_tree": (428, 428, ()),
    "move_mount": (429, 429, ()), "fsopen": (430, 430, ()), "fsconfig": (431, 431, ()), "fsmount": (432, 432, ()),
    "fspick": (433, 433, ()), "mount_setattr": (442, 442, ()), "move_pages": (279, 239, ()),
    "migrate_pages": (256, 238, ()), "vmsplice": (278, 75, ()), "seccomp": (317, 277, (0,)),
    "fanotify_init": (300, 262, ()), "lookup_dcookie": (212, 18, ()), "vhangup": (153, 58, ()),
    "sync": (162, 81, ()), "shmget": (29, 194, ()), "semget": (64, 190, ()), "msgget": (68, 186, ()),
    "mq_open": (240, 180, ()), "landlock_create_ruleset": (444, 444, (0, 0, 1)), "io_setup": (206, 0, (1, 0)),
    "clone3": (435, 435, ()), "io_uring_setup": (425, 425, ()), "memfd_secret": (447, 447, ()),
}


def number(name):
    x86, arm, arguments = CALLS[name]
    return (x86 if platform.machine() == "x86_64" else arm), arguments


def call(nr, *arguments):
    ctypes.set_errno(0)
    passed = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    result = libc.syscall(ctypes.c_long(nr), *passed)
    return errno.errorcode.get(ctypes.get_errno(), "?") if result == -1 else "allowed"


def calls():
    results = {}
    for name in CALLS:
        nr, arguments = number(name)
        if nr is not None:
            results[name] = call(nr, *(arguments + (0,) * (6 - len(arguments))))
    return results


def namespaces():
    """clone(2) into each kind of namespace, and as a sibling."""
    results = {}
    nr = 56 if platform.machine() == "x86_64" else 220
    for name, flag in {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000,
                       "ipc": 0x8000000, "uts": 0x4000000, "cgroup": 0x2000000, "parent": 0x8000}.items():
        result = libc.syscall(ctypes.c_long(nr), ctypes.c_long(flag | signal.SIGCHLD), 0, 0, 0, 0)
        if result == 0:
            os._exit(0)
        results[name] = errno.errorcode[ctypes.get_errno()] if result < 0 else "allowed"
    return results


def prctls():
    """(option, argument) that would widen what this process may do, or hide it; refused or harmless."""
    options = {"seccomp": (22, 1), "mm": (35, 1), "capbset_drop": (24, 0), "keepcaps": (8, 1), "securebits": (28, 0),
               "cap_ambient": (47, 2), "set_ptracer": (0x59616d61, -1), "mce_kill": (33, 0), "tsc": (26, 2)}
    results = {name: attempt(prctl, *arguments) for name, arguments in options.items()}
    # Allowed to whoever wants to; the instance is killed and read through descriptors that do not depend on them.
    prctl(1, signal.SIGKILL)
    prctl(4, 0)
    return results


def prctl(option, argument):
    if libc.prctl(option, ctypes.c_long(argument), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def limits():
    """Raises every limit, and asks for priority."""
    results = {}
    for name in ("NOFILE", "NPROC", "FSIZE", "CORE", "MEMLOCK", "SIGPENDING", "MSGQUEUE", "NICE", "RTPRIO"):
        which = getattr(resource, "RLIMIT_" + name)
        _, hard = resource.getrlimit(which)
        results[name] = attempt(resource.setrlimit, which, (hard + 1, hard + 1)) if hard != -1 else "unlimited"
    results["nice"] = attempt(os.nice, -5)
    results["realtime"] = attempt(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
    return results


def other_abi():
    """getpid by the 32-bit interface, whose numbers a filter for 64 bits would misread."""
    if platform.machine() != "x86_64":
        os.kill(os.getpid(), signal.SIGSYS)
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20; int 0x80; ret
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)()


def x32_abi():
    if platform.machine() != "x86_64":
        return "EPERM"
    return call(0x40000000 | 101, 0, 0, 0, 0)


def dump_core():
    os.chdir("/tmp")
    os.abort()


def cores():
    return [name for name in os.listdir("/tmp") if "core" in name] + [resource.getrlimit(resource.RLIMIT_CORE)[1]]
