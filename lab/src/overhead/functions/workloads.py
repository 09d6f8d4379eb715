"""Workloads of the overhead study. Each returns its invocation's id, by which the history has its stages, and what it computed."""

import random
import time


def answer(context, value):
    return {"id": context.aws_request_id, "value": value}


def empty(event, context):
    return answer(context, 0)


def math(event, context):
    """Pi by Monte Carlo, with a generator that is seeded in each call."""
    uniform = random.Random().random
    inside = 0
    for _ in range(event["points"]):
        x, y = uniform(), uniform()
        if x * x + y * y <= 1:
            inside += 1
    return answer(context, 4 * inside / event["points"])


def sleep(event, context):
    time.sleep(event["sleep_ms"] / 1000)
    return answer(context, event["sleep_ms"])


def blurred(pixels, size, step, across):
    """Each pixel's mean with its neighbours along one axis; `step` leads to the next one, `across` to the next line."""
    out = bytearray(size * size)
    for line in range(size):
        for place in range(size):
            at = line * across + place * step
            before = at - step if place > 0 else at
            after = at + step if place < size - 1 else at
            out[at] = (pixels[before] + pixels[at] + pixels[after]) // 3
    return out


def image(event, context):
    """A grey bitmap, box-blurred along both axes. Its value is the sum of all pixels."""
    size = event["pixels"]
    bitmap = bytearray((x * y + 7 * x) & 255 for y in range(size) for x in range(size))
    bitmap = blurred(blurred(bitmap, size, 1, size), size, size, 1)
    return answer(context, sum(bitmap))
