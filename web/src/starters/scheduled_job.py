"""A job for cron. It remembers its last run and reports what it did.

Hearth has no scheduler of its own: let cron call it. This line of `crontab -e` runs it every five minutes:

    */5 * * * * curl -fsS -H "Authorization: Bearer $HEARTH_TOKEN" -d '{"source":"cron"}' URL-OF-HEARTH/api/v1/functions/NAME/invoke

The instances of a version share /tmp, which is lost with them: after a deploy, a restart or a long idle time.
Use it as a cache; keep nothing there that must not be lost.
"""

import json
import os
import random
from datetime import UTC, datetime

STATE = "/tmp/state.json"


def handler(event, context):
    state = load()
    now = datetime.now(UTC)
    found = look_for_work(state["last"])
    state = {"runs": state["runs"] + 1, "last": now.isoformat(timespec="seconds"), "done": state["done"] + found}
    save(state)
    source = event.get("source", "by hand") if isinstance(event, dict) else "by hand"
    print(f"run {state['runs']} ({source}): {found} items done now, {state['done']} in all")
    return {"run": state["runs"], "items": found, "total": state["done"], "at": state["last"]}


def look_for_work(since):
    """Put the real work here: find what is new since the last run. This example makes up a number."""
    print(f"looking for new items since {since or 'the beginning'}")
    return random.randint(1, 10)


def load():
    try:
        with open(STATE) as file:
            return json.load(file)
    except FileNotFoundError:
        return {"runs": 0, "last": None, "done": 0}


def save(state):
    """Atomic: a run that is killed leaves the old state."""
    with open(STATE + ".new", "w") as file:
        json.dump(state, file)
    os.replace(STATE + ".new", STATE)
