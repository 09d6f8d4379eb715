"""polars starts its pool of threads with the first query: here while the module is imported."""

import polars as pl


def totals(rows):
    frame = pl.DataFrame(rows)
    return frame.group_by("city").agg(pl.col("sold").sum()).sort("city").to_dicts()


AT_IMPORT = totals([{"city": "Rome", "sold": n} for n in range(1000)])


def handler(event, context):
    return {"import": AT_IMPORT, "now": totals(event["rows"])}
