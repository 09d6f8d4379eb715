import sys

import pyperf
from words import count

TEXT = "word " * 100

runner = pyperf.Runner()
for size in [10, 1000]:
    runner.bench_func(f"count {size}", count, "word " * size)
runner.timeit("count in a statement", "count(TEXT)", globals=globals())
runner.bench_command("interpreter", [sys.executable, "-I", "-S", "-c", "pass"])
