def handler(event, context):
    """`event` is the parsed JSON of the request; the return value becomes the response."""
    event = event if isinstance(event, dict) else {}
    # Called by URL, the name comes from the query (`?name=Ada`); invoked with an event, from the event.
    query = event.get("queryStringParameters") or {}
    name = query.get("name") or event.get("name") or "world"
    print(f"saying hello to {name}")
    return {
        "message": f"Hello, {name}!",
        "invocation": context.aws_request_id,
    }
