"""Currencies, and what an amount is in another one."""

# Of one US dollar.
RATES = {"USD": 1.0, "EUR": 0.89, "CAD": 1.33, "JPY": 110.6, "GBP": 0.76, "TRY": 6.1}


def handler(event, context):
    if event["do"] == "GetSupportedCurrencies":
        return sorted(RATES)
    rate = RATES.get(event["to"])
    if rate is None:
        raise ValueError(f"unknown currency: {event['to']}")
    return {"cents": round(event["cents"] * rate), "currency": event["to"]}
