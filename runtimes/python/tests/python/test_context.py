"""The context object and the handler setting."""

import time
import unittest

from hearth_worker import handler
from hearth_worker.context import Context
from hearth_worker.errors import Fault


class ContextFields(unittest.TestCase):
    def setUp(self):
        Context.bind({"function": "f", "version": 7, "memory_mb": 256})

    def test_fields(self):
        context = Context("id", 0, None)
        self.assertEqual(context.function_version, "7")
        self.assertEqual(context.invoked_function_arn, "arn:hearth:lambda:local:0:function:f:7")
        self.assertEqual(context.log_group_name, "/hearth/f")
        self.assertTrue(context.log_stream_name.startswith("7/"))
        self.assertEqual(context.memory_limit_in_mb, 256)

    def test_remaining_time(self):
        now_us = time.time_ns() // 1000
        remaining = Context("id", now_us + 5_000_000, None).get_remaining_time_in_millis()
        self.assertTrue(0 < remaining <= 5_001, remaining)
        self.assertEqual(Context("id", now_us - 1, None).get_remaining_time_in_millis(), 0)

    def test_functions_may_add_attributes(self):
        context = Context("id", 0, None)
        context.client_context = context.extra = 1
        self.assertIsNone(Context("id", 0, None).client_context)


class Setting(unittest.TestCase):
    def test_split(self):
        self.assertEqual(handler.split("main.handler"), ("main", "handler"))
        self.assertEqual(handler.split("a/b.c.run"), ("a.b.c", "run"))

    def test_malformed(self):
        for setting in ("", "main", ".x", "x.", "a..b", "/a.b", "a.b-c"):
            with self.assertRaises(Fault, msg=setting):
                handler.split(setting)


if __name__ == "__main__":
    unittest.main()
