"""Words that a command needs before anything large is imported."""

from __future__ import annotations


def shortened(text: str, longest: int) -> str:
    """A text of at most that many characters, its middle left out."""
    if len(text) <= longest:
        return text
    end = (longest - 5) // 3
    return f"{text[: longest - 5 - end]} ... {text[-end:]}"
