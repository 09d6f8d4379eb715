"""STeLLAR's function: spins, makes a payload, hands it on along a chain, and says when it ran."""

import json
import time


def handler(event, context):
    # A request by HTTP, or a call of the function before.
    is_first = "requestContext" in event
    query = (event.get("queryStringParameters") or {}) if is_first else event
    stamps = [*([] if is_first else query["TimestampChain"]), str(time.time_ns() // 1_000_000)]
    for _ in range(int(query.get("IncrementLimit", 0))):
        pass
    others = query.get("DataTransferChainIDs", "[]")
    others = others.strip("[]").split() if is_first else others
    length = int(query.get("PayloadLengthBytes", 0))
    if others:
        transfer = "x" * length if is_first else query["TransferPayload"]
        call = {
            "IncrementLimit": query.get("IncrementLimit", 0),
            "DataTransferChainIDs": others[1:],
            "TimestampChain": stamps,
            "TransferPayload": transfer,
        }
        stamps = context.chain.call(others[0], call)["TimestampChain"]
    elif is_first:
        bytes(length)
    body = {"RequestID": context.aws_request_id, "TimestampChain": stamps}
    if not is_first:
        return body
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(body)}
