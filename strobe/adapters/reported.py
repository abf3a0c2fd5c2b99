"""A run that is told of live, and whose last word is a JUnit report: bun and deno."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from strobe.adapters.junit import JUnitCase, read_junit
from strobe.adapters.narrated import NarratedRun
from strobe.adapters.v8 import message_of


class ReportedRun(NarratedRun):
    """The live part may name tests otherwise than the runner does (rows of a table); where there is a report, it counts alone."""

    def reports_read(self, reports: Mapping[str, str], at: float) -> None:
        text = next(iter(reports.values()), None)
        if text is None:
            return
        try:
            cases = read_junit(text)
        except ValueError as broken:
            self.book.errors.append(f"{self.plan.framework}'s report could not be read: {broken}")
            return
        live = dict(self.book.tests)
        self.book.tests.clear()
        self.book.running.clear()
        self.known.clear()
        self.taken.clear()
        self.began = True
        for number, case in enumerate(cases):
            self.reported(number, case, at)
        for key, test in self.book.tests.items():
            before = live.get(key)
            # What was thrown has the whole stack, the report sometimes a part of it.
            if before and before.failures and test.failures and len(before.failures[0].stack_trace) > len(test.failures[0].stack_trace):
                self.book.tests[key] = test.model_copy(update={"failures": before.failures})
        self.book.finished = True

    def path_of(self, case: JUnitCase) -> Sequence[str]:
        return [*case.suites[1:], case.name]

    def reported(self, number: int, case: JUnitCase, at: float) -> None:
        failures = [{"message": re.sub(r"^Uncaught ", "", message_of(one.message or one.text)), "stack": one.text} for one in case.problems]
        status = "skipped" if case.skipped else "failed" if failures else "passed"
        todo = (case.reason or "").upper() == "TODO"
        self.on_end(
            {
                "id": str(number), "path": self.path_of(case), "file": case.file or case.suites[0], "line": case.line, "status": status,
                "failures": failures, "todo": todo,
                "ms": case.seconds * 1000 if case.seconds is not None and not case.skipped else None, "reason": None if todo else case.reason,
            }, at,
        )  # fmt: skip
