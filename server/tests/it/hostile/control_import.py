import array
import json
import os
import socket
import struct
import sys
import time

control = socket.socket(fileno=os.dup(3))


def send(message):
    control.send(message)


def garbage():
    send(b"}{" * 1000)
    time.sleep(60)


def huge():
    send(b"x" * 200_000)
    time.sleep(60)


def closed():
    os.close(3)
    control.close()
    time.sleep(60)


def false_ready():
    """A template of its own, which answers FORK with nonsense."""
    send(b'{"type":"booted","runtime":"0","import_ms":0}')
    while True:
        _, ancillary, _, _ = control.recvmsg(100, socket.CMSG_SPACE(6 * 4))
        descriptors = array.array("i")
        for _, _, data in ancillary:
            descriptors.frombytes(data)
        ready = socket.socket(fileno=descriptors[3])
        ready.send(b"R")
        ready.close()
        for number in (0, 1, 2, 4, 5):
            os.close(descriptors[number])


def foreign_ready():
    """READY from a process that is gone before anybody can look at it."""
    send(b'{"type":"booted","runtime":"0","import_ms":0}')
    while True:
        _, ancillary, _, _ = control.recvmsg(100, socket.CMSG_SPACE(6 * 4))
        descriptors = array.array("i")
        for _, _, data in ancillary:
            descriptors.frombytes(data)
        child = os.fork()
        if child == 0:
            socket.socket(fileno=descriptors[3]).send(b"R" + struct.pack("<I", 1))
            os._exit(0)
        os.waitpid(child, 0)
        for number in descriptors:
            os.close(number)


globals()[os.environ["ATTACK"]]()
