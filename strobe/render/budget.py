"""How much of a reply fits. Sizes are in tokens, estimated from above so that no vocabulary has to be shipped.

The estimate is checked in tests/unit/test_render.py against the o200k_base tokenizer: it must not be below it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

DEFAULT_TOKENS: Final = 4000
SHORTEST_TOKENS: Final = 500  # below this no reply can say what it left out
# Pieces that cost one token each: up to 8 letters of a word, 3 digits, 3 other signs. A run of over 12 letters is no word (encoded data)
# and one piece. Which alternative stands first matters for speed alone.
_PIECES: Final = re.compile(
    r"[a-z]{13,}|[a-z]{1,8}|[0-9]{1,3}|[!-/:-@\[-`{-\x7f\x00-\x08\x0b\x0c\x0e-\x1b]{1,3}|[A-Z][a-z]{1,7}|[A-Z]{13,}|[A-Z]{1,8}|[ \t]{2,4}|[\n\r]{1,3}"
)
_FOREIGN: Final = re.compile(r"[^\x00-\x7f]")
_WORD_LETTERS_MAX: Final = 12
_FOREIGN_TOKENS: Final = 3
_MARGIN: Final = 12  # one more per 12, for text that breaks badly
_SHORT_TEXT: Final = 240  # such texts come again (names, files, types): what they cost is remembered


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, rather too many than too few."""
    return _with_margin(_pieces(text))


def json_tokens(value: Any) -> int:
    """Tokens of compact_json(value), rather too many than too few, without writing it: what an event costs is known by its fields."""
    return _with_margin(_json_pieces(value))


def texts_tokens(texts: Sequence[str]) -> int:
    """Tokens of several texts in one line. Names, places and types come again and are measured once."""
    return _with_margin(sum([_pieces_again(text) if len(text) <= _SHORT_TEXT else _pieces(text) for text in texts]))


@lru_cache(maxsize=4096)
def _pieces_again(text: str) -> int:
    return _pieces(text)


def _with_margin(pieces: int) -> int:
    return pieces + pieces // _MARGIN


def _pieces(text: str) -> int:
    found = _PIECES.findall(text)
    total = len(found)
    if total and max(map(len, found)) > _WORD_LETTERS_MAX:  # half a token a letter
        total += sum([(len(piece) - 1) // 2 for piece in found if len(piece) > _WORD_LETTERS_MAX])
    return total if text.isascii() else total + _FOREIGN_TOKENS * len(_FOREIGN.findall(text))


def _json_pieces(value: Any) -> int:
    """Quotes, commas and brackets: two pieces a member, what surrounds its key and what follows its value."""
    kind = type(value)
    if kind is str:
        return _text_pieces(value)
    if kind is int:
        return 1 + len(str(value)) // 3
    if kind is dict:
        return 2 + sum([2 + _short_pieces(key) + _json_pieces(item) for key, item in value.items()])
    if kind is list:
        return 2 + sum([1 + _json_pieces(item) for item in value])
    return 1 if value is None or kind is bool else _pieces(compact_json(value))


def _text_pieces(text: str) -> int:
    """Without its quotes. A number at the end (that of an event's id) is counted apart: the rest comes again."""
    if text[-1:].isdecimal():
        head, dash, number = text.rpartition("-")
        if dash and number.isdecimal():
            return 1 + (len(number) + 2) // 3 + _any_pieces(head)
    return _any_pieces(text)


def _any_pieces(text: str) -> int:
    return _short_pieces(text) if len(text) <= _SHORT_TEXT else _pieces(compact_json(text))


@lru_cache(maxsize=4096)
def _short_pieces(text: str) -> int:
    return _pieces(compact_json(text)[1:-1])


def compact_json(value: Any) -> str:
    """As it is sent: not one byte more than needed. Numbers of more than 64 bits, which orjson refuses, are rare."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
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
