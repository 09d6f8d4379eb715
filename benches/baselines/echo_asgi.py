"""A bare ASGI application for uvicorn: sends back what it gets; at /read, reads a file first."""

import asyncio
import pathlib


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if scope["path"] == "/read":
        await asyncio.to_thread(pathlib.Path("/proc/self/status").read_bytes)
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
