"""What shipping costs, and the tracking id of what is shipped."""

import uuid


def handler(event, context):
    if event["do"] == "GetQuote":
        return {"cents": 899 if event["items"] else 0}
    return {"tracking_id": str(uuid.uuid4())}
