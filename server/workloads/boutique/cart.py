"""What is in the users' carts. They are in the memory of the one instance, as the reference's are."""

DEFAULT_USER = "ucr-students"
carts = {}


def handler(event, context):
    user = event.get("user") or DEFAULT_USER
    cart = carts.setdefault(user, {})
    match event["do"]:
        case "AddItem":
            cart[event["product"]] = cart.get(event["product"], 0) + event["quantity"]
        case "EmptyCart":
            cart.clear()
    return cart
