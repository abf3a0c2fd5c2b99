"""Walk programs as a plan has them: one section, in which programs refer to each other by the index of their first step."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import copy
from typing import Final

from strobe.lanes.layout import WALK_NOTHING, WalkFlag, WalkOp
from strobe.model.type_nodes import TypeId
from strobe.model.types import TypeTable
from strobe.values.bundle import Code
from strobe.values.forms import Form
from strobe.values.registry import Formatters
from strobe.values.walk_programs import Programs
from strobe.values.walk_steps import BYTES_MAX, END, NOTHING, Step

ELEMENTS: Final = 100
TEXT: Final = 1024


class WalkCompiler:
    """One section of programs. `depth`: how many pointers are followed from the object on, as the Reader counts them; texts are copied at every depth.
    `codes`: by these an object's own class is told when it is copied."""

    def __init__(self, table: TypeTable, formatters: Formatters, elements: int = ELEMENTS, text: int = TEXT, codes: Sequence[Code] = ()) -> None:
        self.table = table
        self._programs = Programs(table, formatters, elements, text, codes)
        self._section = Section(self._programs)

    def another(self) -> WalkCompiler:
        """For another section of the same types: what was worked out for this one is not worked out again."""
        other = copy(self)
        other._section = Section(self._programs)
        return other

    def program(self, number: TypeId, depth: int) -> int:
        """Index of the program to run on an object of the type (a pointer's: follows it), or WALK_NOTHING."""
        return self._section.place(self._programs.target(number, depth))

    def pointed(self, number: TypeId, depth: int) -> int:
        """The same for an object at the address that lies where the program is run: a value that is passed by its address."""
        return self.place(self._programs.point(0, number, depth))

    def at(self, address: int, number: TypeId, depth: int, thread_local: bool = False) -> int:
        """For an object at a known address, or so many bytes from the thread pointer on."""
        size = self._programs.size(number)
        if not 0 < size <= BYTES_MAX:
            return WALK_NOTHING
        flags = WalkFlag.THREAD_LOCAL if thread_local else WalkFlag(0)
        return self.place([Step(WalkOp.AT, size=size, target=self._programs.target(number, depth), flags=flags, a=address)])

    def place(self, steps: list[Step]) -> int:
        """The same for steps made by others, of `anonymous`'s numbers."""
        return self._section.place(self._programs.anonymous(steps))

    def anonymous(self, steps: list[Step]) -> int:
        """Number of the program of these steps."""
        return self._programs.anonymous(steps)

    def target(self, number: TypeId, depth: int, begin: int = 0) -> int:
        """Number of the program for an object of the type that begins `begin` bytes into what the program runs on."""
        return self._programs.target(number, depth, begin)

    def form(self, number: TypeId) -> Form | None:
        return self._programs.form(number)

    def size(self, number: TypeId) -> int:
        """Bytes, as the reader has them; 0 for what has none."""
        return self._programs.size(number)

    def object(self, number: TypeId, at: int, depth: int) -> list[Step]:
        """Steps for an object of the type, `at` bytes into what the program runs on."""
        return self._programs.object(number, at, depth)

    def section(self) -> bytes:
        return bytes(self._section.steps)

    @property
    def steps(self) -> int:
        return len(self._section.steps) // len(END)


class Section:
    """Programs one after the other; those that are referred to come with those that refer to them."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._starts: dict[int, int] = {}  # of each program here: index of its first step, or WALK_NOTHING
        self.steps = bytearray()

    def place(self, program: int) -> int:
        """Where the program begins, once it and all that it refers to are here."""
        if program == NOTHING:
            return WALK_NOTHING
        self._programs.finish()
        at = len(self.steps) // len(END)
        added: list[tuple[Step, ...]] = []
        for one in self._missing(program):
            kept = tuple(step for step in self._programs[one] if self._programs.kept(step))
            self._starts[one] = at if kept else WALK_NOTHING
            if kept:
                added.append(kept)
                at += len(kept) + 1
        for steps in added:
            for step in steps:
                self.steps += step.packed(self._begin(step))
            self.steps += END
        return self._starts[program]

    def _missing(self, program: int) -> list[int]:
        """The program and those that it leads to, as far as they are not here, nearest first."""
        found = {program: None} if program not in self._starts else {}
        waiting = deque(found)
        while waiting:
            for step in self._programs[waiting.popleft()]:
                if step.target != NOTHING and step.target not in self._starts and step.target not in found:
                    found[step.target] = None
                    waiting.append(step.target)
        return list(found)

    def _begin(self, step: Step) -> int:
        """Where its target begins; nothing where that would read more than there is: a form that speaks of more than its type has."""
        if step.target == NOTHING or (step.op != WalkOp.WHEN and self._programs.needs(step.target) > step.gives):
            return WALK_NOTHING
        return self._starts[step.target]
