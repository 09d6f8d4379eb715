"""The root handler of `logging`, as Lambda's own runtime installs it before a function is imported.

So `logging.getLogger().setLevel("INFO")` is enough for a function to log, and `logging.basicConfig` does nothing
without `force=True`: there is a handler already. `logging` is not imported for it: the handler comes with the module.
"""

import time

from . import streams
from .importhooks import on_import

FORMAT = "[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s"
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"

# The invocation that this process works on, or the one before while it waits; empty during the import.
request_id = ""


def setup():
    """Before the function is imported."""
    on_import("logging", _install)


def _install(logging):
    class LambdaLoggerHandler(logging.Handler):
        """Writes to the function's log whatever `sys.stdout` has been made."""

        def emit(self, record):
            try:
                streams.write_line(self.format(record))
            except Exception:
                self.handleError(record)

    class LambdaLoggerFilter(logging.Filter):
        """Gives each record the id of the invocation."""

        def filter(self, record):
            record.aws_request_id = request_id
            return True

    # Of all formatters, as on Lambda: times are in UTC.
    logging.Formatter.converter = time.gmtime
    handler = LambdaLoggerHandler()
    handler.setFormatter(logging.Formatter(FORMAT, TIME_FORMAT))
    handler.addFilter(LambdaLoggerFilter())
    logging.getLogger().addHandler(handler)
