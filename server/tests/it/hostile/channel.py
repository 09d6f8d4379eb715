import random
import struct
import threading
import uuid
import zlib

PAGE, TO_WORKER, TO_HOST, LINE = 4096, 128, 640, 128
# Frames begin at multiples of this, and payloads one behind.
BLOCK = 64
RESULT, HEAD, BODY, ERROR, MORE = 0x20, 0x21, 0x22, 0x23, 1


def find_region():
    for line in open("/proc/self/maps"):
        if "hearth-channel" in line:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            return start, end - start
    raise LookupError("no region")


def bells():
    """Descriptors of the host's bell, an eventfd."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if "eventfd" in os.readlink("/proc/self/fd/" + name):
                yield int(name)
        except OSError:
            pass


class Ring:
    """The ring towards the host, written by hand."""

    def __init__(self, context):
        self.base, self.size = find_region()
        self.capacity = (self.size - PAGE) // 2
        self.area = self.base + PAGE + self.capacity
        self.id = uuid.UUID(context.aws_request_id).bytes
        self.bells = list(bells())

    def word(self, at):
        return struct.unpack("<Q", ctypes.string_at(self.base + at, 8))[0]

    def write(self, at, data):
        ctypes.memmove(self.base + at, data, len(data))

    def set(self, at, value):
        self.write(at, struct.pack("<Q", value % (1 << 64)))

    def ring(self):
        for bell in self.bells:
            attempt(os.write, bell, struct.pack("<Q", 1))

    def frame(self, kind=RESULT, payload=b"null", flags=0, id=None, crc=None, length=None, reserved=0):
        length = len(payload) if length is None else length
        id = self.id if id is None else id
        head = struct.pack("<IHH16s", length & 0xFFFFFFFF, kind, flags, id)
        padded = payload.ljust((len(payload) + BLOCK - 1) // BLOCK * BLOCK, b"\0")
        if crc is None:
            crc = zlib.crc32(head, zlib.crc32(padded))
        return (head + struct.pack("<II", crc, reserved)).ljust(BLOCK, b"\0") + padded

    def publish(self, *frames, start_kind=True):
        head = self.word(TO_HOST)
        for frame in frames:
            ctypes.memmove(self.area + head % self.capacity, frame, len(frame))
            head += len(frame)
        self.set(TO_HOST, head)
        if start_kind:
            self.ring()


def one_frame(context, **fields):
    """A single frame with something wrong, then silence: the host must not wait for the deadline."""
    if "payload" in fields:
        fields["payload"] = fields["payload"].encode()
    if "id" in fields:
        fields["id"] = bytes.fromhex(fields["id"])
    ring = Ring(context)
    ring.publish(ring.frame(**fields))
    time.sleep(60)


def head_index(context, delta):
    ring = Ring(context)
    ring.set(TO_HOST, ring.word(TO_HOST) + delta)
    ring.ring()
    time.sleep(60)


def tail_index(context, delta):
    """The worker's position in the ring towards itself: met at the next request."""
    ring = Ring(context)
    ring.set(TO_WORKER + LINE, ring.word(TO_WORKER + LINE) + delta)


def random_bytes(context, start, end, seed, published):
    ring = Ring(context)
    head = ring.word(TO_HOST)
    noise = random.Random(seed).randbytes((end or ring.size) - start)
    ring.write(start, noise)
    if published:
        ring.set(TO_HOST, head + published)
    ring.ring()
    time.sleep(60)


def keep_writing(context):
    """Garbles everything from a thread while the handler answers."""
    ring = Ring(context)

    def garble():
        noise = random.Random(1)
        while True:
            at = noise.randrange(0, ring.size - 64) & ~31
            ring.write(at, noise.randbytes(32))

    threading.Thread(target=garble, daemon=True).start()
    time.sleep(0.05)
    return "x" * 300_000


def endless_answer(context, kind, payload, head=None):
    """Frames without end, at the price of one word each: every round shows the host the same bytes again."""
    ring = Ring(context)
    if head:
        ring.publish(ring.frame(kind=HEAD, payload=head.encode()))
    payload = b" " * (ring.capacity // 4 - BLOCK) if payload else b""
    frame = ring.frame(kind=kind, payload=payload, flags=MORE)
    empty = ring.frame(kind=kind, payload=b"", flags=MORE)
    ring.publish(*[empty] * (-ring.word(TO_HOST) % len(frame) // BLOCK))
    # The host has read all of this by then; what it has read it may keep back.
    time.sleep(0.2)
    ctypes.memmove(ring.area, frame * (ring.capacity // len(frame)), ring.capacity)
    head = ctypes.c_uint64.from_address(ring.base + TO_HOST)
    tail = ctypes.c_uint64.from_address(ring.base + TO_HOST + LINE)
    asleep = ctypes.c_uint32.from_address(ring.base + TO_HOST + 2 * LINE)
    capacity = ring.capacity
    while True:
        head.value = tail.value + capacity
        if asleep.value:
            asleep.value = 0
            ring.ring()


def two_answers(context, half=False, http=False):
    """Two whole answers, or one and the beginning of another, in one stroke."""
    ring = Ring(context)
    second = ring.frame(kind=BODY if http else RESULT, payload=b'"second"'.ljust(1000))
    first = [ring.frame(payload=b'"first"')]
    if http:
        head = ring.frame(kind=HEAD, payload=b'{"statusCode":200,"headers":[]}')
        first = [head, ring.frame(kind=BODY, payload=b'"first"')]
    ring.publish(*first, second[:BLOCK] if half else second)
    time.sleep(60)


def answers_later(context, half=False):
    """One answer by the usual way, and something more when nobody asks."""
    ring = Ring(context)
    unasked = ring.frame(payload=b'"unasked"'.ljust(1000))

    def write():
        time.sleep(0.3)
        ring.publish(unasked[:BLOCK] if half else unasked)
        os.open("/tmp/written", os.O_CREAT | os.O_WRONLY)

    if os.path.exists("/tmp/written"):
        os.remove("/tmp/written")
    threading.Thread(target=write, daemon=True).start()
    return "first"


def unread(context, padding):
    """Answers, and says that it has read nothing of the request."""
    Ring(context).set(TO_WORKER + LINE, 0)
    return "first"


def endless_bell(context):
    ring = Ring(context)
    one = struct.pack("<Q", 1)
    for bell in ring.bells * 2:
        threading.Thread(target=lambda: [os.write(bell, one) for _ in iter(int, 1)], daemon=True).start()
    while True:
        ring.ring()


def full_bell(context):
    """The counter at its end, and blocking: whoever rings it waits for ever."""
    for bell in Ring(context).bells:
        os.set_blocking(bell, False)
        attempt(os.write, bell, struct.pack("<Q", (1 << 64) - 2))
        os.set_blocking(bell, True)
    return "never seen"


def stop_reading():
    """Answers, and stops before the next request is read."""
    def stop():
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGSTOP)

    threading.Thread(target=stop, daemon=True).start()
    return "stopping"


def resize(context):
    """The memfd behind the region is sealed, and its descriptor is gone."""
    import fcntl
    results = {}
    base, size = find_region()
    region = f"/proc/self/map_files/{base:x}-{base + size:x}"
    results["reopen"] = attempt(lambda: open(region, "r+b").truncate(0))
    for name in os.listdir("/proc/self/fd"):
        link = "/proc/self/fd/" + name
        if "hearth-channel" in (os.readlink(link) if os.path.lexists(link) else ""):
            results["truncate"] = attempt(os.ftruncate, int(name), 0)
    results["punch"] = attempt(lambda: libc.madvise(ctypes.c_void_p(base), ctypes.c_size_t(size), 9))
    return results
