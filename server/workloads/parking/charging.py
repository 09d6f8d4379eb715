"""Works out what a car has to pay."""

import time

SERVICE_TIME_S = 0.050
CENTS_PER_HOUR = 250


def handler(event, context):
    time.sleep(SERVICE_TIME_S)
    hours = (time.time() - event["since"]) / 3600
    return {**event, "cents": round(hours * CENTS_PER_HOUR)}
