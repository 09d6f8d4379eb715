"""The shop's pages. Each task calls the services in the order of SPRIGHT's online boutique."""

import json

DEFAULT_CURRENCY = "CAD"


def handler(event, context):
    # Over HTTP the path says what is wanted; an event may say it itself.
    over_http = "requestContext" in event
    task, wanted = from_http(event) if over_http else (event.get("task", "index"), event)
    page = TASKS.get(task)
    if page is None:
        answer = {"error": f"no such task: {task}", "tasks": sorted(TASKS)}
        return {"statusCode": 404, "body": json.dumps(answer)} if over_http else answer
    return page(context.chain.call, wanted)


def from_http(event):
    wanted = dict(event.get("queryStringParameters", {}))
    post = event["requestContext"]["http"]["method"] == "POST"
    match event["rawPath"].strip("/").split("/"):
        case [""]:
            return "index", wanted
        case ["setCurrency"] if post:
            return "setCurrency", wanted
        case ["product", product]:
            return "browseProduct", {**wanted, "product": product}
        case ["cart"]:
            return ("addToCart" if post else "viewCart"), wanted
        case ["cart", "checkout"] if post:
            return "checkout", wanted
        case _:
            return event["rawPath"], wanted


def currency_of(wanted):
    return wanted.get("currency", DEFAULT_CURRENCY)


def index(call, wanted):
    return {
        "currencies": call("currency", {"do": "GetSupportedCurrencies"}),
        "products": call("productcatalog", {"do": "ListProducts"}),
        "cart": call("cart", {"do": "GetCart", "user": wanted.get("user")}),
        "ad": call("ad", {"do": "GetAds"}),
    }


def set_currency(call, wanted):
    return {"currency": currency_of(wanted)}


def browse_product(call, wanted):
    product = call("productcatalog", {"do": "GetProduct", "product": wanted.get("product")})
    currencies = call("currency", {"do": "GetSupportedCurrencies"})
    cart = call("cart", {"do": "GetCart", "user": wanted.get("user")})
    price = call("currency", {"do": "Convert", "cents": product["cents"], "to": currency_of(wanted)})
    return {
        "product": product,
        "price": price,
        "currencies": currencies,
        "cart": cart,
        "recommended": call("recommendation", {"do": "ListRecommendations", "products": [product["id"]]}),
        "ad": call("ad", {"do": "GetAds"}),
    }


def view_cart(call, wanted):
    currencies = call("currency", {"do": "GetSupportedCurrencies"})
    cart = call("cart", {"do": "GetCart", "user": wanted.get("user")})
    recommended = call("recommendation", {"do": "ListRecommendations", "products": list(cart)})
    quote = call("shipping", {"do": "GetQuote", "items": cart})
    shipping = call("currency", {"do": "Convert", "cents": quote["cents"], "to": currency_of(wanted)})
    products = [call("productcatalog", {"do": "GetProduct", "product": product}) for product in cart]
    prices = [call("currency", {"do": "Convert", "cents": one["cents"], "to": currency_of(wanted)}) for one in products]
    return {
        "items": [{**one, "price": price, "quantity": cart[one["id"]]} for one, price in zip(products, prices)],
        "shipping": shipping,
        "recommended": recommended,
        "currencies": currencies,
    }


def add_to_cart(call, wanted):
    product = call("productcatalog", {"do": "GetProduct", "product": wanted.get("product")})
    item = {"do": "AddItem", "user": wanted.get("user"), "product": product["id"], "quantity": int(wanted.get("quantity", 1))}
    return {"cart": call("cart", item)}


def checkout(call, wanted):
    order = call("checkout", {"user": wanted.get("user"), "currency": currency_of(wanted), "email": wanted.get("email")})
    products = [item["product"] for item in order["items"]]
    return {
        "order": order,
        "recommended": call("recommendation", {"do": "ListRecommendations", "products": products}),
        "currencies": call("currency", {"do": "GetSupportedCurrencies"}),
    }


TASKS = {
    "index": index,
    "setCurrency": set_currency,
    "browseProduct": browse_product,
    "viewCart": view_cart,
    "addToCart": add_to_cart,
    "checkout": checkout,
}
