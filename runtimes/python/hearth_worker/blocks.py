"""A member of a chain whose handler has payloads in place: `payload: "block"`.

The handler is called with a memoryview of the payload. What is in the block when it returns is the result: as many bytes as came,
or as many as it returns. It may also return bytes, which are copied to the block. When the request is passed on, the views
are released.
"""

from hearth_runtime import ChannelError

from . import asyncloop, errors, logs, streams
from .chain import Chain, translated
from .context import Context


class BlockChain(Chain):
    """The chain, for such a handler. A payload is None (what is there), a number of bytes (what was written there), or bytes."""

    __slots__ = ()

    @property
    def block(self):
        """The whole block that the request lies in, a memoryview: as long as a result may be."""
        return translated(self._channel.chain_block)

    def allocate(self, size=0):
        """A whole block for the payload of a call, a memoryview, or as many blocks as `size` bytes take. A call with a slice from
        its beginning copies nothing, and neither does its result if it fits there.
        """
        return translated(self._channel.chain_allocate, size)

    def send(self, member, payload=None):
        translated(self._channel.chain_send_block, member, payload)

    def respond(self, payload=None):
        translated(self._channel.chain_respond_block, payload)

    def _begin(self, member, payload):
        return translated(self._channel.chain_call_block, member, payload)

    def _result(self, call):
        return translated(self._channel.chain_result_block, call)


def serve(channel, handler, request):
    """Answers this request and those after it, until the server is gone."""
    Context.chain = BlockChain(channel)
    receive, begins, ended = channel.receive, channel.handler_begins, channel.handler_ended
    pass_on, flush = channel.pass_block, streams.flush
    while request is not None:
        request_id, _, deadline_us, traceparent, payload, _, _ = request
        logs.request_id = request_id
        request = value = failure = None
        try:
            begins()
            value = handler(payload, Context(request_id, deadline_us, traceparent))
            if value is not None and hasattr(type(value), "__await__"):
                value = asyncloop.run(value)
            ended()
            # What was printed must be in the pipe before the server sees the end of the request.
            flush()
            payload = None
            pass_on(value)
        except ChannelError:
            raise
        except BaseException as error:
            ended()
            failure = errors.to_json(errors.describe(error))
        # The views that an error had in its frames are gone with it.
        payload = value = None
        if failure is not None:
            flush()
            channel.error(failure)
        request = receive()
