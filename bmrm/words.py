"""Words of users in messages; imports nothing of ours."""

from __future__ import annotations

import re

LONGEST = 300
"""Most characters of a word in a message."""
_LONG = re.compile(rf"\S{{{LONGEST + 1},}}")


def shortened(message: str) -> str:
    """The message, words such as numbers of thousands of digits cut in the middle."""
    return _LONG.sub(lambda word: f"{word[0][:200]}...{word[0][-50:]}", message)


def short_of_memory(error: MemoryError) -> str:
    """What could not be had, in words."""
    return f"memory is short: {said}" if (said := str(error)) else "memory is short"
