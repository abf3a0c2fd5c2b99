"""The demo itself: what a model would ask, and what the answers show. Every finding is worked out from the answers; none is known beforehand."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from strobe.demo import screen

FUNCTIONS: Final = ("next_slot", "journal_write", "charge_fee")
END_WAIT_S: Final = 30.0


class Caller(Protocol):
    """A tool call: its structured answer. Raises CallFailed."""

    async def __call__(self, tool: str, arguments: dict[str, Any], *, show: bool = True) -> dict[str, Any]: ...


class CallFailed(Exception):
    """A tool answered with an error: its text."""


class NotFound(Exception):
    """The answers do not show what they must: a mistake of Strobe's."""


@dataclass
class Demo:
    program: Path
    caller: Caller

    async def tell(self) -> None:
        """Raises CallFailed, NotFound."""
        screen.heading(1, "The program crashes. Run it under Strobe, as it is, and ask what happened.")
        first = await self._launch()
        await self._wait_for_end(first)
        crash = await self._crash(first)
        screen.heading(2, "Look at that number from inside: run it again and, while it runs, trace three functions.")
        second = await self._launch()
        traced = await self.caller("debug_trace", {"sessionId": second, "add": list(FUNCTIONS)})
        _expect(traced["hookedFunctions"] == len(FUNCTIONS), f"{len(FUNCTIONS)} functions hooked in the running program")
        await self._wait_for_end(second)
        screen.heading(3, "What was written to the journal last, and what did next_slot answer before?")
        await self._culprit(second, crash)
        screen.heading(4, "Done: end both sessions.")
        for session in (first, second):
            await self.caller("debug_session", {"action": "stop", "sessionId": session})

    async def output_only(self) -> None:
        """What works where nothing can be traced."""
        screen.heading(1, "Output capture works without tracing:")
        session = await self._launch()
        await self._wait_for_end(session)
        await self.caller("debug_query", {"sessionId": session, "eventType": "stdout", "limit": 5})
        await self.caller("debug_session", {"action": "stop", "sessionId": session})

    async def end_all(self) -> None:
        """Stops what is still there, and its programs."""
        for session in (await self.caller("debug_session", {"action": "list"}, show=False))["sessions"]:
            try:
                await self.caller("debug_session", {"action": "stop", "sessionId": session["sessionId"], "kill": True}, show=False)
            except CallFailed as error:
                screen.line(f"(not stopped: {error})")

    async def _launch(self) -> str:
        reply = await self.caller("debug_launch", {"command": str(self.program), "projectRoot": str(self.program.parent)})
        return str(reply["sessionId"])

    async def _wait_for_end(self, session: str) -> None:
        screen.line("   (waiting for the program to end)")
        deadline = time.monotonic() + END_WAIT_S
        while time.monotonic() < deadline:
            status = (await self.caller("debug_session", {"action": "status", "sessionId": session}, show=False))["status"]
            if status not in ("running", "paused"):
                return
        raise NotFound(f"{session} has not ended within {END_WAIT_S:g} s")

    async def _crash(self, session: str) -> dict[str, Any]:
        crash = (await self.caller("debug_query", {"sessionId": session, "limit": 100})).get("crash")
        _expect(crash is not None and "address" in crash, "a crash with its address")
        assert crash is not None
        screen.finding(
            f"it dies in {crash['function']} (line {crash['line']} of its source) when it reaches for address {crash['address']}. "
            f"That is no address: it is the number {int(crash['address'], 16)}, about as large as an amount in cents."
        )
        return dict(crash)

    async def _culprit(self, session: str, crash: dict[str, Any]) -> None:
        number = int(crash["address"], 16)
        writes = await self._calls(session, "journal_write")
        last = _arguments(writes[-1])
        _expect(last["cents"] == number, "the last journal_write with the number of the crash")
        answers = await self._calls(session, "next_slot")
        given = _arguments(answers[-1])["slot"]
        returned = answers[-1]["returnValue"]
        _expect(returned == last["slot"], "next_slot returning the slot written last")
        path = self.program.with_suffix(".c")
        room = _journal_slots(path)
        _expect(last["slot"] >= room, f"a write behind the journal's {room} slots")
        screen.finding(
            f"the last write put {last['cents']}, the number of the crash, into slot {last['slot']}. The journal has {room} slots, 0 to {room - 1}: "
            "this one lies behind its end, where the pointer `fees` is kept."
        )
        screen.finding(f"next_slot({given}) returned {returned}; it should have begun again at 0. The mistake:")
        for shown in _source(path, answers[-1].get("line") or _line_of(path, "next_slot")):
            screen.line(f"         {shown}")

    async def _calls(self, session: str, function: str) -> list[dict[str, Any]]:
        """The traced calls of one function with arguments and result, in order."""
        wanted = {"sessionId": session, "eventType": "function_exit", "function": {"equals": function}, "verbose": True, "maxTokens": 12_000}
        events: list[dict[str, Any]] = (await self.caller("debug_query", wanted))["events"]
        _expect(bool(events), f"calls of {function}")
        return events


def _arguments(event: dict[str, Any]) -> dict[str, Any]:
    return {argument["name"]: argument["value"] for argument in event["arguments"]}


def _expect(shown: bool, what: str) -> None:
    if not shown:
        raise NotFound(f"The answers do not show {what}.")


def _journal_slots(path: Path) -> int:
    return next(int(line.split()[2]) for line in path.read_text().splitlines() if line.startswith("#define JOURNAL_SLOTS"))


def _line_of(path: Path, function: str) -> int:
    """Where a function stands, for an answer that came before its lines were read."""
    return next(number for number, line in enumerate(path.read_text().splitlines(), start=1) if f" {function}(" in line and not line.startswith(" "))


def _source(path: Path, first: int) -> list[str]:
    """The lines of the function that starts at `first` (or has its opening brace there), up to its closing brace."""
    lines = path.read_text().splitlines()
    if lines[first - 1].strip() == "{":
        first -= 1
    shown = [f"{path.name}:"]
    for number, text in enumerate(lines[first - 1 : first + 9], start=first):
        shown.append(f"{number:3}  {text}")
        if text == "}":
            break
    return shown
