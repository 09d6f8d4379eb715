"""Makes the golden values of the statistics' tests with SciPy 1.17.1 and NumPy 2.4.6:

    python3 -m venv /tmp/scipy && /tmp/scipy/bin/pip install scipy==1.17.1 numpy==2.4.6
    /tmp/scipy/bin/python lab/tests/golden/make.py

SciPy draws its resamples' indices from a generator that gives those of the tests, so that both resample alike and the
intervals must agree to rounding.
"""

import json
import pathlib
import warnings

import numpy as np
import scipy
from scipy.special import ndtri
from scipy.stats import PermutationMethod, bootstrap, wilcoxon

HERE = pathlib.Path(__file__).parent


class Indices(np.random.Generator):
    """A linear congruential generator; the tests have the same."""

    def __init__(self, seed):
        super().__init__(np.random.PCG64(0))
        self.state = seed

    def integers(self, low, high=None, size=None, **kwargs):
        assert low == 0
        out = np.empty(int(np.prod(size)), dtype=np.int64)
        for at in range(out.size):
            self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
            out[at] = (self.state >> 33) % high
        return out.reshape(size)


def median_difference(first, second, axis=-1):
    return np.median(second, axis=axis) - np.median(first, axis=axis)


def case(name, seed, first, second=None, resamples=2000, confidence=0.99):
    data = (first,) if second is None else (first, second)
    statistic = np.median if second is None else median_difference
    found = {}
    for method in ("percentile", "BCa"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = bootstrap(
                data,
                statistic,
                n_resamples=resamples,
                confidence_level=confidence,
                method=method,
                vectorized=True,
                rng=Indices(seed),
            )
        interval = [float(end) for end in result.confidence_interval]
        found[method] = None if any(np.isnan(interval)) else interval
    return {
        "name": name,
        "seed": seed,
        "resamples": resamples,
        "confidence": confidence,
        "first": [float(x) for x in first],
        "second": None if second is None else [float(x) for x in second],
        "estimate": float(statistic(*data)),
        "percentile": found["percentile"],
        "bca": found["BCa"],
    }


random = np.random.default_rng(18)
cases = [
    case("45 trials, normal", 1, random.normal(0.05, 0.02, 45).round(6)),
    case("45 trials, no change", 2, random.normal(0.0, 0.03, 45).round(6)),
    case("135 trials, skewed", 3, random.exponential(2.0, 135).round(6)),
    case("an even number, heavy tail", 4, random.pareto(1.5, 30).round(6)),
    case("10 trials, 95 %", 5, random.normal(10, 1, 10).round(6), resamples=999, confidence=0.95),
    case("ties", 6, random.integers(1, 5, 45).astype(float)),
    case("all alike", 7, np.full(12, 3.0), resamples=200),
    case("two samples", 8, random.normal(10, 1, 40).round(6), random.normal(10.4, 1.2, 55).round(6)),
    case("two skewed samples", 9, random.exponential(1, 31).round(6), random.exponential(1, 30).round(6)),
]
text = json.dumps({"scipy": scipy.__version__, "numpy": np.__version__, "cases": cases}, indent=1)
(HERE / "bootstrap.json").write_text(text + "\n")

probabilities = [1e-300, 1e-12, 0.005, 0.01, 0.2, 0.7, 0.995, 0.999999]
rows = "".join(f"    ({p!r}, {float(ndtri(p))!r}),\n" for p in probabilities)
(HERE / "ndtri.in").write_text(f"[\n{rows}]\n")


def signed_rank(name, differences, method):
    p = wilcoxon(differences, correction=True, method=method).pvalue
    return {"name": name, "differences": [float(x) for x in differences], "p": float(p)}


# All permutations of signs of up to 14 differences.
permutations = PermutationMethod(n_resamples=2**14)
cases = [
    signed_rank("45, no change", random.normal(0.0, 0.03, 45).round(6), "exact"),
    signed_rank("45, changed", random.normal(0.05, 0.05, 45).round(6), "exact"),
    signed_rank("45, faster, heavy tail", (random.standard_t(1.5, 45) - 1.0).round(6), "exact"),
    signed_rank("10, all slower", random.exponential(1.0, 10).round(6), "exact"),
    signed_rank("12, ties", random.integers(1, 5, 12).astype(float) - 1.5, permutations),
    signed_rank("200, no change", random.normal(0.0, 0.03, 200).round(6), "asymptotic"),
    signed_rank("200, changed", random.normal(0.01, 0.03, 200).round(6), "asymptotic"),
    signed_rank("90, ties and none", random.integers(-3, 5, 90).astype(float), "asymptotic"),
]
(HERE / "signed_rank.json").write_text(json.dumps(cases, indent=1) + "\n")
