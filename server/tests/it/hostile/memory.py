import mmap
import shutil
import subprocess

MIB = 1 << 20


def heap():
    kept = []
    while True:
        kept.append(bytearray(b"x" * MIB))


def shared():
    kept = []
    while True:
        area = mmap.mmap(-1, 16 * MIB)
        for offset in range(0, 16 * MIB, 4096):
            area[offset] = 1
        kept.append(area)


def in_memory_file():
    kept = []
    while True:
        kept.append(os.memfd_create("big"))
        try:
            while True:
                os.write(kept[-1], b"x" * MIB)
        except OSError as error:
            # A single file has a limit as well.
            if error.errno != errno.EFBIG:
                raise


def in_a_child():
    child = subprocess.run([sys.executable, "-c", "x = b'x' * (400 << 20)"])
    return child.returncode


def promise():
    """Address space is free; only what is touched counts."""
    return len(mmap.mmap(-1, 1 << 33))


def fill(directory):
    """Writes until it is refused, then cleans up."""
    path, written = directory + "/fill", 0
    number = 0
    result = "never"
    while written < 1 << 30:
        try:
            with open(f"{path}-{number}", "wb", buffering=0) as file:
                for _ in range(4):
                    written += file.write(b"x" * MIB)
            number += 1
        except OSError as error:
            result = errno.errorcode[error.errno]
            break
    for name in os.listdir(directory):
        if name.startswith("fill"):
            os.unlink(f"{directory}/{name}")
    return {"written": written, "refused": result}


def inodes(directory):
    """Empty files and directories cost no blocks."""
    os.makedirs(directory + "/many", exist_ok=True)
    made, refused = 0, "never"
    while made < 300_000:
        try:
            if made % 2:
                os.mkdir(f"{directory}/many/{made}")
            else:
                os.close(os.open(f"{directory}/many/{made}", os.O_CREAT | os.O_WRONLY))
            made += 1
        except OSError as error:
            refused = errno.errorcode[error.errno]
            break
    shutil.rmtree(directory + "/many")
    return {"made": made, "refused": refused}


def one_large_file():
    """RLIMIT_FSIZE: its signal, or its error for whom the signal is ignored."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    return attempt(os.truncate, open("/tmp/large", "w").name, 1 << 40)
