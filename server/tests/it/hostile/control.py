import json
import select
import socket
import struct
import threading

# The template's control socket, as long as the import lasts, and a copy for the instances.
control = socket.socket(fileno=os.dup(3))


def say(text):
    control.send(text if isinstance(text, bytes) else json.dumps(text).encode())


def garbage():
    """Whatever the server hears next comes from here."""
    control.setblocking(False)
    # On a busy host, it may not have heard all of the lies.
    select.select([], [control], [], 3)
    sent = 0
    for message in (b"}{", b"\0" * 1000, b"[" * 100_000, b"x" * 190_000, b'{"type":"booted"}', b'{"type":"nonsense"}'):
        sent += attempt(say, message) == "done"
    return sent


def lies():
    """Reports of exits that were none, of forks that failed, for every number there is."""
    control.setblocking(False)
    said = 0
    for number in range(5000):
        said += attempt(say, {"type": "exited", "pid": number, "code": 0}) == "done"
        said += attempt(say, {"type": "fork_failed", "seq": number, "message": "no"}) == "done"
        if number % 100 == 0:
            time.sleep(0.001)
    return said > 0


def steal():
    """Reads the server's next commands away from the template."""
    threading.Thread(target=lambda: [control.recv(100) for _ in iter(int, 1)], daemon=True).start()
    time.sleep(0.1)
    return "stealing"


def ready_socket():
    """Garbage on the socket that said READY."""
    results = {}
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number < 3 or number == control.fileno():
            continue
        try:
            other = socket.socket(fileno=os.dup(number))
        except OSError:
            continue
        other.setblocking(False)
        for _ in range(1000):
            results["last"] = attempt(other.send, b"R" + struct.pack("<I", 1) * 100)
            if results["last"] != "done":
                break
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", 0))]
        results["rights"] = attempt(other.sendmsg, [b"R"], rights)
    return results
