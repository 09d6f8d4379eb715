"""Turns the light of a sensor's room on if something moved there."""

import time

SERVICE_TIME_S = 0.001


def handler(event, context):
    time.sleep(SERVICE_TIME_S)
    return {"light": event["sensor"], "on": event["motion_ms"] > 0}
