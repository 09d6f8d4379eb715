"""What siblings must not share: random state, identifiers, event loops.

The template finds out once what there is to renew (`prepare`); each instance then runs only those
steps (`renew`). Nothing is needed here for `secrets` and `os.urandom`, which ask the kernel, for `tempfile`, which looks at the process id,
nor for `ssl`: OpenSSL (1.1.1 and later) seeds its generators anew when it finds itself in another
process. Doing that ahead would add more than a millisecond to every start.
"""

import _random
import os
import sys

from . import asyncloop

_steps = []


def prepare():
    """In the template, after the import."""
    modules = sys.modules
    if "random" in modules:
        # Its own at-fork handler is not run: see `atfork`.
        _steps.append(_renew_random)
    uuid = modules.get("uuid")
    if uuid is not None:
        # libuuid keeps clock sequence and node in memory that forks copy. Without it, `uuid1` takes
        # the node below and a new random clock sequence for every value.
        uuid._generate_time_safe = None
        uuid._last_timestamp = None
        _steps.append(_renew_uuid)
    if "numpy.random" in modules:
        _steps.append(_renew_numpy)
    if asyncloop.current() is not None:
        _steps.append(_renew_loop)


def renew():
    """In the child, before it says that it is ready."""
    for step in _steps:
        step()


def _renew_random():
    generator = sys.modules["random"]._inst
    # The method of the C class: what `seed()` comes to without an argument.
    _random.Random.seed(generator)
    generator.gauss_next = None


def _renew_uuid():
    # A random node has the multicast bit set (RFC 9562, section 6.10).
    node = int.from_bytes(os.urandom(6), "big") | 1 << 40
    sys.modules["uuid"]._node = node


def _renew_numpy():
    sys.modules["numpy.random"].seed()


def _renew_loop():
    loop = asyncloop.current()
    if loop is not None and not loop.is_closed() and hasattr(loop, "_selector"):
        asyncloop.renew(loop)
