"""Shaping of events and responses (payload format 2.0)."""

import json
import unittest

from hearth_worker import http
from hearth_worker.errors import Fault


def shaped(value):
    head, body = http.shape(value)
    head = json.loads(head)
    return head["statusCode"], head["headers"], body


class AddBody(unittest.TestCase):
    def added(self, body, content_type=None):
        event = {"headers": {} if content_type is None else {"content-type": content_type}}
        http.add_body(event, body)
        return event.get("body"), event["isBase64Encoded"]

    def test_text(self):
        for content_type in (
            "text/html",
            "Application/JSON; charset=utf-8",
            "application/problem+json",
            "application/xml",
            "application/javascript",
            "application/x-www-form-urlencoded",
        ):
            self.assertEqual(self.added("ü".encode(), content_type), ("ü", False), content_type)

    def test_binary(self):
        for content_type in (None, "", "image/png", "application/octet-stream"):
            self.assertEqual(self.added(b"abc", content_type), ("YWJj", True), content_type)
        self.assertEqual(self.added(b"\xff", "text/plain"), ("/w==", True))

    def test_no_body(self):
        self.assertEqual(self.added(b"", "text/plain"), (None, False))

    def test_no_headers(self):
        event = {"headers": None}
        http.add_body(event, b"a")
        self.assertTrue(event["isBase64Encoded"])


class Shape(unittest.TestCase):
    JSON = [["content-type", "application/json"]]
    BINARY = [["content-type", "application/octet-stream"]]

    def test_bare_values(self):
        cases = {"null": None, '"hi"': "hi", "[1,2]": [1, 2], '{"a":"ü"}': {"a": "ü"}, "1": 1}
        for text, value in cases.items():
            self.assertEqual(shaped(value), (200, self.JSON, text.encode()))

    def test_status(self):
        self.assertEqual(shaped({"statusCode": 404}), (404, self.JSON, b""))
        self.assertEqual(shaped({"statusCode": "418"})[0], 418)
        for status in (None, True, 20, 600, 200.5, "2", "²00", [], {}):
            with self.assertRaises(Fault, msg=status):
                http.shape({"statusCode": status})

    def test_headers(self):
        headers = {"a": "x", "b": 1, "c": True, "d": 1.5, "e": ["x", 2, False], "g": "ü\tz"}
        expected = {**headers, "b": "1", "c": "true", "d": "1.5", "e": "x,2,false"}
        pairs = shaped({"statusCode": 200, "headers": headers})[1]
        self.assertEqual(pairs[:-1], [list(pair) for pair in expected.items()])
        self.assertEqual(pairs[-1:], self.JSON)
        bad_names = ({"": "a"}, {"ü": "a"}, {1: "a"}, {"a b": "c"})
        bad_values = ({"a": None}, {"a": "b\n"}, {"a": {}}, {"a": [[]]})
        for headers in (3, "a", [["a", "b"]], *bad_names, *bad_values):
            with self.assertRaises(Fault, msg=headers):
                http.shape({"statusCode": 200, "headers": headers})

    def test_own_content_type_stays(self):
        own = {"Content-Type": "text/html"}
        pairs = shaped({"statusCode": 200, "headers": own, "body": "x"})[1]
        self.assertEqual(pairs, [["Content-Type", "text/html"]])

    def test_cookies(self):
        pairs = shaped({"statusCode": 200, "cookies": ["a=1; Path=/", "b=2"]})[1]
        self.assertEqual(pairs[1:], [["set-cookie", "a=1; Path=/"], ["set-cookie", "b=2"]])

    def test_bodies(self):
        cases = (
            ("text", None, "text", self.JSON),
            ("YWJj", True, b"abc", self.BINARY),
            ("YW\nJj\n", True, b"abc", self.BINARY),
            (b"YWJj", True, b"abc", self.BINARY),
            (b"\x00", None, b"\x00", self.BINARY),
            (bytearray(b"a"), False, b"a", self.BINARY),
            ({"a": 1}, None, b'{"a":1}', self.JSON),
            (3, None, b"3", self.JSON),
        )
        for body, encoded, expected, headers in cases:
            value = {"statusCode": 200, "body": body, "isBase64Encoded": encoded}
            self.assertEqual(shaped(value), (200, headers, expected), body)

    def test_what_json_cannot_say(self):
        for value in ({1}, b"x", float("inf"), {"statusCode": 200, "body": {1}}):
            with self.assertRaises(Fault) as caught:
                http.shape(value)
            self.assertEqual(caught.exception.error_type, "Runtime.MarshalError")

    def test_streams(self):
        def pieces():
            yield b"a"

        async def later():
            yield b"a"

        for stream in (pieces(), later(), iter([])):
            self.assertEqual(shaped(stream), (200, self.BINARY, stream))
            self.assertIs(shaped({"statusCode": 200, "body": stream})[2], stream)


if __name__ == "__main__":
    unittest.main()
