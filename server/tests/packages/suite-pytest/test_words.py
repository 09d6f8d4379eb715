import pytest
from words import count


@pytest.mark.parametrize("size", [10, 1000])
def test_count(benchmark, size):
    assert benchmark(count, "word " * size) == size


def test_plain():
    assert count("") == 0
