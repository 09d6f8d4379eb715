def handler(event, context):
    """`event` is the parsed JSON of the request; what is returned becomes the answer."""
    event = event if isinstance(event, dict) else {}
    # Called by its URL, `?name=Ada` is in the query; called with an event, the name is in that.
    query = event.get("queryStringParameters") or {}
    name = query.get("name") or event.get("name") or "world"
    print(f"saying hello to {name}")
    return {
        "message": f"Hello, {name}!",
        "invocation": context.aws_request_id,
    }
