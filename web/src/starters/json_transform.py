"""Validates an order from one system and returns it in the format of another. Errors name the invalid field."""

from datetime import UTC, datetime


class Invalid(ValueError):
    """The event is invalid; the caller sees why."""


def handler(event, context):
    order = checked(event)
    lines = [line(item) for item in order["items"]]
    print(f"order {order['id']}: {len(lines)} lines")
    return {
        "orderNumber": str(order["id"]),
        "customer": order["customer"].strip().title(),
        "lines": lines,
        "totalCents": sum(line["priceCents"] * line["quantity"] for line in lines),
        "transformedAt": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def checked(event):
    if not isinstance(event, dict):
        raise Invalid("the event must be an object")
    for field, kind in (("id", int), ("customer", str), ("items", list)):
        if not isinstance(event.get(field), kind):
            raise Invalid(f"{field} must be of type {kind.__name__}")
    return event


def line(item):
    try:
        sku, quantity, price = item["sku"], int(item.get("quantity", 1)), float(item["price"])
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(f"an item needs sku, price and an optional quantity: {error}") from error
    if quantity < 1:
        raise Invalid(f"{sku}: quantity must be at least 1")
    return {"sku": sku.upper(), "quantity": quantity, "priceCents": round(price * 100)}
