"""stdout and stderr: pipes to the server, which splits them into log lines."""

import sys

_out = _err = None


def setup():
    """Makes both streams line-buffered, so that a line reaches the log when it is written."""
    global _out, _err
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    _out, _err = sys.stdout, sys.stderr


def write_line(text):
    """Writes to the function's log, whatever the function has made of `sys.stdout`."""
    try:
        _out.write(text + "\n")
    except ValueError:
        # Closed.
        _repair()
        _out.write(text + "\n")


def flush():
    """Writes out what is buffered: before a fork, and before the end of a response.

    A function may have replaced or closed the streams; nothing it did there may cost it the
    response.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        if sys.stdout is not _out:
            _out.flush()
        if sys.stderr is not _err:
            _err.flush()
    except BaseException:
        _repair()


def _repair():
    """Flushes what can be flushed and opens again what was closed."""
    global _out, _err
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
    _out = _reopened("stdout", 1, _out)
    _err = _reopened("stderr", 2, _err)


def _reopened(name, descriptor, stream):
    try:
        if not stream.closed:
            stream.flush()
            return stream
        fresh = open(
            descriptor, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False
        )
    except BaseException:
        return stream
    if getattr(sys, name, None) is stream:
        setattr(sys, name, fresh)
    return fresh
