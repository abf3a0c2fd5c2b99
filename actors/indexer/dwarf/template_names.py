"""C++ names as their users write them: `std::vector<int>` for `std::__cxx11::vector<int, std::allocator<int> >`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_DEPTH_MAX: Final = 100
_LENGTH_MAX: Final = 4096  # of names that are looked into
_INLINE_NAMESPACES: Final = re.compile(r"\bstd::(?:__cxx11|__1|__ndk1|__fs)::")
_STRING: Final = re.compile(r"(?<![\w:~$])std::basic_string<char, std::char_traits<char>, std::allocator<char> ?>")  # the most frequent by far
_PLAIN: Final = re.compile(r"[^'<(\[{,>)\]}]+")
_HEAD: Final = re.compile(r"[\w:~$]+$")
_OPERATOR: Final = re.compile(r"operator\s*[<>=\-]*$")
# Last template arguments that are defaults of the standard library's templates, by how they begin
_DEFAULTS: Final = ("std::allocator<", "std::char_traits<", "std::default_delete<", "std::less<", "std::hash<", "std::equal_to<")
_KEEPS: Final = frozenset(name[:-1] for name in _DEFAULTS)
_NO_DEFAULTS: Final = frozenset({"std::pair", "std::tuple", "std::variant"})
_CONTAINERS: Final = frozenset({"std::stack", "std::queue", "std::priority_queue"})
_ALIASES: Final = {
    "std::basic_string<char>": "std::string",
    "std::basic_string<wchar_t>": "std::wstring",
    "std::basic_string<char8_t>": "std::u8string",
    "std::basic_string<char16_t>": "std::u16string",
    "std::basic_string<char32_t>": "std::u32string",
    "std::basic_string_view<char>": "std::string_view",
    "std::basic_string_view<wchar_t>": "std::wstring_view",
    "std::basic_ostream<char>": "std::ostream",
    "std::basic_istream<char>": "std::istream",
    "std::basic_iostream<char>": "std::iostream",
}


_RUST_DEFAULTS: Final = re.compile(r", (?:alloc::alloc::Global|(?:std|core)::hash::random::RandomState|std::collections::hash::map::RandomState)(?=[,>])")


def tidy_rust(name: str) -> str:
    """`alloc::vec::Vec<i32>` for `alloc::vec::Vec<i32, alloc::alloc::Global>`."""
    return _RUST_DEFAULTS.sub("", name)


@lru_cache(maxsize=50_000)
def tidy(name: str) -> str:
    """Unchanged where its brackets do not match."""
    if "<" not in name and "std::__" not in name:
        return name
    short = _INLINE_NAMESPACES.sub("std::", name)
    if "<" not in short or len(short) > _LENGTH_MAX:
        return short
    short = _STRING.sub("std::string", short)
    text, at = _part(short, 0, "", 0)
    return short if text is None or at != len(short) else text


def _part(name: str, at: int, stops: str, depth: int) -> tuple[str | None, int]:
    """(text up to one of `stops` that is not inside brackets, its position); (None, _) where brackets do not match."""
    out = ""
    while at < len(name) and name[at] not in stops:
        mark = name[at]
        if mark == "'":
            end = name.find("'", at + 1 + (name[at + 1 : at + 2] == "\\") + 1)
            if end < 0:
                return None, at
            out, at = out + name[at : end + 1], end + 1
        elif mark in "<([{" and not _OPERATOR.search(out):
            parts, at = _bracketed(name, at, depth + 1)
            if parts is None:
                return None, at
            out = _closed(out, mark, parts)
        else:
            plain = _PLAIN.match(name, at)
            end = at + 1 if plain is None else plain.end()
            out, at = out + name[at:end], end
    return out, at


def _bracketed(name: str, at: int, depth: int) -> tuple[list[str] | None, int]:
    """(what is between the bracket at `at` and its partner, split at commas, position after it)."""
    close = {"<": ">", "(": ")", "[": "]", "{": "}"}[name[at]]
    parts: list[str] = []
    at += 1
    while depth < _DEPTH_MAX:
        text, at = _part(name, at, "," + close, depth)
        if text is None or at >= len(name):
            return None, at
        parts.append(text.strip())
        at += 1
        if name[at - 1] == close:
            return parts, at
    return None, at


def _closed(out: str, mark: str, parts: list[str]) -> str:
    if mark != "<":
        return f"{out}{mark}{', '.join(parts)}{ {'(': ')', '[': ']', '{': '}'}[mark]}"
    head = _HEAD.search(out)
    owner = head.group() if head else ""
    if owner.startswith("std::") and owner not in _KEEPS and owner not in _NO_DEFAULTS:
        parts = _without_defaults(owner, parts)
    whole = f"{owner}<{', '.join(parts)}>"
    return out[: len(out) - len(owner)] + _ALIASES.get(whole, whole)


def _without_defaults(owner: str, parts: list[str]) -> list[str]:
    while len(parts) > 1 and parts[-1].startswith(_DEFAULTS):
        parts = parts[:-1]
    if owner in _CONTAINERS and len(parts) == 2 and parts[1].startswith(("std::deque<", "std::vector<")):
        parts = parts[:1]
    return parts
