import ctypes
import json
import os
import random
import subprocess
import sys
import time
import uuid

from snapshot_restore_py import register_after_restore, register_before_snapshot

ran = []
register_before_snapshot(ran.append, "before")
register_after_restore(ran.append, "after")
libc = ctypes.CDLL(None)


def talk(n):
    print("print", n)
    print("error", n, file=sys.stderr)
    os.write(1, b"descriptor %d\n" % n)
    subprocess.run(["/bin/sh", "-c", "echo child $0; echo child error $0 >&2", str(n)])
    print("no newline", n, end="")


def hog(_):
    kept = []
    while True:
        kept.append(bytearray(1 << 20))


def spin(_):
    while True:
        pass


def cycle(_):
    kept = []
    kept.append(kept)
    return kept


def raises(text):
    raise ValueError(text)


def page(status):
    return {"statusCode": status, "headers": {"x-one": "1"}, "cookies": ["a=1", "b=2"], "body": "page"}


def binary(_):
    return {"statusCode": 200, "headers": {"content-type": "image/png"}, "body": "iVBORw==", "isBase64Encoded": True}


def stream(pieces):
    def body():
        for n in range(pieces):
            yield f"{n}\n"

    return {"statusCode": 200, "headers": {"content-type": "text/plain"}, "body": body()}


async def later(ms):
    import asyncio

    await asyncio.sleep(ms / 1000)
    return "later"


def context_fields(_, context):
    return {
        "name": context.function_name,
        "version": context.function_version,
        "memory": str(context.memory_limit_in_mb),
        "id": context.aws_request_id,
        "arn": context.invoked_function_arn,
        "group": context.log_group_name,
        "stream": context.log_stream_name,
        "left": context.get_remaining_time_in_millis(),
        "traceparent": context.traceparent,
    }


does = {
    "echo": lambda value: value,
    "nothing": lambda _: None,
    "large": lambda n: "x" * n,
    "later": later,
    "sleep": lambda ms: time.sleep(ms / 1000),
    "env": lambda _: dict(os.environ),
    "hooks": lambda _: ran,
    "random": lambda _: [random.random(), str(uuid.uuid4()), os.urandom(8).hex(), os.getpid()],
    "talk": talk,
    "raise": raises,
    "cycle": cycle,
    "exit": lambda code: os._exit(code),
    "signal": lambda number: os.kill(os.getpid(), number),
    "spin": spin,
    "hog": hog,
    "write": lambda path: open(path, "w").close(),
    "run": lambda argv: subprocess.run(argv, capture_output=True, text=True).stdout,
    "page": page,
    "binary": binary,
    "stream": stream,
}


def handler(event, context):
    if "requestContext" in event:
        request = event
        event = json.loads(event["queryStringParameters"]["event"])
        if event["do"] == "request":
            return {name: request.get(name) for name in ("rawPath", "headers", "body", "isBase64Encoded")}
    if event["do"] == "context":
        return context_fields(event["with"], context)
    return does[event["do"]](event["with"])
