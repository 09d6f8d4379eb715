"""Entry of a function's template: `/usr/bin/python3 -I bootstrap.py` with the control socket on
descriptor 3.
"""

import sys

# The code is read-only inside the sandbox, so byte code could not be kept.
sys.dont_write_bytecode = True
sys.path.insert(0, __file__.rpartition("/")[0] or ".")

from hearth_worker import atfork  # noqa: E402  (found through the line above)

# Before the first import that registers a handler.
atfork.install()

from hearth_worker import template  # noqa: E402

# `multiprocessing` runs this file again, under another name, in the processes that it spawns.
if __name__ == "__main__":
    template.main()
