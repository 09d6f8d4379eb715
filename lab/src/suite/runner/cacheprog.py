"""GOCACHEPROG: a build cache in two layers, `cacheprog.py FRONT BACK`.

FRONT is written to and looked up first. BACK is a cache that cmd/go has written (GOCACHE) and is never changed. Both have cmd/go's own form:
XX/ACTION-a is "v1 ACTION OUTPUT SIZE TIME", and XX/OUTPUT-d the output itself.
"""

import base64
import json
import os
import sys
import tempfile
import time


def path(cache, number, kind):
    return os.path.join(cache, number[:2], f"{number}-{kind}")


def look_up(cache, action):
    """The entry of an action, or None."""
    try:
        with open(path(cache, action, "a"), encoding="ascii") as file:
            version, of, output, size, _ = file.read().split()
        found = path(cache, output, "d")
        if version != "v1" or of != action or os.path.getsize(found) != int(size):
            return None
    except (OSError, ValueError):
        return None
    return {"OutputID": coded(output), "Size": int(size), "DiskPath": found}


def coded(number):
    return base64.b64encode(bytes.fromhex(number)).decode("ascii")


def store(cache, name, content):
    """Whole or not at all, whoever else writes it."""
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(name), delete=False) as file:
        file.write(content)
    os.rename(file.name, name)


def put(cache, action, output, content):
    found = path(cache, output, "d")
    store(cache, found, content)
    entry = f"v1 {action} {output} {len(content):>20} {time.time_ns():>20}\n"
    store(cache, path(cache, action, "a"), entry.encode("ascii"))
    return found


def number(request, *names):
    for name in names:
        if request.get(name):
            return base64.b64decode(request[name]).hex()
    return ""


def answer(request, body, front, back):
    command, action = request["Command"], number(request, "ActionID")
    if command == "get":
        return look_up(front, action) or look_up(back, action) or {"Miss": True}
    if command == "put":
        return {"DiskPath": put(front, action, number(request, "OutputID", "ObjectID"), body)}
    return {}


def main(front, back):
    # Lines: cmd/go puts empty ones between its requests and bodies.
    lines = filter(None, (line.strip() for line in sys.stdin.buffer))

    def say(message):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    say({"ID": 0, "KnownCommands": ["get", "put", "close"]})
    for line in lines:
        request = json.loads(line)
        body = base64.b64decode(json.loads(next(lines))) if request.get("BodySize") else b""
        try:
            say({"ID": request["ID"], **answer(request, body, front, back)})
        except OSError as error:
            say({"ID": request["ID"], "Err": str(error)})
        if request["Command"] == "close":
            return


if __name__ == "__main__":
    main(*sys.argv[1:3])
