"""Crash events: each death told once, with the stack that the recorder saved and what the runtime printed about it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from actors.session import crash as crashes
from actors.session.lifecycle import CRASH_SIGNALS
from actors.session.oom import oom_file, oom_kills
from actors.session.reports import Report, reports_in
from actors.session.target import Asker, Target
from strobe.errors import Code, StrobeError
from strobe.modules import parse_maps
from strobe.protocol.indexer import Demangle, FramesReply, NamesReply, Unwind

UNWIND_S: Final = 10.0
UNWIND_AGAIN_S: Final = 8.0  # so long an indexer or a supervisor that has just died is waited for
UNWIND_EVERY_S: Final = 0.2
GONE_S: Final = 1.0  # so long a process that crashed is waited for: all that it printed is there then
NOTICES_MAX: Final = 50  # reports of a program that goes on
# Faults say themselves what happened; of the others the runtime's last words do
_FAULTS: Final = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE})
_NO_PAGE: Final = "No stack was saved: "
_UNSEEN: Final = "the signal was blocked or forced by the kernel (seccomp, a fault while the same one was handled), or the process had no recorder."
_OTHER_ACTION: Final = "nobody can catch this signal."
_AS_EXIT: Final = ("panic", "sanitizer")  # reports after which a program ends by itself, with an exit code


class Deaths:
    """`killed_by_us`: the end that is coming is Strobe's own doing."""

    def __init__(self, actor: Asker, target: Target, warn: Callable[[str], None]) -> None:
        self.actor = actor
        self.target = target
        self.warn = warn
        self.killed_by_us = False
        self._tasks: list[asyncio.Task[None]] = []
        self._pids: set[int] = set()  # whose crash was told
        self._signals: dict[int, int] = {}  # of those
        self._used: Counter[tuple[Any, ...]] = Counter()  # reports that an event has
        pid = target.life.pid or target.keeper.status().pid
        self._oom_file = oom_file(pid)
        self._ooms = oom_kills(self._oom_file)

    def seen(self, crash: crashes.Crash) -> None:
        self._pids.add(crash.pid)
        self._signals[crash.pid] = crash.signo
        self._tasks.append(asyncio.get_running_loop().create_task(self._tell(crash)))

    async def told(self) -> None:
        if self._tasks:
            await asyncio.gather(*self._tasks)

    def signal_told(self) -> int | None:
        """Of the target, as its wait status, where its crash has told it."""
        return self._signals.get(self.target.pid)

    async def ended(self, wait_status: int | None, exited_ns: int) -> None:
        """Of the target itself: what no crash page tells."""
        if wait_status is None:
            return
        number = os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else 0
        pid = self.target.keeper.status().pid
        found = await self._reports()
        told = pid in self._pids or self._note(pid).exists()
        if number in CRASH_SIGNALS and not told:
            self._without_page(number, pid, exited_ns, self._take(found, number), _NO_PAGE + _UNSEEN)
        elif number == signal.SIGKILL and not (told or self.killed_by_us):
            self._without_page(number, pid, exited_ns, None, _NO_PAGE + _OTHER_ACTION)
        elif not number and os.WEXITSTATUS(wait_status) and not told:
            fatal = [report for report in found if report.fatal and report.kind in _AS_EXIT]
            if fatal:
                self._mark(fatal[-1])
                self._by_itself(os.WEXITSTATUS(wait_status), pid, exited_ns, fatal[-1])
        for report in self._unused(found)[:NOTICES_MAX]:
            self._mark(report)
            self._event("exception", exited_ns, pid, pid, report.headline() + crashes.in_words(_place(report)), {**_place(report), "report": report.to_wire()})

    async def _tell(self, crash: crashes.Crash) -> None:
        modules = parse_maps(crash.maps)
        ask = Unwind(
            modules=modules, regs=crashes.dwarf_registers(crash), stack_base=crash.stack_base, stack=crash.stack,
            project_root=self.target.journal.project_root or None,
        )  # fmt: skip
        missing: dict[str, Any] = {}
        try:
            reply = await self._unwound(ask)
        except StrobeError as error:  # the crash itself must be told, whatever became of its stack
            reply = FramesReply(frames=[])
            missing = {"framesMissing": f"{error.what} {error.next_step}"}
        await self._until_gone(crash.pid)
        report = await self._with_thrown(self._take(await self._reports(), crash.signo), crash, reply)
        data = crashes.event_data(crash, reply.frames, reply.culprit) | missing
        if crash.pid != self.target.life.pid:
            data["child"] = True
        text = crashes.summary(crash, reply.frames, reply.culprit)
        if report is not None:
            text = f"{crashes.signal_name(crash.signo)}: {report.headline()}{crashes.in_words(_place(report) if report.file else data)}"
            data |= {"report": report.to_wire()}
            if report.file and report.line:  # where it says it happened
                data |= _place(report)
        self._told(text, data)
        self.target.collector.tell_event("crash", crash.ts, crash.pid, crash.tid, text, data)
        self._noted(crash.pid)

    async def _with_thrown(self, report: Report | None, crash: crashes.Crash, reply: FramesReply) -> Report | None:
        """The exception that the recorder found, where the runtime printed nothing, or less."""
        if crash.thrown is None or not crashes.is_thrown(reply.frames) or (report is not None and report.kind != "exception"):
            return report
        mangled, message = crash.thrown
        if report is not None:
            return report if report.message else replace(report, message=message)
        try:
            names: NamesReply = await self.actor.ask("indexer", Demangle(names=[mangled]), deadline_s=UNWIND_S)
            shown = names.names[0]
        except StrobeError:  # its mangled name tells too
            shown = mangled
        return Report("exception", shown, message)

    def _note(self, pid: int) -> Path:
        """There once its crash was told: a successor of this process, which has not seen the crash, does not tell it again."""
        return self.target.folder / f"died-{pid}"

    def _noted(self, pid: int) -> None:
        with suppress(FileNotFoundError):  # the folder has gone with its session, which was deleted
            self._note(pid).touch()

    def _told(self, text: str, data: dict[str, Any]) -> None:
        if self.target.crash is None or (self.target.crash.get("child") and not data.get("child")):
            self.target.crash = {"summary": text, **data}

    def _without_page(self, number: int, pid: int, at_ns: int, report: Report | None, why: str) -> None:
        name = crashes.signal_name(number)
        data: dict[str, Any] = {"signal": name, "signo": number, "framesMissing": why}
        text = name
        if number == signal.SIGKILL:
            data["cause"] = self._killer()
            text = f"{name}, {data['cause']}"
        if report is not None:
            data |= {"report": report.to_wire(), **_place(report)}
            text = f"{name}: {report.headline()}{crashes.in_words(_place(report))}"
        self._told(text, data)
        self._event("crash", at_ns, pid, pid, text, data)
        self._noted(pid)

    def _killer(self) -> str:
        now = oom_kills(self._oom_file)
        proven = self._ooms is not None and now is not None and now > self._ooms
        return f"out of memory: the oom_kill count of its cgroup rose from {self._ooms} to {now}" if proven else "sender unknown"

    def _by_itself(self, code: int, pid: int, at_ns: int, report: Report) -> None:
        """Exit by a runtime that has printed why."""
        data: dict[str, Any] = {"exitCode": code, "cause": report.headline(), **_place(report), "report": report.to_wire()}
        if report.address:
            data["faultAddress"] = report.address
        text = f"exit code {code}: {report.headline()}{crashes.in_words(_place(report))}"
        self._told(text, data)
        self._event("crash", at_ns, pid, pid, text, data)
        self._noted(pid)

    def _event(self, kind: str, at_ns: int, pid: int, tid: int, text: str, data: dict[str, Any]) -> None:
        self.target.collector.tell_timed({"type": kind, "tsNs": at_ns, "pid": pid, "tid": tid, "text": text, "data": data})

    async def _until_gone(self, pid: int) -> None:
        """What it printed at last is read then."""
        deadline = time.monotonic() + GONE_S
        while time.monotonic() < deadline and not _gone(pid):
            await asyncio.sleep(0.01)

    async def _reports(self) -> list[Report]:
        """In a thread: a megabyte of output takes a while."""
        try:
            return await asyncio.to_thread(self._look_through)
        except (StrobeError, OSError) as error:  # the crash is told without them
            self.warn(f"the output was not looked through: {error}")
            return []

    def _look_through(self) -> list[Report]:
        texts = self.target.collector.recent_output()
        return [report for stream in sorted(texts) for report in reports_in(texts[stream])]

    def _take(self, found: list[Report], number: int) -> Report | None:
        """The last of them that may be about a death by this signal, and that no other has."""
        if number in _FAULTS:
            return None
        fitting = [report for report in self._unused(found) if report.fatal or report.kind == "panic"]
        if not fitting:
            return None
        self._mark(fitting[-1])
        return fitting[-1]

    def _unused(self, found: list[Report]) -> list[Report]:
        seen: Counter[tuple[Any, ...]] = Counter()
        left = []
        for report in found:
            key = _key(report)
            seen[key] += 1
            if seen[key] > self._used[key]:
                left.append(report)
        return left

    def _mark(self, report: Report) -> None:
        self._used[_key(report)] += 1

    async def _unwound(self, ask: Unwind) -> FramesReply:
        """Asked again where who should answer has just died: a crash is told once, and its stack is what is looked for."""
        until = time.monotonic() + UNWIND_AGAIN_S
        while True:
            try:
                reply: FramesReply = await self.actor.ask("indexer", ask, deadline_s=UNWIND_S)
            except StrobeError as error:
                if error.code is not Code.ACTOR_UNAVAILABLE or time.monotonic() > until:
                    raise
            else:
                return reply
            await asyncio.sleep(UNWIND_EVERY_S)


def _key(report: Report) -> tuple[Any, ...]:
    return report.kind, report.type, report.message, report.file, report.line, report.pid


def _place(report: Report) -> dict[str, Any]:
    shown = {"function": report.function, "file": report.file, "line": report.line}
    return {key: value for key, value in shown.items() if value is not None}


def _gone(pid: int) -> bool:
    """No such process, or one that is over and waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return True
