"""An advertisement."""

import random

ADS = ["Film camera for sale, 50% off.", "Home barista kitchen kit, buy one, get one free.", "City bike for sale, 10% off."]


def handler(event, context):
    return random.choice(ADS)
