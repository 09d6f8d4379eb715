"""Products that go with others."""

PRODUCTS = ["0PUK6V6EV0", "1YMWWN1N4O", "66VCHSJNUP", "6E92ZMYYFZ", "9SIQT8TOJO", "L9ECAV7KIM", "LS4PSXUNUM"]
MOST = 5


def handler(event, context):
    return [product for product in PRODUCTS if product not in event["products"]][:MOST]
