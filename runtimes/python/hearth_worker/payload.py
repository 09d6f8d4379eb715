"""JSON in and out, with Lambda's names for what cannot be said in it."""

import json
import sys

from .errors import Fault


def _default(value):
    # Lambda's own encoder takes decimals too: the DynamoDB client returns every number as one.
    decimal = sys.modules.get("decimal")
    if decimal is not None and isinstance(value, decimal.Decimal):
        return float(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_decode = json.JSONDecoder().decode
# What that calls between looking for blanks, before and behind, with a regular expression.
_scan = json.JSONDecoder().scan_once
_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default
).encode


def decode(text):
    """The event. Raises `Fault` when Python cannot hold it (nested too deep, an integer of
    thousands of digits).
    """
    try:
        try:
            value, end = _scan(text, 0)
            if end == len(text):
                return value
        except StopIteration:
            pass
        return _decode(text)
    except Exception as error:
        raise Fault("Runtime.UnmarshalError", f"Unable to unmarshal input: {error}") from None


def encode(value):
    """The result as JSON text. Raises `Fault` when JSON cannot say it, NaN, infinity and lone
    surrogates included.
    """
    try:
        text = _encode(value)
        if not text.isascii():
            # Lone surrogates: most readers of JSON refuse them, escaped or not.
            text.encode()
        return text
    except Exception as error:
        raise Fault("Runtime.MarshalError", f"Unable to marshal response: {error}") from None
