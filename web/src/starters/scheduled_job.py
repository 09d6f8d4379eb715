"""A job that something calls now and then. It remembers how far it came and tells what it did.

Hearth answers calls; the clock is cron's. A line of `crontab -e` that runs it every five minutes:

    */5 * * * * curl -fsS -H "Authorization: Bearer $HEARTH_TOKEN" -d '{"source":"cron"}' URL-OF-HEARTH/api/v1/functions/NAME/invoke

The instances of a version share /tmp, and it goes when they do: after a deploy, a restart, a long rest. So it is a cache.
What must never be lost belongs into a database.
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
    """Put the real work here: what is new since the last run? This one makes up a number."""
    print(f"looking for what is new since {since or 'the beginning'}")
    return random.randint(1, 10)


def load():
    try:
        with open(STATE) as file:
            return json.load(file)
    except FileNotFoundError:
        return {"runs": 0, "last": None, "done": 0}


def save(state):
    """Whole or not at all: a run that is killed leaves the old state."""
    with open(STATE + ".new", "w") as file:
        json.dump(state, file)
    os.replace(STATE + ".new", STATE)
