"""What a type is, one class per kind. Types refer to each other by number in a `TypeTable`, so that cycles need no care.

Every node begins with `name`, as a user would write it in the language of its unit (`std::vector<int>`, `struct Order`, `&str`), and `language`.
Sizes and offsets are bytes, None where debug info does not tell. Fields are sent by position (type_wire): new ones go last, with a default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

TypeId = int
VOID: Final[TypeId] = 0
CUT: Final[TypeId] = 1  # stands for each type that a limit left out
Language = Literal["c", "c++", "rust", ""]


@dataclass(frozen=True, slots=True)
class Void:
    name: str
    language: Language


@dataclass(frozen=True, slots=True)
class Cut:
    """A type that was left out because a limit was reached: ask for it by the name that the node pointing here has."""

    name: str
    language: Language


@dataclass(frozen=True, slots=True)
class Integer:
    """`encoding`: `char` is plain char; `byte` signed and unsigned char; `utf` char8_t, char16_t, char32_t, C++'s wchar_t and Rust's char."""

    name: str
    language: Language
    size: int  # 1 to 16
    signed: bool
    encoding: Literal["number", "char", "byte", "utf", "bool", "address"] = "number"


FloatFormat = Literal["half", "bfloat", "single", "double", "x87", "quad", "decimal", "unknown"]


@dataclass(frozen=True, slots=True)
class Float:
    name: str
    language: Language
    size: int
    format: FloatFormat


@dataclass(frozen=True, slots=True)
class Complex:
    """Real part, then imaginary part, each of half the size."""

    name: str
    language: Language
    size: int
    format: FloatFormat


@dataclass(frozen=True, slots=True)
class Enum:
    """`flags`: the enumerators look like bits to be combined. `scoped`: C++'s `enum class`, and Rust's."""

    name: str
    language: Language
    size: int | None
    signed: bool
    underlying: TypeId | None
    enumerators: tuple[tuple[str, int], ...]
    flags: bool = False
    scoped: bool = False


@dataclass(frozen=True, slots=True)
class Pointer:
    """`form`: what its language calls it. Rust's fat pointers are records."""

    name: str
    language: Language
    size: int
    target: TypeId
    form: Literal["pointer", "lvalue", "rvalue"] = "pointer"


@dataclass(frozen=True, slots=True)
class MemberPointer:
    """To data: the member's offset, -1 for null. To a function: its address or 1 + offset in the vtable, then what to add to `this`."""

    name: str
    language: Language
    size: int
    owner: TypeId | None
    target: TypeId
    to_function: bool


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    language: Language
    result: TypeId
    parameters: tuple[TypeId, ...]
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """`counts`: elements in each dimension, outermost first; None where only the running program knows it, or nobody: a flexible `[]`."""

    name: str
    language: Language
    size: int | None
    element: TypeId
    counts: tuple[int | None, ...]
    vector: bool = False
    bound: Literal["fixed", "flexible", "dynamic"] = "fixed"


@dataclass(frozen=True, slots=True)
class Member:
    """`name` is "" for an anonymous struct or union, whose members count as the record's own. Bitfields: `bit_size` bits, from the
    `bit_offset`-th least significant bit (0 to 7) of the byte at `offset`."""

    name: str
    type: TypeId
    offset: int
    bit_size: int | None = None
    bit_offset: int = 0
    artificial: bool = False


@dataclass(frozen=True, slots=True)
class Base:
    """A virtual base is as far from the object's start as the 8-byte number says that stands `slot` bytes from where the object's vtable
    pointer points (Itanium C++ ABI §2.5: negative). One of the two is None, both where it is not known."""

    type: TypeId
    offset: int | None
    virtual: bool = False
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Static:
    """A static member: a symbol of its own, or only a constant (an integer, or the value's bytes)."""

    name: str
    type: TypeId
    linkage_name: str | None = None
    constant: int | bytes | None = None


@dataclass(frozen=True, slots=True)
class TemplateArgument:
    """A type, or a value of it: an integer, its bytes, or None where debug info does not say."""

    name: str
    type: TypeId
    is_value: bool = False
    value: int | bytes | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """`values`: of the discriminant, inclusive ranges. None: all that no other variant has."""

    values: tuple[tuple[int, int], ...] | None
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class VariantPart:
    """What is there depends on the discriminant's value; without a discriminant there is one variant."""

    discriminant: Member | None
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """`vtable`: offset of its vtable pointer; None for one that has none. `vtable_of`: a Rust vtable's concrete type."""

    name: str
    language: Language
    form: Literal["struct", "class", "union"]
    size: int | None
    members: tuple[Member, ...]
    bases: tuple[Base, ...] = ()
    alignment: int | None = None
    vtable: int | None = None
    statics: tuple[Static, ...] = ()
    template: tuple[TemplateArgument, ...] = ()
    variant_part: VariantPart | None = None
    vtable_of: TypeId | None = None

    @property
    def polymorphic(self) -> bool:
        return self.vtable is not None


@dataclass(frozen=True, slots=True)
class Typedef:
    name: str
    language: Language
    target: TypeId


@dataclass(frozen=True, slots=True)
class Qualified:
    name: str
    language: Language
    target: TypeId
    qualifier: Literal["const", "volatile", "restrict", "atomic"]


@dataclass(frozen=True, slots=True)
class Unspecified:
    """C++'s nullptr_t, Rust's `()` and `!`, and base types of a kind that has no class here."""

    name: str
    language: Language
    size: int | None


@dataclass(frozen=True, slots=True)
class Opaque:
    """Declared, and defined in no unit that was found. `problem`: why, where debug info is damaged."""

    name: str
    language: Language
    form: Literal["struct", "class", "union", "enum", "unknown"]
    problem: str | None = None


Node = (
    Void | Cut | Integer | Float | Complex | Enum | Pointer | MemberPointer | Function | Array | Record | Typedef | Qualified | Unspecified | Opaque
)  # fmt: skip
