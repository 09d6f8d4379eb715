"""A plugin of pytest: writes the ids of the tests that use pytest-benchmark's fixture, and spares it what nobody reads."""

import json


def pytest_addoption(parser):
    parser.addoption("--hearth-suite-found")


def pytest_collection_finish(session):
    path = session.config.getoption("--hearth-suite-found")
    if path is None:
        return
    fixtures = {"benchmark", "benchmark_weave"}
    names = [item.nodeid for item in session.items if fixtures & set(getattr(item, "fixturenames", ()))]
    with open(path, "w", encoding="utf-8") as found:
        json.dump(names, found)


def pytest_benchmark_generate_machine_info(config):
    """Asking for the processor's name takes longer than most benchmarks."""
    return {"node": "hearth"}


def pytest_benchmark_generate_commit_info(config):
    return {"id": "unknown"}
