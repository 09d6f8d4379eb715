"""Powertools with logger, metrics, resolver and tracer, which makes a UDP socket while it is imported."""

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.metrics import MetricUnit

logger = Logger(service="orders")
tracer = Tracer(service="orders")
metrics = Metrics(namespace="shop", service="orders")
app = APIGatewayHttpResolver()


@app.get("/orders/<number>")
@tracer.capture_method
def order(number: str):
    logger.info("looked up", extra={"number": number})
    metrics.add_metric(name="Looked", unit=MetricUnit.Count, value=1)
    return {"number": number, "currency": app.current_event.query_string_parameters["currency"]}


@logger.inject_lambda_context
@tracer.capture_lambda_handler
@metrics.log_metrics
def handler(event, context):
    return app.resolve(event, context)
