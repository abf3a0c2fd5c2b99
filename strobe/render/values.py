"""Single values as text: times, sizes, calls, output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from strobe.render.shorten import shorten, shorten_all

LINE_TOKENS: Final = 120  # that a call's arguments, or its result, take on a line
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENUMERATOR: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_:]*(\|[A-Za-z0-9_:]+)*")
_TEXTS: Final = re.compile(r"char|[Ss]tr|path|text|raw", re.IGNORECASE)


def duration(ns: int) -> str:
    """`83 ns`, `1.25 µs`, `12.0 ms`, `3.20 s`."""
    for unit, factor in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if ns >= factor:
            return f"{ns / factor:.3g} {unit}" if ns < 1000 * factor else f"{ns / factor:.0f} {unit}"
    return f"{ns} ns"


def moment(ns: int) -> str:
    """Time since the session's start, to the microsecond: `+1.000250`."""
    return f"{'-' if ns < 0 else '+'}{abs(ns) / 1e9:.6f}"


def byte_count(number: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number} B"


def place(source_file: str | None, line: int | None) -> str:
    """`bank.c:31`: the file's last name suffices beside a function's name; the full path is in the structured form."""
    if not source_file:
        return ""
    name = source_file.rsplit("/", 1)[-1]
    return f"{name}:{line}" if line else name


def plain(value: Any, type_name: str = "") -> str:
    """A captured value on one line: `{id: 17, items: [1, 2, 3], mode: "Live"}`. Addresses of objects stand in the structured form alone.

    An enum's names are bare where the type says that they are no text.
    """
    if isinstance(value, str):
        if value.startswith(("0x", "<", "… ", "[… ", "{… ")) or (type_name and _ENUMERATOR.fullmatch(value) and not _TEXTS.search(type_name)):
            return value
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(plain, value))}]"
    return _object(value) if isinstance(value, dict) else json.dumps(value, ensure_ascii=False)


def _object(value: Mapping[str, Any]) -> str:
    if value.keys() == {"@", "*"}:
        return f"&{plain(value['*'])}"
    first = next((name for name in value if name != "@"), None)
    dynamic = value["class"] if first == "class" and isinstance(value["class"], str) else None
    hidden = ("@", "class") if dynamic else ("@",)
    parts = [f"… {one}" if name == "…" else f"{_key(name)}: {plain(one)}" for name, one in value.items() if name not in hidden]
    return f"{dynamic or ''}{{{', '.join(parts)}}}"


def _key(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def argument_list(arguments: list[Mapping[str, Any]] | None) -> str:
    """`(order={id: 17, total: -4.0}, mode=Live)`; empty when none were captured. Values that are long are shortened."""
    if arguments is None:
        return ""
    shown, _ = shorten_all([one.get("value") for one in arguments], LINE_TOKENS)
    texts = [plain(value, one.get("type") or "") for value, one in zip(shown, arguments, strict=True)]
    return "(" + ", ".join(f"{one['name']}={text}" if one.get("name") else text for text, one in zip(texts, arguments, strict=True)) + ")"


def watched(event: Mapping[str, Any]) -> str:
    """`watch counter=1 coins={dime: 3}`; empty without watches."""
    values: Mapping[str, Any] = event.get("watchValues") or {}
    shown, _ = shorten_all(list(values.values()), LINE_TOKENS)
    return " ".join(["watch", *(f"{label}={plain(value)}" for label, value in zip(values, shown, strict=True))]) if values else ""


def returned(event: Mapping[str, Any]) -> str:
    """`= {id: 17}`, or `threw std::runtime_error "out of stock"`; empty when neither is known."""
    if (exception := event.get("exception")) is not None:
        said = f" {json.dumps(shorten(exception['message'], LINE_TOKENS)[0], ensure_ascii=False)}" if exception.get("message") else ""
        return f"threw {exception.get('type', '?')}{said}"
    if "returnValue" in event:
        return f"= {plain(shorten(event['returnValue'], LINE_TOKENS)[0], event.get('returnType') or '')}"
    return "left by an exception or a jump" if event.get("unwound") else ""


def count(number: int, noun: str, several: str | None = None) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {several or noun + 's'}"
