"""The nine products, with their prices in US cents."""

PRODUCTS = {
    "0PUK6V6EV0": ("Vintage Record Player", 6550),
    "1YMWWN1N4O": ("Home Barista Kit", 12400),
    "2ZYFJ3GM2N": ("Film Camera", 224500),
    "66VCHSJNUP": ("Vintage Camera Lens", 1249),
    "6E92ZMYYFZ": ("Air Plant", 1230),
    "9SIQT8TOJO": ("City Bike", 78950),
    "L9ECAV7KIM": ("Terrarium", 3645),
    "LS4PSXUNUM": ("Metal Camping Mug", 2433),
    "OLJCESPC7Z": ("Vintage Typewriter", 6799),
}


def handler(event, context):
    if event["do"] == "ListProducts":
        return [shown(product) for product in PRODUCTS]
    # As the reference does: whoever asks for none gets one.
    return shown(event.get("product") or "OLJCESPC7Z")


def shown(product):
    if product not in PRODUCTS:
        raise ValueError(f"no such product: {product}")
    name, cents = PRODUCTS[product]
    return {"id": product, "name": name, "cents": cents}
