import ctypes
import errno
import json
import os
import signal
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)


def attempt(action, *args, **kwargs):
    """What an attempt ended with: the error's name, or "done"."""
    try:
        action(*args, **kwargs)
        return "done"
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    except Exception as error:
        return type(error).__name__


def nothing():
    return "nothing happened"


def handler(event, context):
    if "requestContext" in event:
        event = json.loads(event["body"])
    arguments = {name: value for name, value in event.items() if name != "attack"}
    if "context" in globals()[event["attack"]].__code__.co_varnames:
        arguments["context"] = context
    return globals()[event["attack"]](**arguments)
