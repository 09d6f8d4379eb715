import socket
import urllib.request


def families():
    results = {}
    for name, arguments in {
        "tcp": (2, 1), "udp": (2, 2), "raw": (2, 3, 1), "tcp6": (10, 1), "udp6": (10, 2), "raw6": (10, 3, 58),
        "netlink": (16, 3, 0), "packet": (17, 3, 0x300), "vsock": (40, 1), "alg": (38, 5), "xdp": (44, 3),
        "bluetooth": (31, 3, 1), "tipc": (30, 1), "can": (29, 3, 1), "key": (15, 3, 2), "smc": (43, 1),
    }.items():
        results[name] = attempt(socket.socket, *arguments)
        results[name + "_pair"] = attempt(socket.socketpair, *arguments[:2])
    return results


def connect(url, abstract, path):
    """The server's own port, and Unix sockets that listen on the host."""
    local = socket.socket(socket.AF_UNIX)
    return {
        "url": attempt(urllib.request.urlopen, url, timeout=5),
        "name": attempt(socket.getaddrinfo, "example.com", 80),
        "abstract": attempt(local.connect, "\0" + abstract),
        "path": attempt(local.connect, path),
    }


def seen():
    """What /proc tells of the network: nothing but the own, empty namespace."""
    lines = {name: open("/proc/net/" + name).read().splitlines()[1:] for name in ("tcp", "tcp6", "udp", "unix", "route")
             if os.path.exists("/proc/net/" + name)}
    devices = [line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]]
    return {"sockets": lines, "devices": devices}


def own_sockets():
    """Unix sockets among the function's own processes work."""
    left, right = socket.socketpair()
    left.sendall(b"x")
    server = socket.socket(socket.AF_UNIX)
    server.bind("/tmp/own-socket")
    server.listen()
    socket.socket(socket.AF_UNIX).connect("/tmp/own-socket")
    return right.recv(1).decode()
