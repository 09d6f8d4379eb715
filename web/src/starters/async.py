import asyncio
import time


async def step(number, seconds):
    print(f"step {number} started")
    await asyncio.sleep(seconds)
    print(f"step {number} done")
    return number


async def handler(event, context):
    """An `async def` handler works as well: the three steps wait at the same time."""
    began = time.monotonic()
    done = await asyncio.gather(step(1, 0.03), step(2, 0.02), step(3, 0.01))
    return {
        "steps": done,
        "seconds": round(time.monotonic() - began, 3),
        "ms_left": context.get_remaining_time_in_millis(),
    }
