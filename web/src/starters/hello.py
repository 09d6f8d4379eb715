def handler(event, context):
    """`event` is the parsed JSON of the request; what is returned becomes the answer."""
    name = event.get("name", "world") if isinstance(event, dict) else "world"
    print(f"saying hello to {name}")
    return {
        "message": f"Hello, {name}!",
        "invocation": context.aws_request_id,
    }
