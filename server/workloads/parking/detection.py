"""Finds the number plate in a picture of a parking space."""

import base64
import hashlib
import time

# A neural network's time on a CPU, as in SPRIGHT's experiment.
SERVICE_TIME_S = 0.435


def handler(event, context):
    time.sleep(SERVICE_TIME_S)
    body = event.get("body", "")
    image = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
    return {"plate": hashlib.sha256(image).hexdigest()[:7].upper(), "image_bytes": len(image)}
