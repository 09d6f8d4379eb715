"""Hooks around the snapshot a function is started from, with the interface of AWS's module of this
name.

The snapshot is the template: "before" hooks run in it once, last registered first, when the
function has been imported; "after" hooks run in every instance that is forked from it, first
registered first, before it takes a request. Each function can be used as a decorator.
"""

_before_snapshot = []
_after_restore = []


def register_before_snapshot(func, *args, **kwargs):
    """Calls `func(*args, **kwargs)` once, before the function is ready. An exception fails the
    deployment.
    """
    _before_snapshot.append((func, args, kwargs))
    return func


def register_after_restore(func, *args, **kwargs):
    """Calls `func(*args, **kwargs)` in every new instance. An exception fails that start."""
    _after_restore.append((func, args, kwargs))
    return func


def get_before_snapshot():
    """The registered hooks as (function, arguments, keyword arguments), in order of registration.
    """
    return _before_snapshot


def get_after_restore():
    """The registered hooks as (function, arguments, keyword arguments), in order of registration.
    """
    return _after_restore
