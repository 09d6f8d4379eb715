"""A small HTTP API behind the function's URL: a router, JSON in and out, errors as JSON."""

import base64
import json
import re

ROUTES = []


class HttpError(Exception):
    """Becomes a JSON response with this status."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def route(method, pattern):
    """Registers a function for a method and a path; `{name}` in the path becomes an argument."""
    compiled = re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", pattern) + "/?")

    def register(function):
        ROUTES.append((method, compiled, function))
        return function

    return register


@route("GET", "/")
def index(request):
    return {"routes": ["GET /greetings/{name}", "POST /sums"]}


@route("GET", "/greetings/{name}")
def greet(request, name):
    return {"greeting": f"{request['query'].get('word', 'Hello')}, {name}!"}


@route("POST", "/sums")
def add(request):
    numbers = request["json"]
    if not isinstance(numbers, list) or not all(type(n) in (int, float) for n in numbers):
        raise HttpError(422, "the body must be a list of numbers")
    return {"sum": sum(numbers)}


def handler(event, context):
    http = event.get("requestContext", {}).get("http", {})
    method, path = http.get("method", "GET"), event.get("rawPath", "/")
    try:
        result = answer(method, path, event)
    except HttpError as error:
        print(f"{method} {path}: {error.status} {error}")
        return response(error.status, {"error": str(error)})
    print(f"{method} {path}: 200")
    return response(200, result)


def answer(method, path, event):
    allowed = []
    for known, pattern, function in ROUTES:
        match = pattern.fullmatch(path)
        if match and known == method:
            request = {"query": event.get("queryStringParameters") or {}, "json": body_of(event)}
            return function(request, **match.groupdict())
        if match:
            allowed.append(known)
    if allowed:
        raise HttpError(405, f"{path} allows {', '.join(allowed)}")
    raise HttpError(404, f"{path} not found")


def body_of(event):
    body = event.get("body")
    if not body:
        return None
    if event.get("isBase64Encoded"):
        body = base64.b64decode(body)
    try:
        return json.loads(body)
    except ValueError as error:
        raise HttpError(400, f"the body is not JSON: {error}") from None


def response(status, value):
    return {
        "statusCode": status,
        "headers": {"content-type": "application/json"},
        "body": json.dumps(value),
    }
