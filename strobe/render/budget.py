"""How much of a reply fits. Sizes are in tokens, estimated from above so that no vocabulary has to be shipped.

The estimate is checked in tests/unit/test_render.py against the o200k_base tokenizer: it must not be below it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

DEFAULT_TOKENS: Final = 4000
SHORTEST_TOKENS: Final = 500  # below this no reply can say what it left out
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_NUMBERS: Final = re.compile(r"[0-9]+")
_SIGNS: Final = re.compile(r"[^A-Za-z0-9\s\x80-\U0010ffff]+|[ \t]{2,}|[\n\r]+")
_FOREIGN: Final = re.compile(r"[^\x00-\x7f]")
_LETTERS_PER_TOKEN: Final = 8
_WORD_LETTERS_MAX: Final = 12  # longer runs are no words (encoded data): half a token a letter
_DIGITS_PER_TOKEN: Final = 3
_SIGNS_PER_TOKEN: Final = 3
_FOREIGN_TOKENS: Final = 3
_MARGIN: Final = 12  # one more per 12, for text that breaks badly


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, rather too many than too few: a word costs one per 8 letters, a number one per 3 digits, other signs one per 3."""
    words = sum([_word_tokens(len(word)) for word in _WORDS.findall(text)])
    numbers = sum([-(-len(number) // _DIGITS_PER_TOKEN) for number in _NUMBERS.findall(text)])
    signs = sum([-(-len(run) // _SIGNS_PER_TOKEN) for run in _SIGNS.findall(text)])
    foreign = 0 if text.isascii() else _FOREIGN_TOKENS * len(_FOREIGN.findall(text))
    total = words + numbers + signs + foreign
    return total + total // _MARGIN


@lru_cache(maxsize=256)
def _word_tokens(letters: int) -> int:
    return -(-letters // (_LETTERS_PER_TOKEN if letters <= _WORD_LETTERS_MAX else 2))


def compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def reply_tokens(structured: Mapping[str, Any], text: str) -> int:
    """Size of both forms of a reply together: clients differ in which one they hand to the model."""
    return estimate_tokens(compact_json(structured)) + estimate_tokens(text)


def fit_lists(structured: dict[str, Any], cuttable: Sequence[str], render: Callable[[dict[str, Any]], str], limit: int) -> tuple[dict[str, Any], str]:
    """Shortens the lists named in `cuttable` (least needed first) until the reply is within `limit` tokens.

    Whole items go, from the end of a list; `leftOut` {field: how many} says what went. Fields not in `cuttable` stay whatever they cost.
    """
    text = render(structured)
    left_out: dict[str, int] = {}
    for field in cuttable:
        whole = structured.get(field)
        if not isinstance(whole, list) or not whole:
            continue
        if reply_tokens(structured, text) <= limit:
            break
        structured, text = _shorten(structured, field, left_out, render, limit)
    return structured, text


def _shorten(
    structured: dict[str, Any], field: str, left_out: dict[str, int], render: Callable[[dict[str, Any]], str], limit: int
) -> tuple[dict[str, Any], str]:
    """The longest beginning of one list with which the reply fits (none of it, when even that does not help)."""
    whole = structured[field]
    low, high = 0, len(whole) - 1
    best = _with_first(structured, field, 0, left_out)
    while low <= high:
        middle = (low + high) // 2
        candidate = _with_first(structured, field, middle, left_out)
        if reply_tokens(candidate, render(candidate)) <= limit:
            best, low = candidate, middle + 1
        else:
            high = middle - 1
    left_out[field] = len(whole) - len(best[field])
    return best, render(best)


def _with_first(structured: dict[str, Any], field: str, count: int, left_out: Mapping[str, int]) -> dict[str, Any]:
    whole = structured[field]
    return {**structured, field: whole[:count], "leftOut": {**left_out, field: len(whole) - count}}
