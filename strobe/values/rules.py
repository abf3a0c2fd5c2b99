"""Formatters as their files say them (formatters/README.md), checked; what is wrong with a file is told, never raised."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from strobe.values.places import steps_of

FILES_MAX: Final = 64
FILE_BYTES_MAX: Final = 256 * 1024
SIZE_MAX: Final = 1 << 20  # of a type that is declared only
RULES_MAX: Final = 1000  # of all files of a folder
_NESTING_MAX: Final = 4
_HEADER: Final = re.compile(r"^\s*\[\[\s*type\s*\]\]", re.MULTILINE)
_RULE_KEYS: Final = frozenset({"name", "names", "has", "lacks", "where", "opaque", "form"})
# Of each kind of form: keys that must be there, keys that may. What they hold: p place, t type, n number, i integer, b true or false, s text, f form,
# l places, T types, c counts, u bytes of a character or its type
KINDS: Final[Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]] = {
    "text": ({"data": "p"}, {"length": "n", "unit": "u", "inline": "b", "skip": "i"}),
    "sequence": ({"data": "p"}, {"count": "n", "end": "p", "element": "t", "inline": "b"}),
    "bits": ({"data": "p"}, {"count": "n", "end": "p", "end_bit": "n", "inline": "b"}),
    "list": ({"first": "p"}, {"node": "t", "next": "p", "value": "p", "header": "i", "element": "t", "sentinel": "p", "count": "n", "shown": "s"}),
    "tree": ({"root": "p", "left": "p", "right": "p"}, {"node": "t", "value": "p", "header": "i", "element": "t", "count": "n", "shown": "s"}),
    "blocks": ({"start": "p", "element": "t"}, {"finish": "p", "first": "n", "count": "n", "block_bytes": "i", "block_least": "i"}),
    "inner": ({"value": "p"}, {}),
    "parts": ({"parts": "l"}, {}),
    "maybe": ({"there": "n", "value": "p"}, {"type": "t"}),
    "choice": ({"index": "n", "value": "p", "types": "T"}, {"none": "i"}),
    "either": ({"test": "n", "low": "i", "high": "i", "then": "f", "otherwise": "f"}, {}),
    "owner": ({"pointer": "p"}, {"target": "t", "skip": "i", "control": "p", "counts": "c", "length": "n"}),
    "erased": ({"what": "s", "code": "p", "value": "p"}, {"boxed": "b", "small": "i"}),
    "time": ({"value": "p"}, {"period": "t", "numerator": "i", "denominator": "i", "clock": "t"}),
    "complex": ({"real": "p", "imaginary": "p"}, {}),
    "hidden": ({"words": "s"}, {}),
}
_WORDS: Final = {"shown": ("list", "set", "map"), "what": ("any", "function")}
_NUMBER_KEYS: Final = frozenset({"at", "size", "mask", "shift", "scale", "plus"})
Form = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """For types called one of `names`, where all of `has` are places in the type, none of `lacks` is, and places are where `where` says. `opaque`: (size,
    alignment) of types that are declared only; the rule is for none but those."""

    names: tuple[str, ...]
    form: Form
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    where: tuple[tuple[str, int], ...] = ()
    opaque: tuple[int, int] | None = None


class _Wrong(Exception):
    """What is wrong with an entry."""


def read_folder(folder: Path) -> tuple[list[Rule], list[str]]:
    """(rules of all its *.toml files by name, warnings). A folder that is not there has none."""
    rules: list[Rule] = []
    warnings: list[str] = []
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".toml") if folder.is_dir() else []
    except OSError as error:
        return [], [f"{folder}: {error.strerror}"]
    if len(files) > FILES_MAX:
        warnings.append(f"{folder}: {len(files)} formatter files, only the first {FILES_MAX} by name are used")
    for path in files[:FILES_MAX]:
        found, wrong = read_file(path)
        warnings += wrong
        rules += found
    if len(rules) > RULES_MAX:
        warnings.append(f"{folder}: {len(rules)} formatters, only the first {RULES_MAX} are used")
    return rules[:RULES_MAX], warnings


def read_file(path: Path) -> tuple[list[Rule], list[str]]:
    try:
        if not path.is_file():
            return [], [f"{path}: not a file"]
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
        if len(raw) > FILE_BYTES_MAX:
            return [], [f"{path}: larger than {FILE_BYTES_MAX // 1024} KiB, not read"]
        text = raw.decode()
        return read_text(text, str(path))
    except OSError as error:
        return [], [f"{path}: {error.strerror}"]
    except UnicodeDecodeError as error:
        return [], [f"{path}: not UTF-8 at byte {error.start}"]


def read_text(text: str, source: str) -> tuple[list[Rule], list[str]]:
    try:
        whole = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return [], [f"{source}: {error or 'nested too deep'}"]
    entries = whole.get("type", [])
    unknown = sorted(key for key in whole if key != "type")
    warnings = [f"{source}: only [[type]] entries are known, not `{key}`" for key in unknown]
    if not isinstance(entries, list):
        return [], [*warnings, f"{source}: write [[type]], with two brackets"]
    lines = [text.count("\n", 0, match.start()) + 1 for match in _HEADER.finditer(text)]
    rules = []
    for index, entry in enumerate(entries):
        line = lines[index] if len(lines) == len(entries) else None
        try:
            rules.append(_rule(entry))
        except _Wrong as wrong:
            warnings.append(f"{source}{f', line {line}' if line else ''}, type {index + 1}: {wrong}")
    return rules, warnings


def _rule(entry: Any) -> Rule:
    if not isinstance(entry, dict):
        raise _Wrong("not a table")
    _known(entry, _RULE_KEYS)
    names = entry.get("names", [entry["name"]] if "name" in entry else [])
    if not _texts(names) or not names:
        raise _Wrong("`name` or `names` must say which types are meant, as texts")
    if "form" not in entry:
        raise _Wrong("`form` is missing")
    has, lacks, where = entry.get("has", []), entry.get("lacks", []), entry.get("where", {})
    for key, paths in (("has", has), ("lacks", lacks)):
        if not _texts(paths) or any(steps_of(path) is None for path in paths):
            raise _Wrong(f"`{key}` must be a list of places, not {paths!r:.80}")
    if not isinstance(where, dict) or not all(steps_of(path) is not None and _is_integer(offset) for path, offset in where.items()):
        raise _Wrong("`where` must be a table of places and their offsets")
    _check(entry["form"], 0)
    return Rule(tuple(names), entry["form"], tuple(has), tuple(lacks), tuple(where.items()), _opaque(entry.get("opaque")))


def _opaque(said: Any) -> tuple[int, int] | None:
    if said is None:
        return None
    is_right = isinstance(said, dict) and said.keys() == {"size", "alignment"} and all(_is_integer(one) for one in said.values())
    if not is_right or not 0 < said["size"] <= SIZE_MAX or said["alignment"] not in (1, 2, 4, 8, 16, 32, 64):
        raise _Wrong(f"`opaque` must be a table of `size` and `alignment`, in bytes, not {said!r:.80}")
    return said["size"], said["alignment"]


def _check(form: Any, nesting: int) -> None:
    if not isinstance(form, dict) or nesting > _NESTING_MAX:
        raise _Wrong("`form` must be a table" if nesting <= _NESTING_MAX else "forms are nested too deep")
    kind = form.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise _Wrong(f"`kind` must be one of {', '.join(KINDS)}, not {kind!r:.40}")
    needed, allowed = KINDS[kind]
    _known(form, {"kind", *needed, *allowed}, f" of a form of kind {kind}")
    for key in needed:
        if key not in form:
            raise _Wrong(f"a form of kind {kind} needs `{key}`")
    for key, holds in {**needed, **allowed}.items():
        if key in form and (said := _fault(key, holds, form[key], nesting)) is not None:
            raise _Wrong(f"`{key}` must be {said}, not {form[key]!r:.80}")


def _fault(key: str, holds: str, value: Any, nesting: int) -> str | None:
    """What should have been there instead of `value`."""
    if holds == "f":
        _check(value, nesting + 1)
        return None
    if holds == "s":
        words = _WORDS.get(key)
        return None if isinstance(value, str) and (words is None or value in words) else "a text" if words is None else f"one of {', '.join(words)}"
    checks = {
        "p": (_is_place, "a place or an offset"), "t": (_is_type, "a type"), "n": (_is_number, "a number or where it is"), "i": (_is_integer, "an integer"),
        "b": (lambda one: isinstance(one, bool), "true or false"), "c": (_are_counts, "a table of names and places"),
        "l": (_are_parts, "a list of places, or one that ends with [*]"), "T": (_are_types, 'a list of types, or "@*"'),
        "u": (lambda one: (one in (1, 2, 4) and _is_integer(one)) or _is_type(one), "1, 2 or 4, or the type of a character"),
    }  # fmt: skip
    is_right, said = checks[holds]
    return None if is_right(value) else said


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 32) < value < 1 << 32


def _is_place(value: Any) -> bool:
    return (_is_integer(value) and value >= 0) or (isinstance(value, str) and steps_of(value) is not None)


def _is_type(value: Any) -> bool:
    return isinstance(value, str) and steps_of(value.lstrip("*")) is not None and len(value) - len(value.lstrip("*")) < 8


def _is_number(value: Any) -> bool:
    if isinstance(value, dict):
        rest = (_is_integer(one) for key, one in value.items() if key != "at")
        return value.keys() <= _NUMBER_KEYS and _is_place(value.get("at")) and all(rest) and value.get("size", 8) in (1, 2, 4, 8) and _is_shift(value)
    return _is_place(value)


def _is_shift(value: Mapping[str, Any]) -> bool:
    return bool(0 <= value.get("shift", 0) < 64 and value.get("mask", 0) >= 0)


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_number(one) and not (_is_integer(one)) for one in value.values())


def _are_parts(value: Any) -> bool:
    return steps_of(value.removesuffix("[*]")) is not None if isinstance(value, str) else _texts(value) and all(steps_of(one) is not None for one in value)


def _are_types(value: Any) -> bool:
    return value == "@*" or (isinstance(value, list) and all(_is_type(one) for one in value))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _known(table: Mapping[str, Any], keys: frozenset[str] | set[str], of: str = "") -> None:
    unknown = sorted(key for key in table if key not in keys)
    if unknown:
        raise _Wrong(f"`{unknown[0]}` is no key{of}")
