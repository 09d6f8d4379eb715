"""What siblings must not share: random state, identifiers, event loops.

The template finds out once what there is to renew (`prepare`); each instance then runs only those steps (`renew`).
`random` needs nothing here (it registers its own at-fork handler), nor do `secrets`, `os.urandom` and `tempfile`, which
ask the kernel or look at the process id.
"""

import os
import sys

from . import asyncloop

_steps = []


def prepare():
    """In the template, after the import."""
    modules = sys.modules
    uuid = modules.get("uuid")
    if uuid is not None:
        # libuuid keeps clock sequence and node in memory that forks copy. Without it, `uuid1` takes the node below and
        # a new random clock sequence for every value.
        uuid._generate_time_safe = None
        uuid._last_timestamp = None
        _steps.append(_renew_uuid)
    if "numpy.random" in modules:
        _steps.append(_renew_numpy)
    if "_ssl" in modules:
        _steps.append(_renew_ssl)
    if asyncloop.current() is not None:
        _steps.append(_renew_loop)


def renew():
    """In the child, before it says that it is ready."""
    for step in _steps:
        step()


def _renew_uuid():
    # A random node has the multicast bit set (RFC 9562, section 6.10).
    node = int.from_bytes(os.urandom(6), "big") | 1 << 40
    sys.modules["uuid"]._node = node


def _renew_numpy():
    sys.modules["numpy.random"].seed()


def _renew_ssl():
    # OpenSSL notices the fork by itself; this does not depend on how.
    sys.modules["_ssl"].RAND_add(os.urandom(32), 32.0)


def _renew_loop():
    loop = asyncloop.current()
    if loop is not None and not loop.is_closed() and hasattr(loop, "_selector"):
        asyncloop.renew(loop)
