"""Exceptions in AWS Lambda's shape: `{"errorType", "errorMessage", "stackTrace"}`."""

import json
import sys

# Limits of one error report. It must fit one datagram of the control socket and a frame or two of
# the ring, and it is stored with the invocation.
MESSAGE_BYTES = 16 * 1024
ENTRY_BYTES = 512
TYPE_BYTES = 256
FRAMES = 100
CAUSES = 8
REPORT_BYTES = 60 * 1024
# Longest part of a source line that is looked at.
SOURCE_LINE_BYTES = 4096

_OWN_DIR = __file__.rpartition("/")[0].rpartition("/")[0] + "/"
_IMPORTER = "<frozen importlib"


class Fault(Exception):
    """A failure with a type of its own (`Runtime.…`), found by the runtime and not raised by the
    function.
    """

    def __init__(self, error_type, message):
        super().__init__(message)
        self.error_type = error_type


def describe(error):
    """The report of `error`. Never raises: leaves out what it cannot read (memory, a
    failing `__str__`).
    """
    try:
        return {
            "errorType": _type_name(error),
            "errorMessage": _clip(_message(error), MESSAGE_BYTES),
            "stackTrace": _stack(error),
        }
    except BaseException:
        name = type(error).__name__[:TYPE_BYTES]
        return {"errorType": name, "errorMessage": "", "stackTrace": []}


def to_json(report):
    """The report as JSON text of at most `REPORT_BYTES`, give or take what describes the cut."""
    text = json.dumps(report, ensure_ascii=False)
    if len(text.encode()) > REPORT_BYTES:
        error = report.get("error", report)
        error["errorMessage"] = _clip(error["errorMessage"], MESSAGE_BYTES // 8)
        error["stackTrace"] = error["stackTrace"][:4] + ["  (cut)\n"] + error["stackTrace"][-4:]
        text = json.dumps(report, ensure_ascii=False)
    return text


def _type_name(error):
    if isinstance(error, Fault):
        return error.error_type
    return _clip(type(error).__name__, TYPE_BYTES)


def _message(error):
    try:
        return str(error)
    except BaseException as failure:
        return f"<exception str() failed: {type(failure).__name__}>"


def _clip(text, limit):
    """`text` as valid UTF-8 of at most `limit` bytes and a note when it was longer."""
    data = text[: limit + 1].encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return data.decode()
    return data[:limit].decode("utf-8", "ignore") + " … (cut)"


def _stack(error):
    """Frames of the function's own code, outermost first, then those of the causes under a line
    that names them.
    """
    entries = []
    seen = set()
    heading = None
    while error is not None and id(error) not in seen and len(seen) < CAUSES:
        seen.add(id(error))
        if heading is not None:
            entries.append(_clip(f"{heading}: {_type_name(error)}: {_message(error)}", ENTRY_BYTES))
        entries += [_entry(code, line) for code, line in _frames(error.__traceback__)]
        if isinstance(error, SyntaxError):
            entries.append(_syntax_entry(error))
        heading, error = _cause(error)
    if len(entries) > FRAMES:
        half = FRAMES // 2
        left_out = len(entries) - 2 * half
        entries[half:-half] = [f"  ({left_out} frames left out)\n"]
    return entries


def _cause(error):
    if error.__cause__ is not None:
        return "Caused by", error.__cause__
    if error.__suppress_context__ or isinstance(error, Fault):
        return None, None
    return "While handling", error.__context__


def _frames(traceback):
    """(code, line number) of each frame that is neither Hearth's, nor the importer's, nor, before
    the first of the function's frames, the event loop's.
    """
    frames = []
    event_loop = _event_loop_dir()
    while traceback is not None:
        code = traceback.tb_frame.f_code
        name = code.co_filename
        inner = name.startswith(_OWN_DIR) or name.startswith(_IMPORTER)
        if not inner and (frames or not name.startswith(event_loop)):
            frames.append((code, traceback.tb_lineno))
            if len(frames) > FRAMES * 100:
                # Deep recursion: the ends tell the story, keep the list from growing with it.
                del frames[FRAMES:-FRAMES]
        traceback = traceback.tb_next
    return frames


def _event_loop_dir():
    module = sys.modules.get("asyncio")
    path = getattr(module, "__file__", None)
    # No file name begins with a NUL.
    return path.rpartition("/")[0] + "/" if path else "\0"


def _entry(code, line):
    entry = f'  File "{code.co_filename}", line {line}, in {code.co_name}\n'
    source = _source_line(code.co_filename, line)
    if source:
        entry += f"    {source}\n"
    return _clip(entry, ENTRY_BYTES)


def _syntax_entry(error):
    entry = f'  File "{error.filename}", line {error.lineno}\n'
    if error.text:
        text = error.text.rstrip("\n")
        stripped = text.lstrip()
        entry += f"    {stripped}\n"
        column = (error.offset or 0) - 1 - (len(text) - len(stripped))
        if 0 <= column <= len(stripped):
            entry += " " * (4 + column) + "^\n"
    return _clip(entry, ENTRY_BYTES)


def _source_line(path, number):
    """The line of a file, stripped. Read here because the standard modules for it would cost every
    fork their pages.
    """
    try:
        with open(path, "rb") as file:
            for _ in range(number - 1):
                while (part := file.readline(SOURCE_LINE_BYTES)) and not part.endswith(b"\n"):
                    pass
            return file.readline(SOURCE_LINE_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
