"""The `context` a handler is called with: AWS Lambda's fields, plus `traceparent`."""

import os
import time

# Where functions look for what `log_stream_name` says.
_STREAM = "AWS_LAMBDA_LOG_STREAM_NAME"


class Context:
    """One invocation's context. What is the same for every invocation lives on the class, set once
    by `bind`.
    """

    # `__dict__` is made only when a function sets an attribute of its own.
    __slots__ = ("aws_request_id", "traceparent", "_deadline_us", "__dict__")

    function_name = ""
    function_version = ""
    memory_limit_in_mb = 0
    invoked_function_arn = ""
    log_group_name = ""
    _stream = ""
    _announces = False
    # The chain that the instance is a member of.
    chain = None
    client_context = None
    identity = None

    def __init__(self, request_id, deadline_us, traceparent):
        self.aws_request_id = request_id
        self.traceparent = traceparent
        self._deadline_us = deadline_us

    @classmethod
    def bind(cls, config):
        """Sets the fields that belong to the function version."""
        name, version = config["function"], str(config["version"])
        cls.function_name = name
        cls.function_version = version
        cls.memory_limit_in_mb = config["memory_mb"]
        cls.invoked_function_arn = f"arn:hearth:lambda:local:0:function:{name}:{version}"
        cls.log_group_name = f"/hearth/{name}"
        cls._stream = f"{version}/"
        # One of the function's own stays what it is.
        cls._announces = os.environ.get(_STREAM) == version

    @property
    def log_stream_name(self):
        """The version and the instance, which is a process of the sandbox."""
        return f"{self._stream}{os.getpid()}"

    def get_remaining_time_in_millis(self):
        """Milliseconds until the instance is killed, never below zero."""
        return max(0, self._deadline_us // 1000 - time.time_ns() // 1_000_000)

    def log(self, message):
        """Writes to the function's log."""
        print(message)

    def __repr__(self):
        return (
            f"Context(aws_request_id={self.aws_request_id!r}, "
            f"function_name={self.function_name!r}, function_version={self.function_version!r})"
        )


def announce_stream():
    """In an instance: lets the environment name the log stream that the context does."""
    if Context._announces:
        os.environ[_STREAM] = f"{Context._stream}{os.getpid()}"
