import fcntl
import socket
import struct


REFUSED = {
    "raw": (2, 3, 1), "raw6": (10, 3, 58), "raw udp": (2, 3, 17), "ping": (2, 2, 1), "ping6": (10, 2, 58),
    # Protocols of which the kernel would load the module.
    "sctp": (2, 1, 132), "sctp messages": (2, 5, 132), "mptcp": (2, 1, 262), "mptcp6": (10, 1, 262), "dccp": (2, 6, 33),
    "udplite": (2, 2, 136), "udplite6": (10, 2, 136), "l2tp": (2, 2, 115), "any": (2, 1, 200),
    "crossed": (2, 1, 17), "crossed back": (2, 2, 6), "obsolete packets": (2, 10, 0x300), "beyond the mask": (2, 1 | 1 << 20),
    "netlink generic": (16, 3, 16), "netlink netfilter": (16, 3, 12), "netlink xfrm": (16, 3, 6), "netlink diag": (16, 3, 4),
    "netlink audit": (16, 3, 9), "netlink datagrams": (16, 2, 0), "packet": (17, 3, 0x300), "packet datagrams": (17, 2, 0x300),
    "vsock": (40, 1), "alg": (38, 5), "xdp": (44, 3), "bluetooth": (31, 3, 1), "tipc": (30, 1), "can": (29, 3, 1),
    "key": (15, 3, 2), "smc": (43, 1), "rds": (21, 5), "qrtr": (42, 2), "rxrpc": (33, 2), "kcm": (41, 2), "x25": (9, 5),
    "ax25": (3, 5), "ipx": (4, 2), "appletalk": (5, 2), "netrom": (6, 5), "rose": (11, 5), "llc": (26, 1), "atm": (20, 2),
    "phonet": (35, 2), "ieee802154": (36, 2), "nfc": (39, 5), "mctp": (45, 2),
}
ALLOWED = {
    "tcp": (2, 1), "tcp by number": (2, 1, 6), "udp": (2, 2), "udp by number": (2, 2, 17), "tcp6": (10, 1),
    "tcp6 by number": (10, 1, 6), "udp6": (10, 2), "udp6 by number": (10, 2, 17), "routes": (16, 3, 0),
}


def families():
    refused = {name: attempt(made, libc.socket, *arguments) for name, arguments in REFUSED.items()}
    for name, arguments in (REFUSED | ALLOWED).items():
        refused[name + ", a pair"] = attempt(socket.socketpair, *arguments[:2])
    return {"refused": refused, "allowed": {name: attempt(made, libc.socket, *arguments) for name, arguments in ALLOWED.items()}}


def made(call, family, kind, protocol=0):
    """By the C library: Python would ask the kernel about a family first."""
    result = call(family, kind | socket.SOCK_CLOEXEC, protocol)
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    os.close(result)


def options():
    """What can be set on sockets is on a list."""
    results = {}
    for kind, made in {"tcp": socket.socket(), "udp": socket.socket(2, 2), "tcp6": socket.socket(10), "unix": socket.socket(1)}.items():
        for name, level, option in (
            ("attach filter", 1, 26), ("attach bpf", 1, 50), ("lock filter", 1, 44), ("reuseport cbpf", 1, 51),
            ("reuseport ebpf", 1, 52), ("bind to device", 1, 25), ("mark", 1, 36), ("busy poll", 1, 46), ("zerocopy", 1, 60),
            ("txtime", 1, 61), ("timestamping", 1, 37), ("forced buffer", 1, 32), ("ip tables", 0, 64), ("xfrm", 0, 17),
            ("multicast", 0, 35), ("ip options", 0, 4), ("transparent", 0, 19), ("ulp", 6, 31), ("md5", 6, 14), ("repair", 6, 19),
            ("congestion", 6, 13), ("ao", 6, 38), ("zerocopy receive", 6, 35), ("encapsulation", 17, 100), ("segments", 17, 103),
            ("ip6 tables", 41, 64), ("addrform", 41, 1), ("routing header", 41, 57), ("hop options", 41, 54),
            ("flow label", 41, 32), ("tls", 282, 1), ("netlink", 270, 1), ("another", 1, 1 << 20),
        ):
            results[f"{name} of {kind}"] = attempt(made.setsockopt, level, option, b"\0" * 16)
        results[f"asking for zerocopy of {kind}"] = attempt(made.getsockopt, 6, 35, 64)
    route = socket.socket(16, 3, 0)
    results["strict"] = attempt(route.setsockopt, 270, 12, 1)
    return results


def question(kind, body, flags=0x301):
    """What the kernel answers to a question about routes, devices and the like."""
    route = socket.socket(16, 3, 0)
    route.settimeout(5)
    route.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
    (code,) = struct.unpack("=i", route.recv(65536)[16:20])
    raise OSError(-code, "answered")


def changes():
    """Nothing of the network can be changed."""
    device = struct.pack("=BxHiII", 0, 1, 1, 0, 1)
    address = struct.pack("=BBBBI", 2, 24, 0, 0, 1) + struct.pack("=HH4B", 8, 2, 10, 0, 0, 1)
    results = {
        "new device": attempt(question, 16, struct.pack("=BxHiII", 0, 0, 0, 0, 0) + struct.pack("=HH", 4, 18), 0x605),
        "device down": attempt(question, 16, device, 5),
        "address": attempt(question, 20, address, 0x605),
        "route": attempt(question, 24, struct.pack("=8BI", 2, 0, 0, 0, 254, 3, 253, 1, 0) + struct.pack("=HHi", 8, 4, 1), 0x605),
        "neighbour": attempt(question, 28, struct.pack("=BxxxiHBB", 2, 1, 2, 0, 0), 0x605),
        "queue": attempt(question, 36, struct.pack("=BxxxiIII", 0, 1, 0x10000, 0xFFFFFFFF, 0), 0x605),
        "filter": attempt(question, 44, struct.pack("=BxxxiIII", 0, 1, 0, 0xFFFFFFFF, 0), 0x605),
        "name space": attempt(question, 88, struct.pack("=Bxxx", 0), 0x605),
    }
    for name in ("ipv4/ip_unprivileged_port_start", "ipv4/ip_forward", "ipv4/tcp_max_tw_buckets", "core/somaxconn"):
        results[name] = attempt(open, f"/proc/sys/net/{name}", "w")
    results["low port"] = attempt(socket.socket().bind, ("127.0.0.1", 80))
    results["down"] = attempt(fcntl.ioctl, socket.socket(2, 2), 0x8914, struct.pack("16sH14x", b"lo", 0))
    return results


OUTSIDE = {
    "a name server": "8.8.8.8", "metadata": "169.254.169.254", "private": "10.0.0.1", "broadcast": "255.255.255.255",
    "documentation": "192.0.2.1", "six": "2001:4860:4860::8888", "six, private": "fd00::1",
    "mapped": "::ffff:8.8.8.8",
}


def elsewhere(own):
    """Addresses that are not the loopback's, among them the host's own."""
    results = {}
    for name, address in (OUTSIDE | dict(zip(own, own))).items():
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
            with socket.socket(family, kind) as made:
                made.settimeout(5)
                if name == "broadcast":
                    made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                results[f"{name}, {kind.name}"] = attempt(made.connect, (address, 53))
        with socket.socket(family, socket.SOCK_DGRAM) as made:
            results[f"{name}, sent"] = attempt(made.sendto, b"x", (address, 53))
    return results


def connect(port, abstract, path):
    """The server's own port, another function's, and Unix sockets that listen on the host."""
    results = {}
    for address in "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::":
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as made:
            made.settimeout(5)
            results[address] = attempt(made.connect, (address, port))
    for name, address in ("abstract", "\0" + abstract), ("path", path):
        with socket.socket(socket.AF_UNIX) as local:
            results[name] = attempt(local.connect, address)
    return results


def names():
    """No name is known but the own ones, and that is clear at once."""
    results = {}
    for name in "example.com", "metadata.google.internal":
        try:
            results[name] = socket.getaddrinfo(name, 80)
        except socket.gaierror as error:
            results[name] = [error.errno == socket.EAI_AGAIN, error.strerror]
    results["own"] = sorted({entry[4][0] for entry in socket.getaddrinfo("localhost", 80)})
    return results


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
