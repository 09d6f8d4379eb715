"""Compiles a package's sources: `/usr/bin/python3 -IS bytecode.py`, in a sandbox that nothing else runs in.

Two workers share the sources. Each sends what it makes on a stream of its own, stdout or stderr, so that one that dies
in the middle spoils nothing of the other's. A frame is the lengths of the source's path and of its byte code (u32,
little-endian), then these two; one without either ends the stream.
"""

import importlib.util
import mmap
import os
import sys
import warnings
from importlib import _bootstrap_external

CODE_DIR = "/var/task"
STREAMS = (1, 2)
# The compiler takes some hundred times as much memory.
SOURCE_BYTES_MAX = 2 << 20
# Packages carry more of these than of what they run, and nothing imports them.
LEFT_OUT = {"test", "tests", "__pycache__"}


def find(root):
    """The paths of the sources, the smallest first: what is too much for the compiler costs the fewest others."""
    found = []
    for directory, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name not in LEFT_OUT]
        for name in files:
            path = os.path.join(directory, name)
            if name.endswith(".py") and (size := os.path.getsize(path)) <= SOURCE_BYTES_MAX:
                found.append((size, os.path.relpath(path, root)))
    return [path for _, path in sorted(found)]


def compiled(root, path):
    """The content of the source's `.pyc`, which says that it need not be compared with the source (PEP 552)."""
    place = os.path.join(root, path)
    with open(place, "rb") as file:
        source = file.read()
    code = compile(source, place, "exec", dont_inherit=True)
    return _bootstrap_external._code_to_hash_pyc(code, importlib.util.source_hash(source), False)


def send(stream, path, code):
    """Writes one frame."""
    path = path.encode()
    left = memoryview(
        len(path).to_bytes(4, "little") + len(code).to_bytes(4, "little") + path + code
    )
    while left:
        left = left[os.write(stream, left) :]


def work(root, sources, stream, mark):
    """Compiles the sources from the one that `mark` says on. A source that does not compile has no byte code."""
    while (index := int.from_bytes(mark[:4], "little")) < len(sources):
        # Should this one end the process, the next process goes on behind it.
        mark[:4] = (index + 1).to_bytes(4, "little")
        try:
            code = compiled(root, sources[index])
        except Exception:
            continue
        # A stream that breaks off in a frame cannot be gone on with.
        mark[4] = 1
        send(stream, sources[index], code)
        mark[4] = 0
    mark[4] = 1
    send(stream, "", b"")


def start(root, sources, stream, mark):
    """Forks a worker. Returns its number."""
    pid = os.fork()
    if pid == 0:
        try:
            own = os.dup(stream)
            # What anything prints is not to get between the frames.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for standard in STREAMS:
                os.dup2(nowhere, standard)
            work(root, sources, own, mark)
        finally:
            os._exit(0)
    return pid


def main(root):
    """Compiles everything below `root`."""
    warnings.simplefilter("ignore")
    sources = find(root)
    workers = {}
    for index, stream in enumerate(STREAMS):
        job = (root, sources[index :: len(STREAMS)], stream, mmap.mmap(-1, 8))
        workers[start(*job)] = job
    while workers:
        pid, status = os.wait()
        job = workers.pop(pid)
        mark = job[-1]
        if os.WIFSIGNALED(status) and not mark[4]:
            workers[start(*job)] = job


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else CODE_DIR)
