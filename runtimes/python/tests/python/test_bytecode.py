"""The compiler of packages, run as the server runs it."""

import importlib.util
import marshal
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import bytecode


def frames(stream):
    """What one stream brought, and whether it came to its end."""
    found = {}
    while stream:
        path, code = (int.from_bytes(stream[at : at + 4], "little") for at in (0, 4))
        if path == code == 0:
            return found, len(stream) == 8
        found[stream[8 : 8 + path].decode()] = stream[8 + path : 8 + path + code]
        stream = stream[8 + path + code :]
    return found, False


class Compiling(unittest.TestCase):
    def compile(self, sources):
        with tempfile.TemporaryDirectory() as root:
            for path, source in sources.items():
                place = pathlib.Path(root, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(source)
            ran = subprocess.run(
                [sys.executable, "-IS", bytecode.__file__, root], capture_output=True, check=True
            )
        first, first_ended = frames(ran.stdout)
        second, second_ended = frames(ran.stderr)
        self.assertTrue(first_ended and second_ended)
        self.assertFalse(first.keys() & second.keys())
        return first | second

    def test_a_source_becomes_what_import_takes_unchecked(self):
        source = b"def answer():\n    return 42\n"
        code = self.compile({"pkg/mod.py": source})["pkg/mod.py"]
        self.assertEqual(code[:4], importlib.util.MAGIC_NUMBER)
        self.assertEqual(code[4:8], b"\1\0\0\0")
        self.assertEqual(code[8:16], importlib.util.source_hash(source))
        names = {}
        exec(marshal.loads(code[16:]), names)
        self.assertEqual(names["answer"](), 42)

    def test_what_does_not_compile_costs_only_itself(self):
        sources = {f"good{number}.py": b"x = 1\n" * number for number in range(40)}
        bad = {
            "syntax.py": b"def broken(:\n",
            "encoding.py": b"x = '\xff'\n",
            "nul.py": b"x = 1\0\n",
            "warns.py": b"assert (1, 'true')\n",
            # Some versions of the interpreter end at such.
            "deep.py": b"x = " + b"-" * 200_000 + b"1\n",
            "wide.py": b"x = a" + b".a" * 200_000 + b"\n",
        }
        made = self.compile(sources | bad)
        self.assertLessEqual(sources.keys(), made.keys())
        self.assertIn("warns.py", made)
        for path in ("syntax.py", "encoding.py", "nul.py"):
            self.assertNotIn(path, made)

    def test_tests_and_huge_files_are_left_out(self):
        made = self.compile(
            {
                "a.py": b"",
                "pkg/tests/test_a.py": b"",
                "data.txt": b"",
                "huge.py": b"#" * (bytecode.SOURCE_BYTES_MAX + 1),
            }
        )
        self.assertEqual(list(made), ["a.py"])

    def test_a_worker_that_is_killed_is_followed_by_another(self):
        mark = bytearray(8)
        first = [b"x = 1\n"]
        with tempfile.TemporaryDirectory() as root:
            for name in ("a.py", "b.py"):
                pathlib.Path(root, name).write_bytes(first[0])
            # As if the first had ended the process that compiled it.
            mark[0] = 1
            reader, writer = os.pipe()
            bytecode.work(root, ["a.py", "b.py"], writer, mark)
            os.close(writer)
            with open(reader, "rb") as stream:
                found, ended = frames(stream.read())
        self.assertEqual((list(found), ended), (["b.py"], True))
