"""A demangled name taken apart: what is shown for a function, and the texts that patterns are matched against (SPEC §4, debug_trace)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from actors.indexer.demangle import demangle
from actors.indexer.demangle.suffix import is_cold, shown_suffix

ANONYMOUS: Final = "(anonymous namespace)"
_OPERATOR: Final = re.compile(r"operator(?:\(\)|\[\]|<=>|->\*|<<=|>>=|->|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%^&|]=|[-+*/%^&|~!=<>,]|(?=[ \"]))")
_ABI_TAG: Final = re.compile(r"\[abi:[^\]]*\]")
_SCOPE_GOES_ON: Final = re.compile(r"(?: const| volatile| &&?| noexcept| \[clone [^\]]*\])*::")
_DECLTYPE: Final = re.compile(r"decltype ?\(")
_PAIRS: Final = {"<": ">", "(": ")", "{": "}", "[": "]"}
_BRACKET: Final = re.compile(r"[<>(){}\[\]]|\boperator\b")
_PLAIN: Final = re.compile(r"[\w:~.$]+")
_WORD: Final = re.compile(r"\w")
_NESTED_CLONE: Final = re.compile(r"\.\d+$")
_LEGACY_CLOSURE: Final = "{{closure}}"
_V0_CLOSURE: Final = re.compile(r"\{closure#\d+\}")


@dataclass(frozen=True, slots=True)
class SourceName:
    """`shown`: without parameters and return type, template arguments kept, and without the suffix of a copy of the whole function.
    `plain`: what patterns without `<` are matched against; `exact`: what patterns with `<` are. `thunk`: a this-adjusting jump to a function,
    not a function of its own."""

    shown: str
    full: str
    plain: tuple[str, ...]
    exact: tuple[str, ...]
    suffix: str
    language: str
    thunk: bool = False

    @property
    def cold(self) -> bool:
        return is_cold(self.suffix)


@lru_cache(maxsize=200_000)
def source_name(raw: str) -> SourceName:
    """The forms of one linkage name. Pure; about 15 µs for a C++ name, 2 µs for a C name."""
    found = demangle(raw)
    if found.language == "c":
        return _c_name(found.text, found.suffix)
    if found.language == "rust":
        return _rust_name(found.text, found.suffix)
    return _cpp_name(found.text, found.suffix)


def _c_name(text: str, suffix: str) -> SourceName:
    plain = [text]
    nested = _NESTED_CLONE.search(text)  # GCC's nested functions and function-local ones: `inner.0`
    if nested:
        plain.append(text[: nested.start()])
    forms = _with_suffix(plain, suffix)
    return SourceName(text + shown_suffix(suffix), text + suffix, forms, forms, suffix, "c")


def _with_suffix(forms: list[str], suffix: str) -> tuple[str, ...]:
    """A clone answers to the function's name and to its own."""
    return tuple(dict.fromkeys([*forms, *(form + suffix for form in forms)])) if suffix else tuple(dict.fromkeys(forms))


def _cpp_name(text: str, suffix: str) -> SourceName:
    thunk = " thunk to " in text
    shown, plain, braced = _cpp_parts(text)
    if not shown or not plain:  # no function's form; it still answers to its whole text
        shown = plain = braced = text
    start = text.find(shown)
    without_result = text[start:] if start > 0 else text
    plains = _with_suffix([plain, braced], suffix)
    return SourceName(shown + shown_suffix(suffix), text, plains, _with_suffix([shown, without_result, text], suffix), suffix, "c++", thunk)


def _cpp_parts(text: str) -> tuple[str, str, str]:
    """(shown, plain, plain with lambda parameters kept) of a demangled C++ function."""
    text = _ABI_TAG.sub("", text)
    shown: list[str] = []
    plain: list[str] = []
    braced: list[str] = []
    at = 0
    while at < len(text):
        piece, end, kind = _piece(text, at)
        if kind == "space":
            shown, plain, braced = [], [], []  # what came before was the return type, or words like `non-virtual thunk to`
        elif kind == "parameters":
            tail = _after_parameters(text, end)
            if tail is None:
                break
            end = tail
        elif kind == "arguments":
            shown.append(piece)
        elif kind == "operator":
            shown.append(piece)
            plain.append(piece.partition(" <")[0])
            braced.append(plain[-1])
        else:
            shown.append(piece)
            braced.append(piece)
            plain.append(_short_braces(piece) if kind == "braces" else piece)
        at = end
    return "".join(shown).strip(), "".join(plain).strip(), "".join(braced).strip()


def _piece(text: str, at: int) -> tuple[str, int, str]:
    """The next piece of `text` at nesting depth 0: (piece, end, kind)."""
    character = text[at]
    if character == "o" and (at == 0 or not _WORD.match(text[at - 1])):
        operator = _OPERATOR.match(text, at)
        if operator:
            return _operator(text, at, operator.end())
    if character == "d" and (decltype := _DECLTYPE.match(text, at)) and (at == 0 or text[at - 1] in " :<"):
        end = closing(text, decltype.end() - 1)
        return text[at:end], end, "text"
    if text.startswith(ANONYMOUS, at):
        return ANONYMOUS, at + len(ANONYMOUS), "text"
    if character == "<":
        end = closing(text, at)
        return text[at:end], end, "arguments"
    if character == "{":
        end = closing(text, at)
        return text[at:end], end, "braces"
    if character == "(":
        if text.startswith(("(*", "(&"), at):
            return "", at + 2, "space"  # a function that returns a function pointer: the name is inside
        end = closing(text, at)
        return text[at:end], end, "parameters"
    if character == ")":
        return "", len(text), "text"
    if character == " ":
        return " ", at + 1, "space"
    plain = _PLAIN.match(text, at)
    if plain is None:
        return character, at + 1, "text"
    word = plain.group().find("operator")
    while word > 0 and text[at + word - 1] != ":":
        word = plain.group().find("operator", word + 1)
    end = at + word if word > 0 else plain.end()
    return text[at:end], end, "text"


def _operator(text: str, at: int, end: int) -> tuple[str, int, str]:
    if text[end : end + 1] in (" ", '"') and text[at:end] == "operator":
        end = _conversion_end(text, end)
    elif text[end : end + 2] == " <":  # the demangler separates `operator<< <int>`: that space ends no return type
        close = closing(text, end + 1)
        return text[at:end] + text[end:close], close, "operator"
    return text[at:end], end, "text"


def _conversion_end(text: str, at: int) -> int:
    """End of `operator new[]`, `operator"" _x`, or of the type in `operator TYPE` (up to its parameter list)."""
    while at < len(text) and text[at] != "(":
        at = closing(text, at) if text[at] in "<{[" else at + 1
    if text.startswith(ANONYMOUS, at):
        return _conversion_end(text, at + len(ANONYMOUS))
    return at


def _after_parameters(text: str, at: int) -> int | None:
    """Where the name goes on after a parameter list (a function's local entity), or None when it ends here."""
    rest = _SCOPE_GOES_ON.match(text, at)
    return rest.end() - 2 if rest else None


def closing(text: str, at: int) -> int:
    """Index after the bracket that closes the one at `at`. `->` and operators inside do not count; unclosed runs to the end."""
    stack = [_PAIRS[text[at]]]
    at += 1
    while stack:
        found = _BRACKET.search(text, at)
        if found is None:
            return len(text)
        at = found.end()
        character = found.group()
        if character == "operator":
            operator = _OPERATOR.match(text, found.start())
            at = operator.end() if operator else at
        elif character in _PAIRS:
            stack.append(_PAIRS[character])
        elif character == ">":
            if stack[-1] == ">" and text[at - 2] not in "-=":
                stack.pop()
        elif character in stack:
            while stack.pop() != character:  # a `<` that was an operator
                pass
    return at


def _short_braces(piece: str) -> str:
    """`{lambda(int)#1}` → `{lambda#1}`."""
    start = piece.find("(")
    return piece if start < 0 else piece[:start] + piece[closing(piece, start) :]


def _rust_name(text: str, suffix: str) -> SourceName:
    forms = _rust_forms(text)
    extra = [form.replace(_LEGACY_CLOSURE, "{closure}") for form in forms if _LEGACY_CLOSURE in form]
    extra += [_V0_CLOSURE.sub("{closure}", form) for form in forms if "{closure#" in form]
    return SourceName(text + shown_suffix(suffix), text, _with_suffix([*forms, *extra], suffix), _with_suffix([text], suffix), suffix, "rust")


def _rust_forms(text: str) -> list[str]:
    """Forms without generics. `<T as Trait>::f` gives `T::f` and `Trait::f`; so does `m::<impl Trait for T>::f`; `<T>::f` gives `T::f`."""
    heads = [""]
    at = 0
    while at < len(text):
        if text[at] != "<":
            end = _next_angle(text, at)
            heads = [head + text[at:end] for head in heads]
        else:
            end = closing(text, at)
            heads = _with_angle(heads, text[at + 1 : end - 1])
        at = end
    return list(dict.fromkeys(_no_gaps(head) for head in heads if head))


def _with_angle(heads: list[str], inner: str) -> list[str]:
    """`core::fmt::<impl Debug for T>::f`: the module before it says where the impl stands, not what it is."""
    subject = _impl_subject(inner, starts=heads == [""])
    return heads if subject is None else [form for part in subject for form in _rust_forms(part)]


def _impl_subject(inner: str, *, starts: bool) -> list[str] | None:
    if inner.startswith("impl "):
        trait, found, kind = _split_top(inner[5:], " for ")
        return [kind, trait] if found else [inner[5:]]
    if not starts:
        return None
    kind, found, trait = _split_top(inner, " as ")
    return [kind, trait] if found else [inner]


def _split_top(text: str, separator: str) -> tuple[str, bool, str]:
    """Splits at the first `separator` outside brackets."""
    at = 0
    while at < len(text):
        if text.startswith(separator, at):
            return text[:at], True, text[at + len(separator) :]
        at = closing(text, at) if text[at] in "<([{" else at + 1
    return text, False, ""


def _next_angle(text: str, at: int) -> int:
    end = text.find("<", at)
    return len(text) if end < 0 else end


def _no_gaps(text: str) -> str:
    """Taking out `::<i32>` leaves `foo::` or `foo::::bar`."""
    while "::::" in text:
        text = text.replace("::::", "::")
    return text.removesuffix("::")
