"""STeLLAR's function: spins, makes a payload, and says when it ran."""

import json
import time


def handler(event, context):
    query = event.get("queryStringParameters") or {}
    for _ in range(int(query.get("IncrementLimit", 0))):
        pass
    bytes(int(query.get("PayloadLengthBytes", 0)))
    body = {"RequestID": context.aws_request_id, "TimestampChain": [str(time.time_ns() // 1_000_000)]}
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(body)}
