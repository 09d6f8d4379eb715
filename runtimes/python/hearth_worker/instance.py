"""An instance: a fork of the template, or the template itself, that serves one request at a time until it is killed."""

import gc
import os
import sys

from hearth_runtime import ChannelError, read_json

from . import asyncloop, errors, http, logs, payload, streams
from .context import Context, announce_stream

# `RequestHead.trigger` of an HTTP request; every other trigger is answered with one JSON value.
TRIGGER_HTTP = 2
# That of a request of a chain, as all are of an instance that gets one.
TRIGGER_CHAIN = 6

# Exit statuses of an instance that could not start, and of one whose channel broke.
EXIT_START_FAILED = 1
EXIT_CHANNEL_BROKEN = 70

# What most handlers return. To find that such a type cannot be awaited takes Python longer: it
# writes the message of an error that nobody sees.
_VALUES = frozenset((dict, list, str, int, float, bool, type(None)))

# An event with a value of each kind.
_REHEARSED = b'{"text":"a","number":1,"list":[1.5,true,null],"headers":{"content-type":"text/plain"}}'


class Instance:
    """Made in the template, so that the child begins with everything at hand."""

    __slots__ = ("_handler", "_add_body")

    def __init__(self, handler, config):
        self._handler = handler
        self._add_body = http.add_bytes if config.get("body") == "bytes" else http.add_body
        Context.bind(config)

    def main(self, channel):
        """The child's whole life. Does not return."""
        announce_stream()
        if not channel.is_ready():
            self._start(channel)
        gc.enable()
        try:
            self._serve(channel)
        except BaseException:
            die(EXIT_CHANNEL_BROKEN)
        os._exit(0)

    def _start(self, channel):
        """Of a pre-forked instance, or of one with hooks to run before it can be ready."""
        try:
            hooks = after_restore()
            if not channel.is_wanted():
                _rehearse()
                # Without hooks there is nothing left to do before the first request.
                if hooks and not channel.wait_until_wanted():
                    os._exit(0)
            for hook, args, kwargs in hooks:
                hook(*args, **kwargs)
            channel.ready()
        except BaseException:
            die(EXIT_START_FAILED)

    def _serve(self, channel):
        """Answers requests until the server is gone."""
        receive, respond = channel.receive, channel.result
        begins, ended = channel.handler_begins, channel.handler_ended
        handler, flush = self._handler, streams.flush
        add_body = self._add_body
        decode, encode = payload.decode, payload.encode
        while True:
            request = receive()
            if request is None:
                return
            request_id, trigger, deadline_us, traceparent, event, unread, body = request
            value = None
            logs.request_id = request_id
            try:
                if unread is not None:
                    event = decode(unread)
                if trigger == TRIGGER_HTTP:
                    add_body(event, body)
                elif trigger == TRIGGER_CHAIN and Context.chain is None:
                    if channel.is_in_place():
                        break
                    _open_chain(channel)
                begins()
                value = handler(event, Context(request_id, deadline_us, traceparent))
                kind = type(value)
                if kind not in _VALUES and hasattr(kind, "__await__"):
                    value = asyncloop.run(value)
                if trigger == TRIGGER_HTTP:
                    http.respond(channel, value)
                else:
                    ended()
                    text = encode(value)
                    # What was printed must be in the pipe before the server sees the end of the
                    # response.
                    flush()
                    respond(text)
            except ChannelError:
                raise
            except BaseException as error:
                # SystemExit and KeyboardInterrupt too: they end the invocation, not the instance.
                ended()
                flush()
                channel.error(errors.to_json(errors.describe(error)))
            # Nothing of a request is kept while waiting for the next.
            request = event = unread = body = value = text = None
        # As all of this instance's requests from now on.
        event = unread = body = None
        _serve_blocks(channel, handler, request)


def _rehearse():
    """In a preforked, which has time: does what every request makes this process do, so that the pages
    are its own that the first request would have to copy. Nothing of the function's is called.
    """
    event = read_json(_REHEARSED)
    payload.encode(event)
    http.add_body(event, b"a")
    http.shape(event)
    http.shape({"statusCode": 200, "headers": event["headers"], "body": "a"})
    context = Context("", 0, None)
    context.get_remaining_time_in_millis()
    streams.flush()


def _open_chain(channel):
    """Imported by members of chains only."""
    from .chain import Chain

    Context.chain = Chain(channel)


def _serve_blocks(channel, handler, request):
    """Imported by members of chains only."""
    from . import blocks

    blocks.serve(channel, handler, request)


def after_restore():
    """The function's own hooks, in order of registration, as AWS documents."""
    hooks = sys.modules.get("snapshot_restore_py")
    return hooks.get_after_restore() if hooks is not None else ()


def die(status):
    """Leaves with the current exception in the function's log, without the template's exit
    handlers.
    """
    sys.excepthook(*sys.exc_info())
    streams.flush()
    os._exit(status)
