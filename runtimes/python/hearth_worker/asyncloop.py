"""The instance's one event loop: created for the first awaitable, kept between requests."""

import sys

_loop = None


def run(awaitable):
    """Runs `awaitable` on the instance's loop and returns its result."""
    global _loop
    if _loop is None or _loop.is_closed():
        import asyncio

        # A loop that the module got while it was imported has been renewed by `renew`: what it
        # bound to it works on.
        _loop = current()
        if _loop is None or _loop.is_closed() or _loop.is_running():
            # One that is running, a thread of the import has.
            _loop = asyncio.new_event_loop()
            asyncio.set_event_loop(_loop)
    return _loop.run_until_complete(awaitable)


async def drain(pieces, send):
    """Passes every piece of an asynchronous iterator to `send`, which may block: that is the
    back-pressure.
    """
    try:
        async for piece in pieces:
            send(piece)
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


def current():
    """The loop that is set for the main thread, or None. Never makes one, as
    `asyncio.get_event_loop` would.
    """
    events = sys.modules.get("asyncio.events")
    policy = getattr(events, "_event_loop_policy", None)
    return getattr(getattr(policy, "_local", None), "_loop", None)


def renew(loop):
    """Gives a loop that was inherited from the template descriptors of its own.

    The kernel shares an epoll set between parent and children: one instance would be woken for
    another's sockets. asyncio has no public way to renew it; these names have been the same in
    every version so far.
    """
    import selectors

    shared = loop._selector
    fresh = selectors.DefaultSelector()
    for key in list(shared.get_map().values()):
        if key.fileobj != loop._ssock.fileno():
            fresh.register(key.fileobj, key.events, key.data)
    loop._selector = fresh
    shared.close()
    loop._ssock.close()
    loop._csock.close()
    loop._internal_fds -= 1
    loop._make_self_pipe()
