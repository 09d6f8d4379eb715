"""Resets what forks must not share: random state, identifiers, event loops.

The template determines once what to reset (`steps`); each instance then runs only these steps, as
far as possible without Python code, because a start copies every page it touches. Nothing is needed
for `secrets` and `os.urandom`, which ask the kernel, for `tempfile`, which checks the process id, or
for `ssl`: OpenSSL (1.1.1 and later) reseeds its generators in a new process. Doing that ahead would
add more than a millisecond to every start.
"""

import _random
import os
import sys

from . import asyncloop

_RUST_OPENSSL = "cryptography.hazmat.bindings._rust"
_SEED_BYTES = 32


def steps():
    """In the template, after the import: what to call in every instance before it says that it is ready. Generators of the
    function's own are for `drawn`.
    """
    modules, found = sys.modules, []
    if "random" in modules:
        # Its own at-fork handler is not run: see `atfork`. This is what `seed()` comes to: the method
        # of the C class, and no value left over from before.
        generator = modules["random"]._inst
        generator.gauss_next = None
        found.append(_random.Random.seed.__get__(generator))
    uuid = modules.get("uuid")
    if uuid is not None:
        # libuuid keeps clock sequence and node in memory that forks copy. Without it, `uuid1` takes
        # the node below and a new random clock sequence for every value.
        uuid._generate_time_safe = None
        uuid._last_timestamp = None
        found.append(_renew_uuid)
    if "numpy.random" in modules:
        found.append(modules["numpy.random"].seed)
    process = getattr(modules.get("multiprocessing.process"), "_current_process", None)
    if hasattr(process, "_config") and "authkey" in process._config:
        found.append(_renew_authkey)
    return found


def steps_of_fork():
    """What to call besides in a child. What is restored or booted has its descriptors for itself, and a thread of the
    import may be running the loop.
    """
    return [] if asyncloop.current() is None else [_renew_loop]


def _renew_uuid():
    # A random node has the multicast bit set (RFC 9562, section 6.10).
    node = int.from_bytes(os.urandom(6), "big") | 1 << 40
    sys.modules["uuid"]._node = node


def _renew_authkey():
    process = sys.modules["multiprocessing.process"]._current_process
    process._config["authkey"] = type(process._config["authkey"])(os.urandom(32))


def steps_without_fork():
    """What to call besides in a template that becomes an instance itself: it has the process id that it had, or that it
    was dumped with.
    """
    bundled = getattr(sys.modules.get(_RUST_OPENSSL), "_openssl", None)
    add = getattr(getattr(bundled, "lib", None), "RAND_add", None)
    # The package `cryptography` has an OpenSSL of its own inside, which no symbol leads to.
    return [] if add is None else [lambda: add(os.urandom(_SEED_BYTES), _SEED_BYTES, _SEED_BYTES)]


def _renew_loop():
    loop = asyncloop.current()
    if loop is not None and not loop.is_closed() and hasattr(loop, "_selector"):
        asyncloop.renew(loop)
