"""Error reports."""

import json
import tempfile
import unittest

from hearth_worker import errors


def raised(function):
    try:
        function()
    except BaseException as error:
        return errors.describe(error)
    raise AssertionError("nothing was raised")


class Describe(unittest.TestCase):
    def test_shape(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            source = "def fail():\n    return 1 / 0\n"
            file.write(source)
            file.flush()
            scope = {}
            exec(compile(source, file.name, "exec"), scope)
            report = raised(scope["fail"])
        self.assertEqual(report["errorType"], "ZeroDivisionError")
        self.assertEqual(report["errorMessage"], "division by zero")
        self.assertIn("1 / 0", report["stackTrace"][-1])
        self.assertTrue(report["stackTrace"][-1].startswith('  File "'))

    def test_fault_has_its_own_type(self):
        report = errors.describe(errors.Fault("Runtime.X", "y"))
        self.assertEqual(report, {"errorType": "Runtime.X", "errorMessage": "y", "stackTrace": []})

    def test_context_and_suppression(self):
        def context():
            try:
                {}["k"]
            except KeyError:
                raise ValueError("b")

        def suppressed():
            try:
                {}["k"]
            except KeyError:
                raise ValueError("b") from None

        self.assertIn("While handling: KeyError: 'k'", raised(context)["stackTrace"])
        self.assertNotIn("KeyError", str(raised(suppressed)["stackTrace"]))

    def test_a_circle_of_causes_ends(self):
        first, second = ValueError("a"), ValueError("b")
        first.__cause__, second.__cause__ = second, first
        self.assertEqual(errors.describe(first)["stackTrace"], ["Caused by: ValueError: b"])

    def test_text_that_is_not_utf8(self):
        report = errors.describe(ValueError("\ud800"))
        self.assertEqual(report["errorMessage"], "\\ud800")
        json.dumps(report, ensure_ascii=False).encode()

    def test_a_str_that_fails(self):
        class Odd(Exception):
            def __str__(self):
                raise SystemExit

        message = errors.describe(Odd())["errorMessage"]
        self.assertEqual(message, "<exception str() failed: SystemExit>")

    def test_a_missing_source_is_left_out(self):
        code = compile("def f():\n    raise ValueError\nf()", "/no/such/file.py", "exec")
        stack = raised(lambda: exec(code, {}))["stackTrace"]
        self.assertEqual(stack[-1], '  File "/no/such/file.py", line 2, in f\n')

    def test_report_is_bounded(self):
        for message in ("\x01" * 10**6, "ü" * 10**6, '"' * 10**6):
            report = {"type": "import_error", "error": errors.describe(ValueError(message))}
            report["error"]["stackTrace"] = ["\x01" * 512] * 100
            self.assertLess(len(errors.to_json(report).encode()), 64 * 1024)


if __name__ == "__main__":
    unittest.main()
