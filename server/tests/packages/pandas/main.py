"""A report with pandas; NumPy's generators are made while the module is imported."""

import numpy as np
import pandas as pd

unseeded = np.random.default_rng()
seeded = np.random.default_rng(7)
FIRST_OF_SEED = int(seeded.integers(1 << 62))
prices = pd.DataFrame({"item": ["tea", "coffee"], "price": [2.5, 3.25]})


def handler(event, context):
    orders = pd.DataFrame(event["orders"])
    orders["day"] = pd.to_datetime(orders["at"]).dt.date.astype(str)
    bill = orders.merge(prices, on="item")
    bill["sum"] = bill["price"] * bill["count"]
    table = bill.pivot_table(index="day", columns="item", values="sum", aggfunc="sum")
    return {
        "days": table.fillna(0).to_dict(orient="index"),
        "median": float(bill["sum"].median()),
        "seed": FIRST_OF_SEED,
        "drawn": [int(unseeded.integers(1 << 62)), float(np.random.random())],
    }
