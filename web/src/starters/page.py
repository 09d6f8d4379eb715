import html


def handler(event, context):
    """Answers requests at the function's URL, as a Lambda function URL would."""
    event = event if isinstance(event, dict) else {}
    query = event.get("queryStringParameters") or {}
    name = html.escape(query.get("name", "world"))
    return {
        "statusCode": 200,
        "headers": {"content-type": "text/html; charset=utf-8"},
        "body": f"<!doctype html><title>Hello</title><h1>Hello, {name}!</h1>",
    }
