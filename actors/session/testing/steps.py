"""One process of a test run, under a keeper: its output as lines, its reporter's events, how it ended. All is read from files, so that a session
process that takes over reads it all again."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import psutil

from strobe.adapters.adapter import Exit, Run, Step, Stream
from strobe.errors import StrobeError
from strobe.launch.keeper import adopt_keeper, start_keeper
from strobe.launch.output import parse_output
from strobe.launch.request import Launch
from strobe.launch.status import TargetState
from strobe.model.testing import StuckTest

READ_BYTES: Final = 1 << 20
LINE_BYTES_MAX: Final = 4 << 20  # compilers and test programs tell of one test in one line of JSON
TAIL_LINE_MAX: Final = 4000
REPORT_BYTES_MAX: Final = 64 << 20
LINGER_NS: Final = 2_000_000_000  # a daemon that the step left behind may hold its output open
EVENTS: Final = "STROBE_TEST_EVENTS"
STREAMS: Final[Mapping[int, Stream]] = {1: "stdout", 2: "stderr"}
TAIL_LINES: Final = 40
VERDICT: Final = "stuck"  # in the step's folder: its tests that were running at the limit, and on what


class LiveStep:
    def __init__(self, step: Step, folder: Path, environment: Mapping[str, str], began_ns: int, *, held: bool = False) -> None:
        """`folder` is the step's own. `held`: at its first instruction, until `go`. Errors: VALIDATION_ERROR for what cannot be started."""
        self.step = step
        self.tail: list[str] = []
        self.killed = False
        self.unread = 0  # events that were no JSON
        self._verdict = folder / VERDICT
        self.condemned_before = _known_stuck(self._verdict)  # by the session process before this one: its tests that were running at the limit
        self.changed_ns = time.monotonic_ns()  # when it last said anything
        self._began_ns = began_ns
        self._events = folder / "events"
        self._read_to = self._events_to = 0
        self._parts = {1: b"", 2: b""}
        self._event_part = b""
        self._followed: dict[str, tuple[int, bytes]] = dict.fromkeys(step.follow, (0, b""))  # how far each was read, and the line begun
        if (folder / "status").exists():
            self._keeper = adopt_keeper(folder)
        else:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            wanted = {**environment, "CI": "1", "NO_COLOR": "1", **({EVENTS: str(self._events)} if step.events else {}), **step.env}
            env = {name: value for name, value in wanted.items() if value is not None}
            self._keeper = start_keeper(folder, Launch(path=step.argv[0], argv=step.argv, env=env, cwd=step.cwd, stop=held))
        self._output = os.open(self._keeper.output_path, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def pid(self) -> int:
        return self._keeper.status().pid

    @property
    def held(self) -> bool:
        return self._keeper.status().state is TargetState.STOPPED

    @property
    def streams(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Devices and inodes of its stdout and stderr."""
        status = self._keeper.status()
        return status.stream_dev, status.stream_ino

    def go(self) -> None:
        with contextlib.suppress(StrobeError, ProcessLookupError):  # it was killed there
            self._keeper.continue_target()

    def advance(self, run: Run) -> Exit | None:
        """Hands on what is new; how the step ended, once it has and all is handed on."""
        exit_ = self._ended()  # first: what it wrote before is read after
        for event, at in self._new_events():
            run.event(self.step.name, event, at)
        for text in self._new_report_lines():
            run.line(self.step.name, "report", text, self._at(self.changed_ns))
        for stream, text, at in self._new_lines(last=exit_ is not None):
            self.tail = [*self.tail[1 - TAIL_LINES :], text[:TAIL_LINE_MAX]]
            run.line(self.step.name, stream, text, at)
        return exit_

    def condemn(self, stuck: list[StuckTest]) -> None:
        """It is to be killed for these. Kept, for a session process that takes over before all is told."""
        part = self._verdict.with_name(f"{VERDICT}.part")
        part.write_bytes(orjson.dumps([one.model_dump(by_alias=True, mode="json") for one in stuck]))
        part.rename(self._verdict)

    def kill(self) -> None:
        """All that the step started, daemons too. Blocks."""
        self.killed = True
        try:
            self._keeper.control.kill_tree(signal.SIGKILL)
        except StrobeError:  # the keeper has ended with all, or cannot be reached
            self._kill_by_hand()

    def close(self) -> None:
        """Nothing that the step started lives on. Blocks."""
        self.kill()
        with contextlib.suppress(StrobeError):  # it has ended
            self._keeper.control.drain()
        self._keeper.close()
        os.close(self._output)

    def _kill_by_hand(self) -> None:
        """Without a keeper: the process that it started, its group and its descendants; none where it has ended."""
        if not self._keeper.target_alive():
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.pid)
            tree = [*root.children(recursive=True), root]
            with contextlib.suppress(ProcessLookupError):
                os.killpg(root.pid, signal.SIGKILL)  # it was given a group of its own
            for process in tree:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()

    def reports(self) -> dict[str, str]:
        found = {}
        for name in self.step.reports:
            with contextlib.suppress(OSError), Path(name).open("rb") as stream:
                found[name] = stream.read(REPORT_BYTES_MAX).decode(errors="replace")
        return found

    def _ended(self) -> Exit | None:
        if self._keeper.lost():
            return Exit(killed=True)
        status = self._keeper.status()
        if status.state is not TargetState.EXITED:
            return None
        if not all(status.stream_ended) and time.monotonic_ns() - status.exited_ns < LINGER_NS:
            return None
        number = status.signal
        return Exit(status.exit_code, None if number is None else signal.Signals(number).name, self.killed)

    def _new_lines(self, *, last: bool) -> Iterator[tuple[Stream, str, float]]:
        while content := os.pread(self._output, READ_BYTES + (1 << 20), self._read_to):
            records = list(parse_output(memoryview(content), self._read_to))
            if not records:
                break
            for record in records:
                self._read_to = record.end
                self.changed_ns = record.arrival_ns
                yield from self._split(record.stream, bytes(record.data), self._at(record.arrival_ns), last=record.last)
        if last:
            for number in STREAMS:
                yield from self._split(number, b"", self._at(self.changed_ns), last=True)

    def _split(self, number: int, data: bytes, at: float, *, last: bool) -> Iterator[tuple[Stream, str, float]]:
        *whole, rest = (self._parts[number] + data).split(b"\n")
        if last and rest:
            whole, rest = [*whole, rest], b""
        self._parts[number] = _bounded(rest)
        for line in whole:
            yield STREAMS[number], _bounded(line).rstrip(b"\r").decode(errors="replace"), at

    def _new_events(self) -> Iterator[tuple[dict[str, Any], float]]:
        try:
            stream = self._events.open("rb")
        except FileNotFoundError:
            return
        with stream:
            stream.seek(self._events_to)
            while content := stream.read(READ_BYTES):
                self._events_to += len(content)
                *whole, self._event_part = (self._event_part + content).split(b"\n")
                if whole:
                    self.changed_ns = time.monotonic_ns()
                for line in whole:
                    try:
                        event = orjson.loads(line)
                    except orjson.JSONDecodeError:  # of a reporter that was killed in the middle of it
                        self.unread += 1
                        continue
                    if isinstance(event, dict):
                        yield event, self._at(self.changed_ns)

    def _new_report_lines(self) -> Iterator[str]:
        for name, (read_to, part) in list(self._followed.items()):
            with contextlib.suppress(OSError), Path(name).open("rb") as stream:
                stream.seek(read_to)
                while content := stream.read(READ_BYTES):
                    self.changed_ns = time.monotonic_ns()
                    *whole, rest = (part + content).split(b"\n")
                    read_to, part = self._followed[name] = (read_to + len(content), _bounded(rest))
                    yield from (_bounded(line).decode(errors="replace") for line in whole)

    def _at(self, ns: int) -> float:
        return max(0.0, (ns - self._began_ns) / 1e6)


def _bounded(line: bytes) -> bytes:
    """Its beginning and its end, which tell most: a panic's message comes after what was printed on the same line."""
    half = LINE_BYTES_MAX // 2
    return line if len(line) <= LINE_BYTES_MAX else line[:half] + line[-half:]


def _known_stuck(verdict: Path) -> list[StuckTest]:
    try:
        return [StuckTest.model_validate(one) for one in orjson.loads(verdict.read_bytes())]
    except FileNotFoundError:
        return []
