"""Random bytes and generators created by the import, which forks would share.

During the import, `Watch` records which generators were created without a seed, so that each instance can reseed them
(`renewals`), and how many random bytes were drawn for unknown use (`report`). Afterwards it restores the functions that
it wrapped.
"""

import os
import posix
import sys

from .importhooks import forget, on_import

# Lines of code that a report names.
PLACES = 3

# What draws bytes for itself, and is renewed or of no use to anybody else.
_OWN = frozenset(("multiprocessing.process",))


class Watch:
    """From before the import to its end."""

    def __init__(self, code_dir):
        self._code_dir = code_dir.rstrip("/") + "/"
        self._replaced = []
        self._generators = {}
        self._entropy = set()
        self._is_seeding = False
        self._bytes = 0
        self._places = []
        self._hooks = {
            "random": self._watch_random,
            "ssl": self._watch_ssl,
            "numpy.random.bit_generator": self._watch_numpy,
        }

    def begin(self):
        counted = self._counted(os.urandom)
        for module in (os, posix):
            self._replace(module, "urandom", counted)
        counted = self._counted(os.getrandom)
        for module in (os, posix):
            self._replace(module, "getrandom", counted)
        for name, action in self._hooks.items():
            on_import(name, action)

    def end(self):
        """Takes away what was put in: also where a module has taken a name from another one."""
        for name, action in self._hooks.items():
            forget(name, action)
        originals = {id(mine): (mine, theirs) for _, _, mine, theirs in self._replaced}
        for owner, name, mine, theirs in self._replaced:
            if getattr(owner, name, None) is mine:
                setattr(owner, name, theirs)
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", None)
            if type(names) is not dict:
                continue
            for name, value in list(names.items()):
                mine, theirs = originals.get(id(value), (None, None))
                if mine is not None and mine is value:
                    names[name] = theirs

    def report(self):
        """What could not be renewed: how many bytes, and where they were drawn first; None when there is nothing."""
        if self._bytes == 0:
            return None
        return {"bytes": self._bytes, "places": self._places}

    def renewals(self):
        """What to call in every child, one for each generator without a seed that is still in use."""
        found = []
        for reference, is_seeded in self._generators.values():
            generator = reference()
            if generator is not None and not is_seeded:
                found.append(_reseeding(generator))
        if self._entropy:
            found += self._numpy_renewals()
        return found

    def _replace(self, owner, name, mine):
        self._replaced.append((owner, name, mine, getattr(owner, name)))
        setattr(owner, name, mine)

    def _counted(self, draw):
        def counted(size, *args, **kwargs):
            drawn = draw(size, *args, **kwargs)
            if not self._is_seeding:
                self._count(len(drawn))
            return drawn

        counted.__name__ = counted.__qualname__ = draw.__name__
        counted.__doc__ = draw.__doc__
        return counted

    def _count(self, size):
        frame = sys._getframe(2)
        if frame.f_globals.get("__name__") in _OWN:
            return
        self._bytes += size
        if len(self._places) < PLACES:
            place = self._place(frame)
            if place not in self._places:
                self._places.append(place)

    def _place(self, frame):
        """The line of the function's own code that led here, dependencies included."""
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(self._code_dir):
                return f"{name[len(self._code_dir):]}:{frame.f_lineno}"
            frame = frame.f_back
        return where

    def _watch_random(self, random):
        def note(generator, is_seeded):
            try:
                self._generators[id(generator)] = (_weakref_to(generator), is_seeded)
            except TypeError:
                # Of a class without weak references: left as it is.
                pass

        seed, setstate = random.Random.seed, random.Random.setstate

        def noted_seed(self, a=None, *args, **kwargs):
            seed(self, a, *args, **kwargs)
            note(self, a is not None)

        def noted_setstate(self, state):
            setstate(self, state)
            note(self, True)

        self._replace(random.Random, "seed", noted_seed)
        self._replace(random.Random, "setstate", noted_setstate)

    def _watch_ssl(self, ssl):
        if hasattr(ssl, "RAND_bytes"):
            self._replace(ssl, "RAND_bytes", self._counted(ssl.RAND_bytes))

    def _watch_numpy(self, module):
        """Every generator without a seed gets one from here."""
        randbits = getattr(module, "randbits", None)
        if randbits is None:
            return

        def noted(bits):
            self._is_seeding = True
            try:
                entropy = randbits(bits)
            finally:
                self._is_seeding = False
            self._entropy.add(entropy)
            return entropy

        self._replace(module, "randbits", noted)

    def _numpy_renewals(self):
        import gc

        numpy_random = sys.modules.get("numpy.random")
        if numpy_random is None or len(self._entropy) == 1:
            # The one that the module makes for itself, which is renewed anyhow.
            return []
        kinds = (numpy_random.BitGenerator, numpy_random.RandomState)
        made = [thing for thing in gc.get_objects() if isinstance(thing, kinds)]
        own = getattr(numpy_random.mtrand, "_rand", None)
        unseeded, legacy = [], []
        for thing in made:
            if thing is own:
                continue
            is_legacy = isinstance(thing, kinds[1])
            generator = thing._bit_generator if is_legacy else thing
            sequence = getattr(generator, "seed_seq", None) or getattr(generator, "_seed_seq", None)
            # One with a seed has other entropy; one with a seed of the old kind has no sequence.
            if getattr(sequence, "entropy", None) in self._entropy:
                (legacy if is_legacy else unseeded).append(thing)
        return [_numpy_reseeding(thing) for thing in unseeded] + [_legacy_reset(thing) for thing in legacy]


def _weakref_to(thing):
    import _weakref

    return _weakref.ref(thing)


def _reseeding(generator):
    import _random

    def reseed():
        # What `seed()` comes to: the method of the C class, and no value left over from before.
        generator.gauss_next = None
        _random.Random.seed(generator)

    return reseed


def _numpy_reseeding(generator):
    def reseed():
        generator.state = type(generator)().state

    return reseed


def _legacy_reset(generator):
    def reset():
        # Its bit generator has been seeded; it may keep a value of a pair.
        state = generator.get_state(legacy=False)
        state["has_gauss"] = 0
        generator.set_state(state)

    return reset
