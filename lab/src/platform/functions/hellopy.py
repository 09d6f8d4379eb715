"""STeLLAR's function: spins, makes a payload, hands it on along a chain, inline or through storage, and says when it ran."""

import json
import os
import time

STORE = os.environ.get("STORE")
if STORE:
    import http.client
# By number of the function in its chain and by method; none with a token.
SIGNED = json.loads(os.environ.get("STORE_SIGNED", "null"))


def ask(method, query, key, payload=None):
    """Puts an object into the store, or gets it."""
    connection = http.client.HTTPConnection(STORE, timeout=60)
    try:
        if SIGNED:
            connection.request(method, SIGNED[key][method], payload)
        else:
            headers = {"authorization": "Bearer " + os.environ["STORE_TOKEN"]}
            connection.request(method, f"/{query['Bucket']}/{key}", payload, headers)
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    if response.status != 200:
        raise OSError(f"{method} {key}: {response.status} {content[:200]}")
    return content


def get(query, key, length):
    """Gets a payload, which must have this length."""
    content = ask("GET", query, key)
    if len(content) != length:
        raise OSError(f"{key} has {len(content)} bytes instead of {length}")
    return content


def handler(event, context):
    # A request by HTTP, or a call of the function before.
    is_first = "requestContext" in event
    query = (event.get("queryStringParameters") or {}) if is_first else event
    stamps = [*([] if is_first else query["TimestampChain"]), str(time.time_ns() // 1_000_000)]
    length = int(query.get("PayloadLengthBytes", 0))
    stored = query.get("StorageTransfer") == "true"
    if stored:
        payload = b"x" * length if is_first else get(query, query["Key"], length)
    for _ in range(int(query.get("IncrementLimit", 0))):
        pass
    others = query.get("DataTransferChainIDs", "[]")
    others = others.strip("[]").split() if is_first else others
    if stored and (others or is_first):
        key = str(len(stamps)) if SIGNED else f"transfer-payload-{context.aws_request_id}-{len(stamps)}"
        ask("PUT", query, key, payload)
        del payload
    if others:
        call = {
            "IncrementLimit": query.get("IncrementLimit", 0),
            "DataTransferChainIDs": others[1:],
            "TimestampChain": stamps,
        }
        if stored:
            call |= {"PayloadLengthBytes": length, "StorageTransfer": "true", "Bucket": query["Bucket"], "Key": key}
        else:
            call["TransferPayload"] = "x" * length if is_first else query["TransferPayload"]
        stamps = context.chain.call(others[0], call)["TimestampChain"]
    elif stored and is_first:
        # Nobody is next.
        get(query, key, length)
    elif is_first:
        bytes(length)
    body = {"RequestID": context.aws_request_id, "TimestampChain": stamps}
    if not is_first:
        return body
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(body)}
