#!/usr/bin/python3 -IS
"""A bootstrap that misbehaves in the way that its event, or its handler setting, names."""

import json
import os
import signal
import socket
import sys
import threading
import time
from http.client import HTTPConnection

HOST, PORT = os.environ["AWS_LAMBDA_RUNTIME_API"].split(":")
ADDRESS = (HOST, int(PORT))
RUNTIME = "/2018-06-01/runtime/"
CALLS = 0


def ask(method, path, body=None, headers=None):
    connection = HTTPConnection(*ADDRESS)
    connection.request(method, RUNTIME + path, body, headers or {})
    response = connection.getresponse()
    return response.status, dict(response.getheaders()), response.read()


def answer(request, value):
    return ask("POST", f"invocation/{request}/response", json.dumps(value))


def posting(request, length, *headers):
    """A connection on which the head of an answer was sent."""
    connection = socket.create_connection(ADDRESS)
    lines = [f"POST {RUNTIME}invocation/{request}/response HTTP/1.1", f"Host: {HOST}", length, *headers]
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    return connection


def begin(handler):
    if handler == "never":
        print("here, and silent")
        sys.stdout.flush()
        time.sleep(600)
    if handler == "dies":
        print("about to die", file=sys.stderr)
        sys.exit(3)
    if handler == "killed":
        os.kill(os.getpid(), signal.SIGSEGV)
    if handler == "reports":
        print("about to report")
        body = json.dumps({"errorType": "Config.Missing", "errorMessage": "no table", "stackTrace": ["a", "b"]})
        status, _, text = ask("POST", "init/error", body, {"Lambda-Runtime-Function-Error-Type": "Runtime.Other"})
        print(status, text.decode(), flush=True)
        sys.exit(1)


def state(request):
    return {"pid": os.getpid(), "calls": CALLS, "fds": sorted(map(int, os.listdir("/proc/self/fd")))[:-1]}


def reached():
    """What can be connected to."""
    found = {}
    for name, family, address in [
        ("api", socket.AF_INET, ADDRESS),
        ("closed", socket.AF_INET, ("127.0.0.1", 80)),
        ("outside", socket.AF_INET, ("192.0.2.1", 80)),
        ("outside6", socket.AF_INET6, ("2001:db8::1", 80)),
    ]:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            found[name] = os.strerror(probe.connect_ex(address))
    return found


def serve(event, request):
    """Answers, one way or another."""
    what = event.get("do") if isinstance(event, dict) else None
    if isinstance(event, dict) and "queryStringParameters" in event:
        what = event["queryStringParameters"]["do"]
    print("does", what, flush=True)
    if what == "exit":
        os._exit(7)
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "answer, exit":
        answer(request, "last words")
        os._exit(0)
    elif what == "later exit":
        threading.Timer(0.05, lambda: os._exit(4)).start()
        answer(request, "later")
    elif what == "twice":
        first = answer(request, "first")[0]
        second = answer(request, "second")
        print("answered", first, second[0], second[2].decode(), flush=True)
    elif what == "half":
        connection = posting(request, "Content-Length: 100")
        connection.sendall(b'{"half":')
        time.sleep(600)
    elif what == "half, then whole":
        connection = posting(request, "Content-Length: 100")
        connection.sendall(b'{"half":')
        time.sleep(0.05)
        connection.close()
        # The broken one may not have been noticed yet.
        for _ in range(100):
            if answer(request, "whole")[0] == 202:
                return
            time.sleep(0.02)
    elif what == "large":
        print("answered", answer(request, "x" * event["bytes"])[0], flush=True)
    elif what == "no JSON":
        ask("POST", f"invocation/{request}/response", "plain text")
    elif what == "streamed, cut":
        headers = ["Lambda-Runtime-Function-Response-Mode: streaming"]
        connection = posting(request, "Transfer-Encoding: chunked", *headers)
        connection.sendall(b"5\r\nhello\r\n")
        time.sleep(0.1)
        connection.close()
    elif what == "streamed, headless":
        headers = ["Lambda-Runtime-Function-Response-Mode: streaming", "Content-Type: application/vnd.awslambda.http-integration-response"]
        connection = posting(request, "Transfer-Encoding: chunked", *headers)
        content = b'{"statusCode":1}' + bytes(8) + b"body"
        connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content))
        connection.recv(1000)
    elif what in ("streamed, failed", "failed at its end"):
        headers = ["Trailer: Lambda-Runtime-Function-Error-Type"]
        if what == "streamed, failed":
            headers.append("Lambda-Runtime-Function-Response-Mode: streaming")
        connection = posting(request, "Transfer-Encoding: chunked", *headers)
        connection.sendall(b"5\r\nhello\r\n0\r\nLambda-Runtime-Function-Error-Type: Late.Error\r\n\r\n")
        connection.recv(1000)
    elif what == "asks again":
        status, _, text = ask("GET", "invocation/next")
        answer(request, [status, json.loads(text)["errorType"]])
    elif what == "wrong":
        found = [ask("POST", "invocation/other/response", "1")[0], ask("PUT", "invocation/next")[0]]
        found += [ask("GET", "extension")[0], ask("POST", "init/error", "{}")[0]]
        with socket.create_connection(ADDRESS) as connection:
            connection.sendall(b"\x16\x03\x01 no HTTP\r\n\r\n")
            found.append(connection.recv(100).split(b"\r\n")[0].decode())
        found.append(ask("GET", "invocation/next", None, {f"X-{n}": "v" for n in range(200)})[0])
        answer(request, found)
    elif what == "prints":
        os.write(1, b"line\n" * 20000)
        answer(request, "printed")
        os.write(2, b"printed after the answer\n")
    elif what == "memory":
        kept = bytearray(1 << 30)
        kept[:: 4096] = b"x" * len(kept[:: 4096])
    elif what == "reports":
        body = json.dumps({"errorMessage": "it failed"})
        ask("POST", f"invocation/{request}/error", body, {"Lambda-Runtime-Function-Error-Type": "Own.Type"})
    elif what == "reached":
        answer(request, reached())
    elif what == "environment":
        answer(request, dict(os.environ))
    elif what == "wait":
        time.sleep(event["ms"] / 1000)
        answer(request, state(request))
    elif what == "state":
        answer(request, state(request))
    else:
        answer(request, event)


begin(os.environ["_HANDLER"])
while True:
    _, headers, body = ask("GET", "invocation/next")
    CALLS += 1
    serve(json.loads(body), headers["lambda-runtime-aws-request-id"])
