"""Finds a function's handler from its setting, `module.function`."""

import os
import sys

from .errors import Fault

# `co_flags` of `async def` functions, with and without `yield` (inspect.CO_COROUTINE,
# CO_ASYNC_GENERATOR).
_ASYNC_FLAGS = 0x80 | 0x200


def load(setting, code_dir):
    """Imports the module of `setting` from `code_dir` and returns its handler.

    The module may be dotted or, as with Lambda, written as a path: `pkg/mod.handler`. Raises
    `Fault` when the setting is malformed or names nothing callable, and whatever the import itself
    raises.
    """
    module_name, function_name = split(setting)
    sys.path[:0] = [code_dir, *_layer(code_dir, module_name)]
    __import__(module_name)
    module = sys.modules[module_name]
    try:
        handler = getattr(module, function_name)
    except AttributeError:
        raise Fault(
            "Runtime.HandlerNotFound",
            f"Handler '{function_name}' missing on module '{module_name}'",
        ) from None
    if not callable(handler):
        raise Fault(
            "Runtime.HandlerNotCallable",
            f"Handler '{function_name}' in module '{module_name}' is a "
            f"{type(handler).__name__}, not callable",
        )
    if getattr(getattr(handler, "__code__", None), "co_flags", 0) & _ASYNC_FLAGS:
        # Its first call will need it: better once here than in every instance.
        import asyncio  # noqa: F401
    return handler


def _layer(code_dir, module_name):
    """Where the modules of a Lambda layer are that was unpacked into the code, in Lambda's order."""
    layer = f"{code_dir}/python"
    site = f"{layer}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    # A package of the function's own may be called `python`: its modules are not for everybody.
    if module_name.startswith("python.") or os.path.exists(f"{layer}/__init__.py"):
        return []
    return [path for path in (site, layer) if os.path.isdir(path)]


def split(setting):
    """`pkg.mod.function` or `pkg/mod.function` as (`pkg.mod`, `function`)."""
    module_name, _, function_name = setting.rpartition(".")
    module_name = module_name.replace("/", ".")
    if not function_name.isidentifier() or not all(module_name.split(".")):
        raise Fault(
            "Runtime.MalformedHandlerName",
            f"Bad handler '{setting}': expected module.function",
        )
    return module_name, function_name
