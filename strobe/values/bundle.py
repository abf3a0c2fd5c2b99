"""A type table with what only the running program's code tells: which vtable or function stands for which type. Sent and stored as one, by key."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import msgpack  # type: ignore[import-untyped]

from strobe.model.type_nodes import TypeId
from strobe.model.types import TypeTable


@dataclass(frozen=True, slots=True)
class Code:
    """`address`: link-time, in `module`: where objects of the class point to (in its vtable), std::any's manager function, Rust's vtable.

    `role`: which of these: `class` (`top`: how far into the object the part lies that points there), `any`
    (the value lies in it) or `boxed any`, and for Rust's `dyn shop::Shape`, the trait as vtables have it."""

    module: str
    address: int
    type: TypeId
    role: str = "class"
    top: int = 0


@dataclass(frozen=True, slots=True)
class Bundle:
    table: TypeTable
    codes: tuple[Code, ...] = ()

    def pack(self) -> tuple[str, bytes]:
        """(key, bytes). Equal bundles have equal keys."""
        body: bytes = msgpack.packb([self.table.to_wire(), [[code.module, code.address, code.type, code.role, code.top] for code in self.codes]])
        return hashlib.sha256(body).hexdigest()[:16], body

    @classmethod
    def unpack(cls, body: bytes) -> Bundle:
        """Raises ValueError."""
        try:
            table, codes = msgpack.unpackb(body)
            return cls(TypeTable.from_wire(table), tuple(Code(*code) for code in codes))
        except (msgpack.UnpackException, TypeError) as error:
            raise ValueError(f"not a bundle of types: {error}") from error
