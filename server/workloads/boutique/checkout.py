"""Places an order: calls everybody who has a part in it."""


def handler(event, context):
    call, currency = context.chain.call, event["currency"]
    convert = lambda cents: call("currency", {"do": "Convert", "cents": cents, "to": currency})
    cart = call("cart", {"do": "GetCart", "user": event["user"]})
    products = [call("productcatalog", {"do": "GetProduct", "product": product}) for product in cart]
    prices = [convert(product["cents"]) for product in products]
    quote = call("shipping", {"do": "GetQuote", "items": cart})
    shipping = convert(quote["cents"])
    items = [
        {"product": product["id"], "quantity": cart[product["id"]], "price": price}
        for product, price in zip(products, prices)
    ]
    total = shipping["cents"] + sum(item["price"]["cents"] * item["quantity"] for item in items)
    paid = call("payment", {"do": "Charge", "cents": total, "currency": currency})
    shipped = call("shipping", {"do": "ShipOrder", "items": cart})
    call("cart", {"do": "EmptyCart", "user": event["user"]})
    order = {"items": items, "total_cents": total, "currency": currency, **paid, **shipped}
    call("email", {"do": "SendOrderConfirmation", "to": event["email"], "order": order})
    return order
