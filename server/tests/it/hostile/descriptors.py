import fcntl
import resource


def print_much(mebibytes):
    block = b"x" * 65535 + b"\n"
    for _ in range(mebibytes * 16):
        os.write(1, block)
    return "printed"


def print_for_ever(line):
    block = line.encode() * (65536 // len(line))
    while True:
        os.write(1, block)
        os.write(2, block)


def print_short_lines():
    for _ in range(20):
        os.write(1, b"\n" * 65536)
    return "printed"


def packets():
    """A pipe in packet mode gives the reader one byte a read."""
    fcntl.fcntl(1, fcntl.F_SETFL, os.O_DIRECT | os.O_NONBLOCK)
    for _ in range(20_000):
        attempt(os.write, 1, b"x")
    return "printed"


def close_all():
    os.closerange(0, 4096)
    return "closed"


def junk_over_all():
    """Another file under the number of every descriptor."""
    other = os.open("/dev/null", os.O_RDWR)
    for name in os.listdir("/proc/self/fd"):
        if int(name) != other:
            attempt(os.dup2, other, int(name))
    return "replaced"


def exhaust():
    """Every number taken: what the next request needs must be there already."""
    kept = []
    try:
        while len(kept) < 10_000:
            kept.append(os.dup(0))
    except OSError as error:
        globals()["kept"] = kept
        return [errno.errorcode[error.errno], len(kept) < resource.getrlimit(resource.RLIMIT_NOFILE)[1]]
    return "never"


def blocking():
    for name in os.listdir("/proc/self/fd"):
        attempt(os.set_blocking, int(name), True)
    return "blocking"


def wait():
    time.sleep(0.5)


def write_garbage():
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            for garbage in (b"\x41" * 8, b"\x7f" * 64, os.urandom(512)):
                attempt(os.write, int(name), garbage)
    return "written"
