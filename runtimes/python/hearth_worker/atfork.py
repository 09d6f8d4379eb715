"""At-fork handlers, and which of them an instance needs.

`os.fork` runs every handler that `os.register_at_fork` was given, in the parent and in the child.
Those of the standard library put locks and thread records in order that a thread which the child
has not got may have held; running them touches a few hundred pages, which the child then has to
copy: more than half of what a start costs. Where the template has a single thread there is nothing
for them to put in order, so it forks without them. The handlers of everybody else are run as
`os.fork` would, and what the library's own do besides (seeding `random`) is in `renewal`.

What a function forks itself is not concerned: every handler is registered with the interpreter as
well.
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
