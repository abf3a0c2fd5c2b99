"""Names of types as a programmer writes them: declarators inside out, as C has them."""

from __future__ import annotations

from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.language import Language, language_of
from actors.indexer.dwarf.scopes import scopes_of
from actors.indexer.dwarf.template_names import tidy, tidy_rust
from actors.indexer.dwarf.types import POINTER_TAGS, defined, extents, type_of
from actors.indexer.dwarf.unit import Entry

_DEPTH_MAX: Final = 64
_QUALIFIERS: Final = {dw.CONST_TYPE: "const", dw.VOLATILE_TYPE: "volatile", dw.RESTRICT_TYPE: "restrict", dw.ATOMIC_TYPE: "_Atomic"}
_POINTERS: Final = {dw.POINTER_TYPE: "*", dw.REFERENCE_TYPE: "&", dw.RVALUE_REFERENCE_TYPE: "&&"}
_KEYWORDS: Final = {dw.STRUCTURE_TYPE: "struct", dw.CLASS_TYPE: "class", dw.UNION_TYPE: "union", dw.ENUMERATION_TYPE: "enum"}
_SCOPED: Final = frozenset({*_KEYWORDS, dw.TYPEDEF})
_NAME_MAX: Final = 300
_FULL_NAME_MAX: Final = 1000
_PARAMETERS_MAX: Final = 64
_UNKNOWN: Final = "..."


def type_name(entry: Entry | None, style: Language) -> str:
    """As in the source: C's `struct T`, C++'s `ns::T`, Rust's `T`."""
    return TypeNames(style).name(entry)[:_NAME_MAX]


class TypeNames:
    """Each name is made once. Without a `style` names are full: in their unit's language, Rust's with their modules, C++'s without
    the template arguments that everybody leaves out."""

    def __init__(self, style: Language | None = None) -> None:
        self._style = style
        self._made: dict[tuple[bool, int], str] = {}

    def name(self, entry: Entry | None, depth: int = 0) -> str:
        """Raises DwarfError."""
        found = defined(entry)
        if found is None:
            return "void" if self._style or entry is None or language_of(entry.unit) != "rust" else "()"
        key = (found.unit.signature is not None, found.offset)
        if key not in self._made:
            self._made[key] = _UNKNOWN  # what a name that contains itself is told
            self._made[key] = self._spelled(found, "", depth)[:_FULL_NAME_MAX]
        return self._made[key]

    def own(self, entry: Entry) -> str | None:
        """The name that the entry itself has, with its scopes; None for what is built from other types, or anonymous."""
        own = entry.text(dw.NAME)
        if own is None or entry.tag in _QUALIFIERS:
            return None
        style = self._style or language_of(entry.unit) or "c"
        if entry.tag in _KEYWORDS and style == "c":
            return f"{_KEYWORDS[entry.tag]} {own}"
        if entry.tag in _SCOPED and (style == "c++" or self._style is None):
            own = scopes_of(entry) + own
        if self._style is not None or style == "c":
            return own
        return tidy(own) if style == "c++" else tidy_rust(own)

    def _spelled(self, entry: Entry | None, inner: str, depth: int) -> str:
        """The name with the declarator `inner` in its place."""
        found = defined(entry)
        if found is None:
            return _joined("void", inner)
        if depth > _DEPTH_MAX:
            return _joined(_UNKNOWN, inner)
        own = self.own(found)
        if own is not None:
            return _joined(own, inner)
        return self._built(found, inner, depth + 1)

    def _built(self, entry: Entry, inner: str, depth: int) -> str:
        target = type_of(entry)
        if entry.tag in _QUALIFIERS:
            return self._qualified(target, _QUALIFIERS[entry.tag], inner, depth)
        if entry.tag in _POINTERS:
            return self._spelled(target, _parenthesised(target, _POINTERS[entry.tag] + inner), depth)
        if entry.tag == dw.PTR_TO_MEMBER_TYPE:
            owner = entry.reference(dw.CONTAINING_TYPE)
            mark = f"{'' if owner is None else self.name(owner, depth)}::*"
            return self._spelled(target, _parenthesised(target, mark + inner), depth)
        if entry.tag == dw.ARRAY_TYPE:
            return self._array(entry, target, inner, depth)
        if entry.tag == dw.SUBROUTINE_TYPE:
            return self._spelled(target, inner + self._parameters(entry, depth), depth)
        return _joined(f"(anonymous {_KEYWORDS.get(entry.tag, 'type')})", inner)

    def _qualified(self, target: Entry | None, word: str, inner: str, depth: int) -> str:
        plain = defined(target)
        if plain is not None and plain.tag in POINTER_TAGS and plain.text(dw.NAME) is None:
            return self._spelled(plain, f"{word} {inner}" if inner else word, depth)
        name = self._spelled(target, inner, depth)
        if word == "volatile" and plain is not None and plain.tag == dw.CONST_TYPE:
            return f"const volatile {name.removeprefix('const ')}"
        return f"{word} {name}"

    def _array(self, entry: Entry, target: Entry | None, inner: str, depth: int) -> str:
        counts = extents(entry)
        if (self._style or language_of(entry.unit)) == "rust":
            return _joined(f"[{self.name(target, depth)}; {counts[0] if counts else '_'}]", inner)
        return self._spelled(target, inner + "".join(f"[{'' if count is None else count}]" for count in counts), depth)

    def _parameters(self, entry: Entry, depth: int) -> str:
        parts: list[str] = []
        after = ""
        for child in entry.children():
            if child.tag == dw.FORMAL_PARAMETER and child.has(dw.ARTIFICIAL):
                after = _after(child)
            elif child.tag == dw.FORMAL_PARAMETER:
                parts.append(self.name(type_of(child), depth))
            elif child.tag == dw.UNSPECIFIED_PARAMETERS:
                parts.append("...")
            if len(parts) > _PARAMETERS_MAX:
                break
        return f"({', '.join(parts)}){after}"


def _after(this: Entry) -> str:
    """What a member function promises about its object."""
    pointer = defined(type_of(this))
    target = defined(type_of(pointer)) if pointer is not None and pointer.tag in POINTER_TAGS else None
    return f" {_QUALIFIERS[target.tag]}" if target is not None and target.tag in _QUALIFIERS else ""


def _joined(base: str, inner: str) -> str:
    return base + inner if not inner or inner.startswith("[") else f"{base} {inner}"


def _parenthesised(target: Entry | None, inner: str) -> str:
    """A pointer to an array or a function binds before what comes after it."""
    found = defined(target)
    return f"({inner})" if found is not None and found.tag in (dw.ARRAY_TYPE, dw.SUBROUTINE_TYPE) and found.text(dw.NAME) is None else inner
