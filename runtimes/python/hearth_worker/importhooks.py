"""Calls back when a module is imported, so that modules a function does not import cost nothing.

The standard library's own way: a finder on `sys.meta_path`, which steps aside once it has nothing left to wait for.
"""

import sys

_FINDER = None


def on_import(name, action):
    """Calls `action(module)` right after the module of this name has been imported; at once if it has been."""
    global _FINDER
    module = sys.modules.get(name)
    if module is not None:
        action(module)
        return
    if _FINDER is None:
        _FINDER = _Finder()
    if not _FINDER.actions:
        sys.meta_path.insert(0, _FINDER)
    _FINDER.actions.setdefault(name, []).append(action)


def forget(name, action):
    """The action is no longer wanted."""
    actions = _FINDER.actions if _FINDER is not None else {}
    if action in actions.get(name, ()):
        actions[name].remove(action)
        if not actions[name]:
            _FINDER.take(name)


class _Finder:
    """Lets the other finders find, and puts its own loader around theirs."""

    __slots__ = ("actions",)

    def __init__(self):
        self.actions = {}

    def find_spec(self, name, path=None, target=None):
        if name not in self.actions:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None

    def take(self, name):
        """The actions for this module, which are now this caller's."""
        actions = self.actions.pop(name, ())
        if not self.actions and self in sys.meta_path:
            sys.meta_path.remove(self)
        return actions


class _Loader:
    """A loader that is gone when the module is there: `__loader__` and `__spec__` show the one it stood for."""

    __slots__ = ("_loader",)

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        for action in _FINDER.take(module.__name__):
            action(module)
