"""How many pointers away from what was asked for each type of a request is. A shorter way that is found later counts for all that it leads to."""

from __future__ import annotations

from strobe.model.type_nodes import TypeId


class Distances:
    def __init__(self) -> None:
        self._distance: dict[TypeId, int] = {}
        self._references: dict[TypeId, list[tuple[TypeId, bool]]] = {}
        self._from: TypeId | None = None

    def begin(self, number: TypeId | None) -> None:
        """What is referred to from now on is referred to by this type; None: by what was asked."""
        self._from = number

    def of(self, number: TypeId) -> int:
        return self._distance.get(number, 0)

    def next(self, pointer: bool) -> int:
        """Of what is referred to now."""
        return (0 if self._from is None else self.of(self._from)) + pointer

    def refer(self, number: TypeId, pointer: bool) -> list[TypeId]:
        """Notes a reference. The types that are nearer now than they were known to be."""
        if self._from is not None:
            self._references.setdefault(self._from, []).append((number, pointer))
        nearer: list[TypeId] = []
        waiting = [(number, self.next(pointer))]
        while waiting:
            one, distance = waiting.pop()
            known = self._distance.get(one)
            if known is not None and known <= distance:
                continue
            self._distance[one] = distance
            if known is not None:
                nearer.append(one)
                waiting += [(other, distance + by_pointer) for other, by_pointer in self._references.get(one, ())]
        return nearer
