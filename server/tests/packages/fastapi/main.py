"""FastAPI behind Mangum, as on Lambda."""

from uuid import uuid4

from fastapi import FastAPI
from mangum import Mangum
from pydantic import BaseModel, Field


class Order(BaseModel):
    item: str
    count: int = Field(gt=0)


app = FastAPI()


@app.post("/shops/{shop}/orders", status_code=201)
async def order(shop: int, order: Order, dry: bool = False):
    return {"shop": shop, "order": order, "dry": dry, "drawn": [str(uuid4())]}


handler = Mangum(app, lifespan="off")
