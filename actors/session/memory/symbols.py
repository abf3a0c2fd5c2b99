"""Names of functions and dynamic types by address (strobe.values.view.Symbols): what is known, and what was asked in vain and can be looked up."""

from __future__ import annotations

from typing import Final

from actors.session.memory.debug_info import Known
from strobe.model.probe import Module
from strobe.model.type_nodes import TypeId

_ASKED_MAX: Final = 256  # of each kind, of one request


class LiveSymbols:
    def __init__(self, known: Known) -> None:
        self._functions = known.functions
        self._modules: list[Module] = list(known.modules.values())
        bias = {path: module.bias for path, module in known.modules.items()}
        self._types = {code.address + bias[code.module]: code.type for code in known.bundle.codes if code.module in bias}
        self.wanted_functions: set[int] = set()
        self.wanted_codes: set[int] = set()

    def function(self, address: int, /) -> str | None:
        found = self._functions.get(address)
        if found is None and len(self.wanted_functions) < _ASKED_MAX and self._is_mapped(address):
            self.wanted_functions.add(address)
        return found

    def dynamic(self, address: int, /) -> TypeId | None:
        found = self._types.get(address)
        if found is None and len(self.wanted_codes) < _ASKED_MAX and self._is_mapped(address):
            self.wanted_codes.add(address)
        return found

    def _is_mapped(self, address: int) -> bool:
        return any(module.start <= address < module.end for module in self._modules)
