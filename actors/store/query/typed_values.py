"""Captured values as their types say (strobe.values): from the payload that was kept, or from the bits in a column."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from actors.store.display import shown
from actors.store.formatter_shelf import SHELF
from actors.store.reading import Reading
from actors.store.session_file import SessionFile
from strobe.model.probe import Hook, Value, WatchValue
from strobe.model.type_nodes import Function, Pointer, TypeId
from strobe.model.types import TypeTable
from strobe.values.bundle import Bundle
from strobe.values.memory import PAYLOAD_BASE, Image
from strobe.values.reader import Limits, Reader
from strobe.values.watch_shown import watch_values

NUMBERS: Final = frozenset(["int", "uint", "float", "bool", "char", "enum"])
DEPTH: Final = 3  # where a plan says none
WORD: Final = 8


@dataclass(frozen=True, slots=True)
class Captured:
    """What is stored of an entry's values: `bits` of one (the column), and the entry's whole payload where it was kept."""

    bits: int | None
    payload: bytes | None


class SessionSymbols:
    """Names of functions are not known here: who shows the reply asks for those in `asked`. `codes`: runtime address → type."""

    def __init__(self, codes: Mapping[int, TypeId], asked: set[int]) -> None:
        self._codes = codes
        self._asked = asked

    def function(self, address: int, /) -> None:
        self._asked.add(address)

    def dynamic(self, address: int, /) -> TypeId | None:
        return self._codes.get(address)


class TypedValues:
    """For one query. `functions`: addresses of functions among the values; `warnings`: what is wrong with the project's formatters."""

    def __init__(self, file: SessionFile, reading: Reading, limits: Limits | None = None) -> None:
        self._file = file
        self._reading = reading
        self._limits = limits
        self.formatters, self.warnings = SHELF.of(file.record.project_root)
        self.functions: set[int] = set()
        self._symbols: dict[str, SessionSymbols] = {}

    def bundle(self, hook: Hook) -> Bundle | None:
        """The types of its values; None where they are not known."""
        return None if hook.plan.types is None else self._file.types.bundle(hook.plan.types, self._reading)

    def shown(self, hook: Hook, value: Value, captured: Captured, descriptor: int | None, texts: Mapping[int, str]) -> Any:
        """As JSON. `descriptor`: where the payload has its image's (Plan.image, or exit_image); `texts`: captured ones by id."""
        bundle = None if value.type is None else self.bundle(hook)
        if bundle is None or value.type is None or value.type >= len(bundle.table):
            return shown(value, captured.bits, texts)
        data = data_of(value, captured)
        if data is not None and (value.scalar in NUMBERS or _is_code(bundle.table, value.type)):
            return self.reader(hook, bundle, Image(b"")).of(value.type, data)
        if value.scalar == "cstring" or (captured.payload is None and value.source != "word"):
            return shown(value, captured.bits, texts)
        return self._whole(hook, bundle, value, captured, descriptor)

    def _whole(self, hook: Hook, bundle: Bundle, value: Value, captured: Captured, descriptor: int | None) -> Any:
        assert value.type is not None
        reader = self.reader(hook, bundle, Image.of(captured.payload or b"", descriptor))
        place = place_of(value, captured)
        if place is not None:
            return reader.at(value.type, place)
        data = data_of(value, captured)
        return shown(value, captured.bits, {}) if data is None else reader.of(value.type, data)

    def watched(self, hook: Hook, payload: bytes, *, entered: bool) -> dict[str, Any]:
        """What the watches of an enter or exit read, by label."""

        def reader_of(watch: WatchValue, bundle: Bundle, table: TypeTable, image: Image) -> Reader:
            return self.reader(hook, bundle, image, table, watch.types)

        def bundle_of(key: str) -> Bundle | None:
            return self._file.types.bundle(key, self._reading)

        return watch_values(hook.plan, payload, entered=entered, bundle_of=bundle_of, forms=self.formatters, reader_of=reader_of)

    def reader(self, hook: Hook, bundle: Bundle, image: Image, table: TypeTable | None = None, key: str | None = None) -> Reader:
        """`table`: the bundle's, or one that grew out of it; `key`: the bundle's, if it is not that of the hook's own values."""
        limits = self._limits or Limits(depth=hook.plan.depth or DEPTH)
        return Reader(table or bundle.table, image, self.formatters, limits, self._symbols_of(key or hook.plan.types or "", bundle))

    def _symbols_of(self, key: str, bundle: Bundle) -> SessionSymbols:
        if key not in self._symbols:
            biases = biases_of(self._file) if bundle.codes else {}
            codes = {code.address + biases[code.module]: code.type for code in bundle.codes if code.module in biases}
            self._symbols[key] = SessionSymbols(codes, self.functions)
        return self._symbols[key]


def place_of(value: Value, captured: Captured) -> int | None:
    """The value's address in the entry's image; None where it lies in none."""
    payload = captured.payload
    if payload is None or value.source != "payload":
        return None
    if value.home == "payload":
        return PAYLOAD_BASE + value.offset
    return struct.unpack_from("<Q", payload, value.offset)[0] if value.offset + WORD <= len(payload) else None


def data_of(value: Value, captured: Captured) -> bytes | None:
    """The value's own bytes, from the column; None where it has none."""
    if captured.bits is None or value.home == "pointed" or value.scalar == "cstring":
        return None
    if value.scalar == "float" and value.size == struct.calcsize("<f"):
        return struct.pack("<f", struct.unpack("<d", struct.pack("<q", captured.bits))[0])
    return struct.pack("<q", captured.bits)[: value.size or WORD]


def biases_of(file: SessionFile) -> dict[str, int]:
    """Path of a module → what to add to its link-time addresses: as the session told, and as its hooks show."""
    return {hook.place.module: hook.address - hook.place.offset for hook in list(file.hooks.values())} | file.modules


def _is_code(table: TypeTable, number: TypeId) -> bool:
    """It is a pointer to a function: its address says all there is."""
    node = table.stripped(number)
    return isinstance(node, Pointer) and isinstance(table.stripped(node.target), Function)
