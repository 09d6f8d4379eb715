"""The template: imports the function once, freezes the heap, then forks, or becomes an instance itself."""

import gc
import json
import os
import sys
import time

import hearth_runtime

from . import atfork, drawn, errors, handler, instance, logs, renewal, streams

# The control socket is the descriptor after stdin, stdout and stderr.
CONTROL_FD = 3
DEFAULT_CODE_DIR = "/var/task"
XRAY_DIR = "/tmp/.aws-xray"
# Most names of threads that are reported.
_NAMES_MAX = 8


def main():
    """Runs the template and, in every child it forks or when it becomes one, the instance. Does not
    return.
    """
    control = hearth_runtime.Template(CONTROL_FD)
    streams.setup()
    text = control.receive_config()
    if text is None:
        os._exit(0)
    config = json.loads(text)
    logs.setup()
    code_dir = config.get("code_dir", DEFAULT_CODE_DIR)
    watch = drawn.Watch(code_dir)
    started = time.perf_counter()
    try:
        watch.begin()
        function = handler.load(config["handler"], code_dir)
        _before_snapshot()
        watch.end()
    except BaseException as error:
        streams.flush()
        control.send(errors.to_json({"type": "import_error", "error": errors.describe(error)}))
        os._exit(1)
    import_ms = round((time.perf_counter() - started) * 1000, 3)
    worker = instance.Instance(function, config)
    renewals = renewal.steps() + watch.renewals()
    streams.flush()
    _freeze()
    version = ".".join(map(str, sys.version_info[:3]))
    drew = watch.report()
    count, names = hearth_runtime.threads_left()
    threads = {"count": count, "names": _thread_names() or names}
    booted = json.dumps(
        {
            "type": "booted",
            "runtime": version,
            "import_ms": import_ms,
            "threads": threads,
            "drawn": drew,
        }
    )
    if config.get("image"):
        # Nobody waits, and every restore will have less to map. Other templates do it when they are idle.
        hearth_runtime.compact_memory()
    has_hooks = bool(instance.after_restore())
    try:
        further = (renewal.steps_of_fork(), renewal.steps_without_fork())
        channel = control.serve(booted, renewals, *further, not has_hooks, *atfork.foreign())
    except BaseException:
        instance.die(instance.EXIT_START_FAILED)
    if channel is None:
        os._exit(0)
    worker.main(channel)


def _thread_names():
    """What Python calls the threads that it knows of: the kernel's names are all the interpreter's."""
    threading = sys.modules.get("threading")
    if threading is None:
        return []
    main = threading.main_thread()
    return [str(thread.name) for thread in threading.enumerate() if thread is not main][:_NAMES_MAX]


def _before_snapshot():
    """Runs the function's own hooks, last registered first, as AWS documents."""
    hooks = sys.modules.get("snapshot_restore_py")
    if hooks is not None:
        for hook, args, kwargs in reversed(hooks.get_before_snapshot()):
            hook(*args, **kwargs)
    _remove_xray_mark()


def _remove_xray_mark():
    """The X-Ray SDK tells a daemon by a file that it is there. Here is none, and of a version whose import leaves
    files no image is made.
    """
    try:
        os.unlink(f"{XRAY_DIR}/initialized")
        os.rmdir(XRAY_DIR)
    except OSError:
        pass


def _freeze():
    """Moves everything that is alive out of the collector's sight.

    A collection in a child would write to every object's header and so copy the template's pages.
    It stays disabled in the template, which makes no more garbage, and is enabled again in the
    child. Its pauses are counted there.
    """
    gc.callbacks.append(hearth_runtime.collector_runs)
    gc.collect()
    gc.disable()
    gc.freeze()
