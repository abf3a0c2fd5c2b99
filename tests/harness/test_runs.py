"""Runs an adapter's steps as real processes, as the engine does: output, events and reports go in, the book comes out."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import orjson

from strobe.adapters.adapter import Adapter, Exit, Project, Request, Run, Step, Stream
from strobe.adapters.book import Book

TOOL_FOLDERS: Final = frozenset({".git", "node_modules", ".venv", "venv", "target", "__pycache__", "dist", ".strobe"})


class FolderProject:
    """A `Project` on disk."""

    def __init__(self, root: Path, path: str | None = None) -> None:
        self._root = root
        self.path = path

    @property
    def root(self) -> str:
        return str(self._root)

    def files(self, pattern: str, limit: int = 1000) -> Sequence[str]:
        wanted = re.compile(regex(pattern))
        found: list[str] = []
        for folder, folders, names in os.walk(self._root):
            folders[:] = sorted(set(folders) - TOOL_FOLDERS)
            base = Path(folder).relative_to(self._root)
            found += [path for name in names if wanted.fullmatch(path := str(base / name))]
        return sorted(found)[:limit]

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        try:
            return (self._root / path).read_bytes()[:limit].decode(errors="replace")
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        return (self._root / path).exists()

    def program(self, name: str) -> str | None:
        return shutil.which(name, path=self.path)

    def has_bytes(self, path: str, needle: bytes) -> bool:
        try:
            return needle in (self._root / path).read_bytes()
        except OSError:
            return False


def regex(pattern: str) -> str:
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]*\])", pattern)
    made = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(made.get(part) or (part if part.startswith("[") and part.endswith("]") else re.escape(part)) for part in parts)


@dataclass(slots=True)
class Outcome:
    """`seen`: every set of running tests that was looked at, as (name, pid)."""

    book: Book
    exits: dict[str, Exit] = field(default_factory=dict)
    seen: list[tuple[tuple[str, int | None], ...]] = field(default_factory=list)
    events: list[dict[str, object]] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    recording: list[dict[str, object]] = field(default_factory=list)  # all that the adapter was told, in order

    def ever_running(self) -> set[str]:
        return {name for at_once in self.seen for name, _ in at_once}

    def pids(self, name: str) -> set[int]:
        return {pid for at_once in self.seen for one, pid in at_once if one == name and pid is not None}


def drive(
    adapter: Adapter, project: Project, request: Request, *, limit_s: float = 60, kill_when: Callable[[Book], bool] | None = None,
    env: Mapping[str, str] | None = None,
) -> Outcome:  # fmt: skip
    """Runs it whole. `kill_when` is asked after every event: true ends the run as the engine does at a limit."""
    return _Drive(adapter.start(project, request), limit_s, kill_when, env or {}, request).whole()


class _Drive:
    def __init__(self, run: Run, limit_s: float, kill_when: Callable[[Book], bool] | None, env: Mapping[str, str], request: Request) -> None:
        self.run = run
        self.end = time.monotonic() + limit_s
        self.began = time.monotonic()
        self.kill_when = kill_when
        self.env = env
        self.request = request
        self.outcome = Outcome(run.book)
        self.lock = threading.Lock()
        self.lines_told: dict[Path, int] = {}

    def at(self) -> float:
        return (time.monotonic() - self.began) * 1000

    def whole(self) -> Outcome:
        steps = list(self.run.begin())
        while steps:
            step = steps.pop(0)
            exit, reports = self.step(step)
            self.outcome.exits[step.name] = exit
            self.outcome.recording.append({"exit": dataclasses.asdict(exit), "reports": reports})
            more = self.run.ended(step.name, exit, reports, self.at())
            if exit.killed:
                break
            steps += more
        self.run.finish(self.at())
        return self.outcome

    def step(self, step: Step) -> tuple[Exit, dict[str, str]]:
        env = {**os.environ, "CI": "1", "NO_COLOR": "1", **self.env}
        for name, value in step.env.items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = value
        work = Path(self.request.work)
        events = work.parent / f"{work.name}-{step.name}.events"
        if step.events:
            env["STROBE_TEST_EVENTS"] = str(events)
        process = subprocess.Popen(
            step.argv, cwd=step.cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        readers = [
            threading.Thread(target=self.read, args=(step, "stdout", process.stdout)),
            threading.Thread(target=self.read, args=(step, "stderr", process.stderr)),
        ]
        for reader in readers:
            reader.start()
        try:
            killed = self.follow(step, process, events)
        finally:
            _kill_group(process.pid)
            process.wait()
        for reader in readers:
            reader.join(10)
        self.tell(step, events)
        return _exit(process.returncode, killed), {path: Path(path).read_text(errors="replace") for path in step.reports if Path(path).is_file()}

    def follow(self, step: Step, process: subprocess.Popen[bytes], events: Path) -> bool:
        """Until it ends or is to be ended; true for the latter."""
        while process.poll() is None:
            self.tell(step, events)
            if time.monotonic() > self.end or (self.kill_when is not None and self.kill_when(self.run.book)):
                return True
            time.sleep(0.01)
        return False

    def read(self, step: Step, stream: Stream, pipe: IO[bytes]) -> None:
        for line in pipe:
            text = line.decode(errors="replace").rstrip("\n")
            with self.lock:
                self.outcome.output.append(text)
                self.outcome.recording.append({"line": text, "stream": stream})
                self.run.line(step.name, stream, text, self.at())
                self.note()

    def followed(self, step: Step) -> None:
        for path in map(Path, step.follow):
            if not path.is_file():
                continue
            lines = path.read_bytes().split(b"\n")[:-1]
            told = self.lines_told.get(path, 0)
            self.lines_told[path] = len(lines)
            for line in lines[told:]:
                with self.lock:
                    self.run.line(step.name, "report", line.decode(errors="replace"), self.at())
                    self.note()

    def tell(self, step: Step, events: Path) -> None:
        self.followed(step)
        if not step.events:
            return
        told = len([one for one in self.outcome.events if one["_step"] == step.name])
        lines = (events.read_bytes() if events.exists() else b"").split(b"\n")[:-1]
        for line in lines[told:]:
            event = orjson.loads(line)  # as the engine: it takes no half of a surrogate pair
            with self.lock:
                self.outcome.events.append({**event, "_step": step.name})
                self.outcome.recording.append({"event": event})
                self.run.event(step.name, event, self.at())
                self.note()

    def note(self) -> None:
        running = tuple((one.name, one.pid) for one in self.run.book.running.values())
        if not self.outcome.seen or self.outcome.seen[-1] != running:
            self.outcome.seen.append(running)


def _kill_group(group: int) -> None:
    """And those that a runner put into groups of their own, as cargo-nextest does: the engine kills trees."""
    tree = _tree(group)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    for pid in tree:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _tree(root: int) -> list[int]:
    found = [root]
    for pid in found:
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{pid}/task").iterdir():
                found += [int(child) for child in (path / "children").read_text().split()]
    return found[1:]


def _exit(code: int, killed: bool) -> Exit:
    return Exit(signal=signal.Signals(-code).name, killed=killed) if code < 0 else Exit(code=code, killed=killed)
