"""`context.chain`: what a handler can do with the other members of its chain."""

import json

from hearth_runtime import ChainError as _Failed

from . import payload as _json


class ChainError(Exception):
    """A call that has no result. `error_type` says why; `error` is the other member's own error, as
    Lambda shapes it, if that member failed.
    """

    def __init__(self, error_type, message, error):
        super().__init__(message)
        self.error_type = error_type
        self.error = error


class Chain:
    """The chain that this instance is a member of."""

    __slots__ = ("_channel",)

    def __init__(self, channel):
        self._channel = channel

    def call(self, member, payload=None):
        """Calls a member with any JSON value, waits, and returns its result. Raises `ChainError`."""
        return self._result(self._begin(member, payload))

    async def call_async(self, member, payload=None):
        """The same; calls that are gathered are under way at the same time."""
        import asyncio

        call = self._begin(member, payload)
        # Lets the others begin before this one waits.
        await asyncio.sleep(0)
        return self._result(call)

    def send(self, member, payload=None):
        """Passes the request on now, to the member's next place on the route. What the handler returns
        goes nowhere.
        """
        translated(self._channel.chain_send, member, _json.encode(payload))

    def respond(self, payload=None):
        """Ends the request with this result now. What the handler returns goes nowhere."""
        translated(self._channel.chain_respond, _json.encode(payload))

    def _begin(self, member, payload):
        return translated(self._channel.chain_call, member, _json.encode(payload))

    def _result(self, call):
        return _json.decode(translated(self._channel.chain_result, call))


def translated(function, *arguments):
    """Calls the native half; its error as a `ChainError`."""
    try:
        return function(*arguments)
    except _Failed as failed:
        error_type, message, cause = failed.args
    raise ChainError(error_type, message, json.loads(cause) if cause else None)
