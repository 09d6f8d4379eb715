"""Writes down which car is on which space."""

import json
import time

SERVICE_TIME_S = 0.010


def handler(event, context):
    time.sleep(SERVICE_TIME_S)
    print(json.dumps({"plate": event["plate"], "space": event["space"]}))
    return event
