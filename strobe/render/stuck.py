"""What the stuck-detector found, in words."""

from __future__ import annotations

from typing import Final

from strobe.model.stuck import ThreadStack, Verdict

FRAMES_SHOWN: Final = 12


def frames_in_words(stack: ThreadStack) -> list[str]:
    """The innermost frames: `function, file:line`."""
    frames = stack.frames[:FRAMES_SHOWN]
    return [f"{frame.function or hex(frame.address)}{f', {frame.file}:{frame.line}' if frame.file and frame.line else ''}" for frame in frames]


def verdict_in_words(verdict: Verdict) -> str:
    """`deadlock, proven: …`."""
    return f"{verdict.kind.replace('_', ' ')}, {verdict.certainty}: {verdict.summary}"
