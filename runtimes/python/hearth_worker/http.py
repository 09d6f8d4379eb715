"""The HTTP trigger: events and responses of Lambda function URLs, payload format 2.0."""

import json

from . import asyncloop, payload, streams
from .errors import Fault

# Of one RESPONSE_HEAD frame: protects the server from headers no client would take.
HEAD_BYTES = 64 * 1024

_JSON = "application/json"
_BINARY = "application/octet-stream"
_BARE_HEAD = '{"statusCode":200,"headers":[["content-type","application/json"]]}'

# What most bodies are, and no stream is.
_WHOLE = frozenset((str, bytes, dict, list, int, float, bool, type(None)))
_TEXTUAL = frozenset(
    (_JSON, "application/xml", "application/javascript", "application/x-www-form-urlencoded")
)
# Characters of a header's name (`token`, RFC 9110 section 5.6.2).
_TOKEN = frozenset(
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)


def add_bytes(event, body):
    """Adds `body` as it came: of a function that has it so."""
    event["isBase64Encoded"] = False
    if body:
        event["body"] = body


def add_body(event, body):
    """Adds `body` and `isBase64Encoded` to the event: text when the content type says so and the
    bytes are UTF-8.
    """
    event["isBase64Encoded"] = False
    if not body:
        return
    if _is_textual(event.get("headers") or {}):
        try:
            event["body"] = body.decode()
            return
        except UnicodeDecodeError:
            pass
    import binascii

    event["body"] = binascii.b2a_base64(body, newline=False).decode("ascii")
    event["isBase64Encoded"] = True


def _is_textual(headers):
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return (
        media_type in _TEXTUAL
        or media_type.startswith("text/")
        or (media_type.startswith("application/") and media_type.endswith("+json"))
    )


def respond(channel, value):
    """Sends what the handler returned. Raises `Fault` when it is no valid response and nothing was
    sent yet.
    """
    if not _is_streamed(value):
        channel.handler_ended()
    head, body = shape(value)
    if isinstance(body, (str, bytes)):
        streams.flush()
        channel.respond(head, body)
    else:
        _stream(channel, head, body)


def shape(value):
    """(head, body) of a handler's result: the head as JSON text, the body as str, bytes or an
    iterator of pieces.

    A dict with `statusCode` is a whole response, an iterator is a body that is still being made,
    and anything else is the body, as JSON.
    """
    if isinstance(value, dict) and "statusCode" in value:
        return _shape_response(value)
    if _is_stream(value):
        return _head(200, [["content-type", _BINARY]]), value
    return _BARE_HEAD, payload.encode(value)


def _shape_response(value):
    status = _status(value["statusCode"])
    headers = _headers(value.get("headers"))
    body, content_type = _body(value.get("body"), value.get("isBase64Encoded"))
    if not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(["content-type", content_type])
    cookies = value.get("cookies")
    if cookies is not None:
        if not isinstance(cookies, (list, tuple)):
            raise _invalid("cookies", cookies, "a list of strings")
        headers.extend(["set-cookie", _header_value("cookies", cookie)] for cookie in cookies)
    return _head(status, headers), body


def _status(status):
    if isinstance(status, str) and status.isdecimal() and len(status) == 3:
        status = int(status)
    if type(status) is bool or not isinstance(status, int) or not 200 <= status <= 599:
        raise _invalid("statusCode", status, "an integer from 200 to 599")
    return int(status)


def _headers(headers):
    if headers is None:
        return []
    if not isinstance(headers, dict):
        raise _invalid("headers", headers, "an object")
    pairs = []
    for name, value in headers.items():
        if not isinstance(name, str) or not name or not _TOKEN.issuperset(name):
            raise _invalid("a header's name", name, "a token of RFC 9110")
        if isinstance(value, (list, tuple)):
            value = ",".join(_header_value(name, part) for part in value)
        else:
            value = _header_value(name, value)
        pairs.append([name, value])
    return pairs


def _header_value(name, value):
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if not isinstance(value, str) or not value.replace("\t", " ").isprintable():
        raise _invalid(f"header '{name}'", value, "printable text, a number or a boolean")
    return value


def _body(body, is_base64):
    """The body and the content type it has when the response names none."""
    if is_base64 is not None and not isinstance(is_base64, bool):
        raise _invalid("isBase64Encoded", is_base64, "a boolean")
    if body is None:
        return b"", _JSON
    if isinstance(body, str):
        return (_base64(body), _BINARY) if is_base64 else (body, _JSON)
    if isinstance(body, (bytes, bytearray, memoryview)):
        return (_base64(bytes(body)) if is_base64 else bytes(body)), _BINARY
    if is_base64:
        raise _invalid("body", body, "text or bytes when isBase64Encoded is true")
    if _is_stream(body):
        return body, _BINARY
    return payload.encode(body), _JSON


def _base64(text):
    import binascii

    # Encoders that wrap lines are common; any other stray character is a mistake.
    separator = "" if isinstance(text, str) else b""
    try:
        return binascii.a2b_base64(separator.join(text.split()), strict_mode=True)
    except ValueError as error:
        raise Fault("Runtime.InvalidResponse", f"body is not valid base64: {error}") from None


def _is_streamed(value):
    """Whether the handler goes on while its answer is sent: then its first piece is its end."""
    if isinstance(value, dict):
        value = value.get("body") if "statusCode" in value else None
    return type(value) not in _WHOLE and _is_stream(value)


def _is_stream(value):
    kind = type(value)
    return hasattr(kind, "__next__") or hasattr(kind, "__aiter__")


def _head(status, headers):
    head = json.dumps({"statusCode": status, "headers": headers}, ensure_ascii=False)
    if len(head.encode()) > HEAD_BYTES:
        raise Fault(
            "Runtime.InvalidResponse", f"the response's headers are longer than {HEAD_BYTES} bytes"
        )
    return head


def _invalid(field, value, rule):
    shown = repr(value)
    if len(shown) > 100:
        shown = shown[:100] + "…"
    return Fault("Runtime.InvalidResponse", f"{field} is {shown}: it must be {rule}")


def _stream(channel, head, pieces):
    """Sends pieces as they come. The head goes with the first, so that a body that fails at once is
    a clean error.
    """
    started = False

    def send(piece):
        nonlocal started
        if isinstance(piece, str):
            piece = piece.encode()
        elif isinstance(piece, (bytearray, memoryview)):
            piece = bytes(piece)
        elif not isinstance(piece, bytes):
            raise _invalid("a piece of the body", piece, "text or bytes")
        if not piece:
            return
        if not started:
            started = True
            channel.head(head)
        channel.piece(piece)

    if hasattr(type(pieces), "__aiter__"):
        asyncloop.run(asyncloop.drain(pieces, send))
    else:
        try:
            for piece in pieces:
                send(piece)
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()
    streams.flush()
    if started:
        channel.end()
    else:
        channel.respond(head, b"")
