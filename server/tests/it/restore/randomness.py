"""Draws random numbers from every source there is, and shows what the kernel does with each mapping."""

import ctypes
import hashlib
import mmap
import os
import random
import secrets
import ssl
import tempfile
import threading
import time
import uuid

import snapshot_restore_py as hooks

PAGE = mmap.PAGESIZE
READ, WRITE = mmap.PROT_READ, mmap.PROT_WRITE
PRIVATE, DROPPABLE = mmap.MAP_PRIVATE, 0x08
# MADV_... by the letters that the kernel lists.
ADVICE = {"sr": 2, "rr": 1, "dc": 10, "mg": 12, "hg": 14, "nh": 15, "dd": 16, "wf": 18}
GETRANDOM, MSEAL = (318, 462) if os.uname().machine == "x86_64" else (278, 462)

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def mapping(kind, *advice, pages=3, fill=0xA7, protection=READ | WRITE, seal=False):
    """The address of a mapping that is full of a byte; None where this kernel has none of the kind."""
    at = libc.mmap(None, pages * PAGE, READ | WRITE, kind | mmap.MAP_ANONYMOUS, -1, 0)
    if at == ctypes.c_void_p(-1).value:
        return None
    # A neighbour of another protection keeps the kernel from making one mapping of two.
    libc.mmap(None, PAGE, 0, PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if any(libc.madvise(at, pages * PAGE, ADVICE[letters]) for letters in advice):
        return None
    ctypes.memset(at, fill, pages * PAGE)
    libc.mprotect(at, pages * PAGE, protection)
    if seal and libc.syscall(MSEAL, ctypes.c_void_p(at), ctypes.c_size_t(pages * PAGE), 0):
        return None
    return at


MAPPINGS = {
    "wiped": mapping(PRIVATE, "wf"),
    "wiped, read only": mapping(PRIVATE, "wf", "dd", protection=READ),
    "wiped, large": mapping(PRIVATE, "wf", pages=700),
    "wiped, sealed": mapping(PRIVATE, "wf", seal=True),
    "droppable": mapping(DROPPABLE),
    "droppable, read only": mapping(DROPPABLE, protection=READ),
    "droppable, not forked": mapping(DROPPABLE, "dc"),
    "not forked": mapping(PRIVATE, "dc", fill=0x5C),
    "not dumped": mapping(PRIVATE, "dd", fill=0x5C),
    "merged": mapping(PRIVATE, "mg", fill=0x5C),
    "huge pages": mapping(PRIVATE, "hg", fill=0x5C),
    "small pages": mapping(PRIVATE, "nh", fill=0x5C),
    "in sequence": mapping(PRIVATE, "sr", fill=0x5C),
    "at random": mapping(PRIVATE, "rr", fill=0x5C),
    "sealed": mapping(PRIVATE, fill=0x5C, seal=True),
    "plain": mapping(PRIVATE, fill=0x5C),
}


def listed():
    """The mappings as the kernel lists them: first address, last, name, flags."""
    found = []
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            words = line.split()
            if "-" in words[0]:
                start, end = (int(word, 16) for word in words[0].split("-"))
                found.append([start, end, " ".join(words[5:]), []])
            elif words[0] == "VmFlags:":
                found[-1][3] = words[1:]
    return found


before = []
hooks.register_before_snapshot(lambda: before.extend(listed()))


def from_kernel(size=16):
    """Bytes from the kernel itself, no library between."""
    buffer = ctypes.create_string_buffer(size)
    assert libc.syscall(GETRANDOM, buffer, ctypes.c_size_t(size), 0) == size
    return buffer.raw


class Generator:
    """As crypto libraries have them: it goes on from its state, and is seeded anew when it finds the state empty."""

    def __init__(self, place):
        self.place = place
        if place is not None:
            ctypes.memset(place, 0, PAGE)
            self.draw()

    def draw(self):
        state = ctypes.string_at(self.place, 32)
        if not any(state):
            state = from_kernel(32)
        state = hashlib.sha256(state).digest()
        ctypes.memmove(self.place, state, 32)
        return hashlib.sha256(b"output" + state).hexdigest()[:16]


class Watcher:
    """As BoringSSL has it: the state is ordinary memory, and a byte that is wiped tells of a fork."""

    def __init__(self, place):
        self.place, self.state = place, b""
        ctypes.memset(place, 0, PAGE)
        self.draw()

    def draw(self):
        if ctypes.string_at(self.place, 1) == b"\0":
            self.state = from_kernel(32)
            ctypes.memset(self.place, 1, 1)
        self.state = hashlib.sha256(self.state).digest()
        return hashlib.sha256(b"output" + self.state).hexdigest()[:16]


wiped = Generator(mapping(PRIVATE, "wf", pages=1))
droppable = Generator(mapping(DROPPABLE, pages=1))
watcher = Watcher(mapping(PRIVATE, "wf", pages=1))


def from_c_library(name):
    buffer = ctypes.create_string_buffer(16)
    if name == "getrandom":
        assert libc.getrandom(buffer, 16, 0) == 16
    elif name == "getentropy":
        assert libc.getentropy(buffer, 16) == 0
    else:
        libc.arc4random_buf(buffer, 16)
    return buffer.raw.hex()


def on_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(from_c_library("getrandom")))
    thread.start()
    thread.join()
    return found[0]


SOURCES = {
    "random": lambda: random.random().hex(),
    "getrandbits": lambda: random.getrandbits(64),
    "os.urandom": lambda: os.urandom(8).hex(),
    "os.getrandom": lambda: os.getrandom(8).hex(),
    "uuid4": lambda: str(uuid.uuid4()),
    "secrets": lambda: secrets.token_hex(8),
    "ssl": lambda: ssl.RAND_bytes(8).hex(),
    "tempfile": lambda: next(tempfile._get_candidate_names()),
    "system call": lambda: from_kernel().hex(),
    "getrandom(3)": lambda: from_c_library("getrandom"),
    "getentropy(3)": lambda: from_c_library("getentropy"),
    "arc4random(3)": lambda: from_c_library("arc4random_buf"),
    "another thread": on_a_thread,
    "a wiped state": wiped.draw,
    "a wiped watcher": watcher.draw,
}
if droppable.place is not None:
    SOURCES["a droppable state"] = droppable.draw


def draw():
    return {name: source() for name, source in SOURCES.items()}


# Every state there is has been used before the image is made, so that it would be in there.
draw()


def in_children(depth, count=3):
    """What children of this process draw, one after another and each before its parent draws again, and theirs."""
    drawn = []
    for _ in range(count):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                found = [draw()] + (in_children(depth - 1, 1) if depth else [])
                os.write(writing, repr(found).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        with open(reading) as pipe:
            drawn += eval(pipe.read())
        assert os.waitpid(child, 0)[1] == 0
        drawn.append(draw())
    return drawn


def handler(event, context):
    if event == "mappings":
        return [MAPPINGS, before]
    # Instances that run at the same time.
    open(f"/tmp/in-{os.getpid()}", "w").close()
    until = time.time() + 10
    while len([name for name in os.listdir("/tmp") if name.startswith("in-")]) < event and time.time() < until:
        time.sleep(0.005)
    return in_children(1) + [draw()]
