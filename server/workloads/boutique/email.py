"""Sends the confirmation of an order; the log is its mailbox."""


def handler(event, context):
    print("to", event.get("to") or "someone@example.com", "order of", event["order"]["total_cents"], "cents")
    return {}
