"""Reads a line of a motion sensor's record: its number, and when the motion began and ended, in ms."""

import time

# What a request costs, as in SPRIGHT's experiment.
SERVICE_TIME_S = 0.001


def handler(event, context):
    time.sleep(SERVICE_TIME_S)
    if "body" in event:
        sensor, start, end, *_ = event["body"].split()
    else:
        sensor, start, end = event.get("sensor", 0), event.get("start_ms", 0), event.get("end_ms", 0)
    return {"sensor": int(sensor), "motion_ms": max(0, int(end) - int(start))}
