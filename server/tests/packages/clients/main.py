"""Requests, psycopg and redis as functions use them, and the standard library under them. Each part says what came of it."""

import asyncio
import errno
import http.client
import socket
import traceback

import psycopg
import redis
import redis.asyncio
import requests
from psycopg_pool import AsyncConnectionPool

TIMEOUT = 20
kept = {}


def by_requests(event):
    with open("/tmp/ca.pem", "w") as file:
        file.write(event["ca"])
    secure = requests.get("https://api.example.com/", verify="/tmp/ca.pem", timeout=TIMEOUT)
    plain = requests.get("http://api.example.com/", timeout=TIMEOUT)
    return [secure.text, plain.text]


def connect(event):
    return psycopg.connect(event["postgresql"], connect_timeout=TIMEOUT)


def by_psycopg(event):
    with connect(event) as connection, connection.cursor() as cursor:
        cursor.execute("create table if not exists visits (id serial primary key, who text)")
        cursor.execute("insert into visits (who) values (%s) returning who", (event["who"],))
        (who,) = cursor.fetchone()
        cursor.execute("select count(*) from visits where who = %s", (event["who"],))
        return [who, cursor.fetchone()[0]]


def by_redis(event):
    with redis.Redis(host="cache.example.com", socket_connect_timeout=TIMEOUT) as cache:
        cache.set("greeting", event["who"])
        with cache.pipeline() as pipeline:
            pipeline.get("greeting").incr("visits")
            greeting, visits = pipeline.execute()
        return [greeting.decode(), visits]


def by_socket(event):
    with socket.create_connection(("api.example.com", 80), timeout=TIMEOUT) as stream:
        stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return stream.makefile("rb").read().decode().rsplit("\r\n", 1)[-1]


def by_http_client(event):
    connection = http.client.HTTPConnection("api.example.com", timeout=TIMEOUT)
    connection.request("GET", "/")
    return connection.getresponse().read().decode()


async def read(reader, writer):
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.decode().rsplit("\r\n", 1)[-1]


async def by_asyncio(event):
    """The name has an address of each family, and nobody answers at the one that is tried first: the other is tried meanwhile."""
    streams = await asyncio.open_connection("both.example.com", 80, happy_eyeballs_delay=0.1)
    return await read(*streams)


def by_address(event):
    """An address that no name has led to."""
    with socket.create_connection((event["address"], 80), timeout=TIMEOUT):
        return "connected"


async def use_pools(event):
    """Pools that live as long as the instance does, also while it is frozen."""
    if "redis" not in kept:
        kept["redis"] = redis.asyncio.Redis(host="cache.example.com")
        kept["postgresql"] = AsyncConnectionPool(
            event["postgresql"], min_size=1, max_size=1, open=False, check=AsyncConnectionPool.check_connection
        )
        await kept["postgresql"].open(wait=True, timeout=TIMEOUT)
    async with kept["postgresql"].connection() as connection:
        cursor = await connection.execute("select pg_backend_pid()")
        (backend,) = await cursor.fetchone()
    client = await kept["redis"].client_id()
    return [backend, client]


def use_connection(event):
    """One connection that is kept without a pool, and without a look whether it is still there."""
    if "connection" not in kept:
        kept["connection"] = psycopg.connect(event["postgresql"], autocommit=True)
    try:
        return kept["connection"].execute("select pg_backend_pid()").fetchone()[0]
    except psycopg.Error:
        del kept["connection"]
        raise


def number_of(error):
    """The errno that is at the bottom of an error, if there is one."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None:
            return errno.errorcode.get(error.errno, error.errno)
        reasons = [one for one in getattr(error, "args", ()) if isinstance(one, BaseException)]
        reason = getattr(error, "reason", None)
        if isinstance(reason, BaseException):
            reasons.append(reason)
        error = error.__cause__ or error.__context__ or next(iter(reasons), None)
    return None


async def handler(event, context):
    answers = {}
    for name in event["do"]:
        try:
            answer = globals()[name](event)
            if asyncio.iscoroutine(answer):
                answer = await answer
            answers[name] = {"answer": answer}
        except Exception as error:
            said = "".join(traceback.format_exception_only(error)).strip()
            answers[name] = {"error": said, "errno": number_of(error)}
    return answers
