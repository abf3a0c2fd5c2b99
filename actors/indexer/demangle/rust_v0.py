"""Rust's v0 mangling, `_R…` (RFC 2603; the rustc book, "v0 Symbol Format"). Written as `rustc-demangle` prints it with hashes left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_BASIC: Final = {
    "a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32", "h": "u8", "i": "isize", "j": "usize", "l": "i32", "m": "u32",
    "n": "i128", "o": "u128", "s": "i16", "t": "u16", "u": "()", "v": "...", "x": "i64", "y": "u64", "z": "!", "p": "_",
}  # fmt: skip
_DEPTH_MAX: Final = 200
_TEXT_MAX: Final = 65536
_DIGITS: Final = {character: value for value, character in enumerate("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")}


class _Malformed(Exception):
    pass


def demangle(name: str) -> str | None:
    """The path with generics, or None when `name` is not of this form."""
    start = 2
    if not name.startswith("_R") or len(name) < 4 or not name.isascii():
        return None
    while start < len(name) and name[start].isdigit():
        start += 1
    reader = _Reader(name[start:])
    try:
        text = reader.path(in_value=True)
        if reader.at < len(reader.text) and reader.text[reader.at] not in ".$":
            reader.path(in_value=False)  # the instantiating crate
    except (_Malformed, IndexError, ValueError):
        return None
    rest = reader.text[reader.at :]
    return text if not rest or rest[0] in ".$" else None


class _Reader:
    """Recursive descent over the grammar; positions are from after `_R`, as back references count them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._depth = 0
        self._written = 0
        self._lifetimes = 0

    def path(self, *, in_value: bool) -> str:
        self._enter()
        tag = self._next()
        if tag == "C":
            self._disambiguator()
            text = self._identifier()
        elif tag == "N":
            text = self._nested(in_value)
        elif tag == "M":
            self._impl_path()
            text = f"<{self.type()}>"
        elif tag in "XY":
            if tag == "X":
                self._impl_path()
            text = f"<{self.type()} as {self.path(in_value=False)}>"
        elif tag == "I":
            base = self.path(in_value=in_value)
            text = base + ("::<" if in_value else "<") + ", ".join(self._until_end(self._generic)) + ">"
        elif tag == "B":
            text = self._back_reference(lambda: self.path(in_value=in_value))
        else:
            raise _Malformed
        return self._leave(text)

    def _nested(self, in_value: bool) -> str:
        space = self._next()
        parent = self.path(in_value=in_value)
        number = self._disambiguator()
        name = self._identifier()
        if space.isupper():
            kind = {"C": "closure", "S": "shim"}.get(space, space)
            return f"{parent}::{{{kind}{':' if name else ''}{name}#{number}}}"
        return f"{parent}::{name}" if name else parent

    def _impl_path(self) -> None:
        self._disambiguator()
        self.path(in_value=False)

    def type(self) -> str:
        self._enter()
        tag = self._next()
        if tag in _BASIC:
            text = _BASIC[tag]
        elif tag == "A":
            text = f"[{self.type()}; {self._const()}]"
        elif tag == "S":
            text = f"[{self.type()}]"
        elif tag == "T":
            parts = self._until_end(self.type)
            text = f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
        elif tag in "RQ":
            lifetime = self._optional_lifetime()
            text = f"&{lifetime}{'mut ' if tag == 'Q' else ''}{self.type()}"
        elif tag in "PO":
            text = f"*{'const' if tag == 'P' else 'mut'} {self.type()}"
        elif tag == "F":
            text = self._function()
        elif tag == "D":
            text = self._dynamic()
        elif tag == "B":
            text = self._back_reference(self.type)
        else:
            self.at -= 1
            text = self.path(in_value=False)
        return self._leave(text)

    def _function(self) -> str:
        outer = self._lifetimes
        text = self._binder()
        if self._eat("U"):
            text += "unsafe "
        if self._eat("K"):
            text += f'extern "{"C" if self._eat("C") else self._identifier().replace("_", "-")}" '
        text += f"fn({', '.join(self._until_end(self.type))})"
        result = self.type()
        self._lifetimes = outer
        return text if result == "()" else f"{text} -> {result}"

    def _dynamic(self) -> str:
        outer = self._lifetimes
        text = "dyn " + self._binder() + " + ".join(self._until_end(self._bound))
        self._lifetimes = outer
        if not self._eat("L"):
            raise _Malformed
        lifetime = self._lifetime(self._base62())
        return f"{text} + {lifetime}" if lifetime != "'_" else text

    def _bound(self) -> str:
        text = self.path(in_value=False)
        bindings = []
        while self._eat("p"):
            name = self._identifier()
            bindings.append(f"{name} = {self.type()}")
        if not bindings:
            return text
        return f"{text[:-1]}, {', '.join(bindings)}>" if text.endswith(">") else f"{text}<{', '.join(bindings)}>"

    def _binder(self) -> str:
        if not self._eat("G"):
            return ""
        count = self._base62() + 1
        if count > 64:
            raise _Malformed
        names = []
        for _ in range(count):
            self._lifetimes += 1
            names.append(self._lifetime(1))
        return f"for<{', '.join(names)}> "

    def _generic(self) -> str:
        if self._eat("L"):
            return self._lifetime(self._base62())
        if self._eat("K"):
            return self._const()
        return self.type()

    def _const(self) -> str:
        self._enter()
        tag = self._next()
        if tag == "p":
            text = "_"
        elif tag == "B":
            text = self._back_reference(self._const)
        elif tag in "RQ":
            text = f"&{'mut ' if tag == 'Q' else ''}{self._const()}"
        elif tag == "A":
            text = f"[{', '.join(self._until_end(self._const))}]"
        elif tag == "T":
            text = f"({', '.join(self._until_end(self._const))})"
        elif tag == "e":
            text = f'"{bytes.fromhex(self._hex()).decode("utf-8", "replace")}"'
        elif tag == "V":
            text = self._structure()
        else:
            text = self._number(tag)
        return self._leave(text)

    def _structure(self) -> str:
        kind = self._next()
        name = self.path(in_value=True)
        if kind == "U":
            return name
        if kind == "T":
            return f"{name}({', '.join(self._until_end(self._const))})"
        return f"{name} {{ {', '.join(self._until_end(self._field))} }}"

    def _field(self) -> str:
        self._disambiguator()
        name = self._identifier()
        return f"{name}: {self._const()}"

    def _number(self, tag: str) -> str:
        sign = "-" if self._eat("n") else ""
        digits = self._hex()
        value = int(digits or "0", 16)
        if tag == "b":
            return "true" if value else "false"
        if tag == "c":
            return repr(chr(value)) if value < 0x110000 else "?"
        if tag not in "ahilmnosxtyj":
            raise _Malformed
        return f"{sign}{value}" if len(digits) <= 16 else f"{sign}0x{digits}"

    def _hex(self) -> str:
        end = self.text.index("_", self.at)
        digits, self.at = self.text[self.at : end], end + 1
        return digits

    def _optional_lifetime(self) -> str:
        if not self._eat("L"):
            return ""
        index = self._base62()
        return f"{self._lifetime(index)} " if index else ""

    def _lifetime(self, index: int) -> str:
        if index == 0:
            return "'_"
        depth = self._lifetimes - index
        if depth < 0:
            raise _Malformed
        return f"'{chr(97 + depth)}" if depth < 26 else f"'_{depth}"

    def _identifier(self) -> str:
        encoded = self._eat("u")
        start = self.at
        while self.text[self.at].isdigit():
            self.at += 1
            if self.text[start] == "0":
                break
        length = int(self.text[start : self.at])
        self._eat("_")
        if self.at + length > len(self.text):
            raise _Malformed
        name, self.at = self.text[self.at : self.at + length], self.at + length
        return _punycode(name) if encoded else name

    def _disambiguator(self) -> int:
        return self._base62() + 1 if self._eat("s") else 0

    def _base62(self) -> int:
        if self._eat("_"):
            return 0
        value = 0
        while (character := self._next()) != "_":
            if character not in _DIGITS:
                raise _Malformed
            value = value * 62 + _DIGITS[character]
        return value + 1

    def _back_reference(self, read: Callable[[], str]) -> str:
        here = self.at - 1
        target = self._base62()
        if target >= here:
            raise _Malformed
        resume, self.at = self.at, target
        text = read()
        self.at = resume
        return text

    def _until_end(self, read: Callable[[], str]) -> list[str]:
        parts: list[str] = []
        while not self._eat("E"):
            parts.append(read())
        return parts

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise _Malformed

    def _leave(self, text: str) -> str:
        """Counts what was written: back references could otherwise double the text at every level."""
        self._depth -= 1
        self._written += len(text)
        if self._written > _TEXT_MAX * 16 or len(text) > _TEXT_MAX:
            raise _Malformed
        return text

    def _eat(self, character: str) -> bool:
        if self.text[self.at : self.at + 1] != character:
            return False
        self.at += 1
        return True

    def _next(self) -> str:
        character = self.text[self.at]
        self.at += 1
        return character


def _punycode(name: str) -> str:
    """RFC 3492 with `_` as the delimiter, as the mangling has it."""
    basic, _, extra = name.rpartition("_")
    try:
        return (f"{basic}-{extra}" if basic else extra).encode().decode("punycode")
    except UnicodeError as error:
        raise _Malformed from error
