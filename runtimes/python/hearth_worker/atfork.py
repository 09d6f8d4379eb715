"""At-fork handlers, and which of them an instance needs.

`os.fork` runs every handler that `os.register_at_fork` was given, in the parent and in the child.
Those of the standard library reset locks and thread records that threads missing in the child may
have held; running them touches a few hundred pages, which the child then has to copy: more than half
of the cost of a start. A template with a single thread has nothing to reset, so it forks without
them. All other handlers run as `os.fork` would run them, and what else the library's handlers do
(seeding `random`) is in `renewal`.

Forks made by the function itself are not affected: every handler is registered with the interpreter
as well.
"""

import os
import posix
import sys

_register = posix.register_at_fork
_handlers = []


def install():
    """Begins to keep account of handlers. To be called before anything registers one."""
    posix.register_at_fork = os.register_at_fork = _recording


def foreign():
    """The handlers that are not the standard library's, each kind in the order in which it has to
    run: before the fork, in the child, in the parent.
    """
    before, in_child, in_parent = [], [], []
    for handlers in _handlers:
        if not _is_locking(handlers.get("after_in_child")):
            before.append(handlers.get("before"))
            in_child.append(handlers.get("after_in_child"))
            in_parent.append(handlers.get("after_in_parent"))
    before.reverse()
    return tuple([call for call in kind if call] for kind in (before, in_child, in_parent))


def _recording(**handlers):
    # The interpreter first: it refuses what is no handler.
    _register(**handlers)
    _handlers.append(handlers)


def _is_locking(handler):
    """Whether this is a handler of the standard library's for what only further threads can have
    left in disorder, or the one that seeds `random`.
    """
    if handler is None:
        return False
    owner = getattr(handler, "__self__", None)
    for module, name, attribute in (
        ("threading", "_after_fork", handler),
        ("logging", "_after_at_fork_child_reinit_locks", handler),
        ("concurrent.futures.thread", "_global_shutdown_lock", owner),
        ("random", "_inst", owner),
    ):
        theirs = getattr(sys.modules.get(module), name, None)
        if theirs is not None and theirs is attribute:
            return True
    return False
