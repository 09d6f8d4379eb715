"""What processes share: prints as JSON each open file that two of the given processes have both."""

import ctypes
import itertools
import json
import os
import sys

KCMP, FILE = 312, 0
libc = ctypes.CDLL(None, use_errno=True)


def descriptors(pid):
    return [int(name) for name in os.listdir(f"/proc/{pid}/fd")]


def shared(first, second):
    for mine, theirs in itertools.product(descriptors(first), descriptors(second)):
        result = libc.syscall(KCMP, int(first), int(second), FILE, mine, theirs)
        if result < 0:
            raise OSError(ctypes.get_errno(), "kcmp")
        if result == 0:
            yield {"pids": [first, second], "fds": [mine, theirs], "file": os.readlink(f"/proc/{first}/fd/{mine}")}


pairs = itertools.combinations(sys.argv[1:], 2)
print(json.dumps([found for pair in pairs for found in shared(*pair)]))
