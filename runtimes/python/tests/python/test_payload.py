"""Payloads: what the native half reads and writes is what `json` would, and the rest is `json`'s."""

import collections
import decimal
import enum
import json
import math
import random
import unittest

from hearth_runtime import read_json, write_json
from hearth_worker import payload
from hearth_worker.errors import Fault


class Level(enum.IntEnum):
    HIGH = 3


class Text(str):
    def __str__(self):
        return "not this"


def written(value):
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=float
    ).encode()


def same(one, other):
    """Equal, in the same order, and of the same types all the way down; 0.0 is not -0.0."""
    return repr(one) == repr(other)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


PLAIN = [
    None,
    True,
    False,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    0.0,
    -0.0,
    1.0,
    0.1,
    1e16,
    1e-7,
    5e-324,
    1.7976931348623157e308,
    123456789012345680.0,
    "",
    "a",
    "ü\U0001f525\u2028\x7f",
    "\x00\x01\x08\t\n\x0b\x0c\r\x1f\"\\/",
    "x" * 31 + '"' + "y" * 40,
    [],
    {},
    (),
    [[], {}, ()],
    {"": {"a": [1, 2.5, None, True]}, "ü": "ü"},
    [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
    nested(100),
]

# Values that `json` writes, and the native half leaves to it.
SPECIAL = [
    2**63,
    -(2**63) - 1,
    10**40,
    Level.HIGH,
    {"level": Level.HIGH},
    Text("this"),
    {Text("key"): 1},
    collections.OrderedDict(b=1, a=2),
    collections.namedtuple("Pair", "a b")(1, 2),
    {1: "a", None: "b", True: "c", 2.5: "d"},
    decimal.Decimal("1.5"),
    nested(101),
    nested(300),
]

# Values that JSON cannot say.
UNSAYABLE = [
    math.nan,
    -math.inf,
    [1, math.inf],
    "\ud800",
    {"\udfff": 1},
    {1, 2},
    b"bytes",
    object(),
    {(1, 2): 3},
    nested(100_000),
]

# Texts with what has more than one way to be read.
TEXTS = [
    "0",
    "-0",
    "-0.0",
    "0e0",
    "1E5",
    "1e400",
    "-1e400",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "-9223372036854775809",
    "1" + "0" * 60,
    "9223372036854775808.0",
    "1e19",
    "0.1",
    "2.2250738585072011e-308",
    "0.30000000000000004",
    "179769313486231580793728971405301e276",
    ' \t\r\n{ "a" : [ 1 , 2 ] } \n',
    '{"a":1,"b":2,"a":3}',
    '"\\u00e9\\ud83d\\udd25\\/\\b\\f\\n\\r\\t\\"\\\\"',
    '"\\ud800"',
    '["\\udc00\\ud800"]',
    '{"\\ud800":1}',
    '"\\u0000"',
    "[" * 127 + "]" * 127,
    "[" * 128 + "]" * 128,
    "[" * 300 + "]" * 300,
    json.dumps([{"id": n, "name": str(n), "x": n / 7} for n in range(100)]),
]


def anything(source, depth=4):
    """A random value of all plain kinds."""
    kind = source.randrange(8 if depth else 6)
    if kind == 0:
        return source.choice([None, True, False])
    if kind == 1:
        return source.randrange(-(2 ** source.randrange(1, 64)), 2 ** source.randrange(1, 63))
    if kind == 2:
        return source.uniform(-1, 1) * 10.0 ** source.randrange(-320, 308)
    if kind in (3, 4, 5):
        letters = 'ab"\\\n\t\x00\x1f é€\U0001f525\ud7ff'
        return "".join(source.choices(letters, k=source.randrange(0, 80)))
    items = [anything(source, depth - 1) for _ in range(source.randrange(0, 6))]
    if kind == 6:
        return items
    return {str(anything(source, 0)): item for item in items}


class Payload(unittest.TestCase):
    def test_plain_values_are_written_natively_and_as_json_writes_them(self):
        for value in PLAIN:
            with self.subTest(value=repr(value)[:60]):
                self.assertEqual(write_json(value), written(value))
                self.assertEqual(payload.encode(value), written(value))

    def test_special_values_are_left_to_json(self):
        for value in SPECIAL:
            with self.subTest(value=repr(value)[:60]):
                self.assertIsNone(write_json(value))
                self.assertEqual(payload.encode(value), written(value))

    def test_what_json_cannot_say_is_a_fault(self):
        circle = []
        circle.append(circle)
        for value in [*UNSAYABLE, circle]:
            with self.subTest(value=repr(type(value))):
                with self.assertRaises(Fault) as raised:
                    payload.encode(value)
                self.assertEqual(raised.exception.error_type, "Runtime.MarshalError")

    def test_texts_are_read_as_json_reads_them(self):
        for text in TEXTS:
            with self.subTest(text=text[:60]):
                expected = json.loads(text)
                try:
                    value = read_json(text.encode())
                except ValueError:
                    value = payload.decode(text)
                self.assertTrue(same(value, expected), f"{value!r} for {expected!r}")

    def test_common_texts_are_read_natively(self):
        for value in PLAIN:
            if value == 0.0 and math.copysign(1, value) < 0 or value == 1.7976931348623157e308:
                continue
            with self.subTest(value=repr(value)[:60]):
                self.assertTrue(same(read_json(written(value)), json.loads(written(value))))

    def test_wrong_texts_are_refused(self):
        for text in ["", " ", "{", "[1,]", "{'a':1}", "01", "1.", "nul", "NaN", "1 2", '"\n"', '"\xff']:
            with self.subTest(text=text), self.assertRaises(ValueError):
                read_json(text.encode("latin-1"))

    def test_random_values_come_back_as_they_were(self):
        seed = random.randrange(2**32)
        source = random.Random(seed)
        for _ in range(2000):
            value = anything(source)
            text = payload.encode(value)
            self.assertEqual(text, written(value), f"seed {seed}")
            try:
                back = read_json(text)
            except ValueError:
                back = payload.decode(text)
            self.assertTrue(same(back, json.loads(text)), f"seed {seed}: {text!r}")

    def test_rows_share_their_keys(self):
        one, other = read_json(b'[{"the key": 1}, {"the key": 2}]')
        self.assertIs(next(iter(one)), next(iter(other)))


if __name__ == "__main__":
    unittest.main()
