"""JSON in and out, with Lambda's error names for values that JSON cannot represent."""

import json
import sys

from hearth_runtime import write_json

from .errors import Fault


def _default(value):
    # Lambda's own encoder takes decimals too: the DynamoDB client returns every number as one.
    decimal = sys.modules.get("decimal")
    if decimal is not None and isinstance(value, decimal.Decimal):
        return float(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default
).encode


def decode(text):
    """An event that the channel leaves to `json`, as str. Raises `Fault` when Python cannot hold it
    (nested too deep, an integer of thousands of digits).
    """
    try:
        return json.loads(text)
    except Exception as error:
        raise Fault("Runtime.UnmarshalError", f"Unable to unmarshal input: {error}") from None


def encode(value):
    """The result as JSON text, UTF-8. Raises `Fault` when JSON cannot say it, NaN, infinity and
    lone surrogates included: most readers of JSON refuse them, escaped or not.
    """
    text = write_json(value)
    if text is not None:
        return text
    try:
        return _encode(value).encode()
    except Exception as error:
        raise Fault("Runtime.MarshalError", f"Unable to marshal response: {error}") from None
