"""What goes into the evidence while a run goes on: traces of sessions that are let go afterwards, and the facts of the machine."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import strobe
from strobe.ci.junit import junit_xml
from strobe.ci.link import Link
from strobe.ci.suite import Outcome
from strobe.config import load_settings
from strobe.errors import StrobeError
from strobe.evidence.manifest import FORMAT, name_problem
from strobe.evidence.traces import TraceWriter
from strobe.evidence.writing import BundleWriter
from strobe.model.query import Query
from strobe.preflight.elf import BrokenElf, Elf
from strobe.protocol.store import ListSessions, QueryReply, RunQuery, SessionsReply
from strobe.redaction import Redactor

EVENTS_MAX: Final = 50_000  # of one session
PAGE: Final = 500
PAGE_S: Final = 30.0
SOURCES_MAX: Final = 300
SOURCE_BYTES_MAX: Final = 1 << 20
GIT_S: Final = 20.0


class Gathered:
    """Context manager: its folder of traces goes with it."""

    def __init__(self, project: Path) -> None:
        self._project = project
        settings = load_settings(str(project)).values
        self.redactor = Redactor(settings["redaction.patterns"]) if settings["redaction.enabled"] else None
        self._folder = tempfile.TemporaryDirectory(prefix="strobe-ci-")
        self._traces: dict[str, tuple[Path, int]] = {}  # session → file, number redacted
        self._sources: dict[str, None] = {}
        self._programs: dict[str, None] = {}
        self._left_out: list[str] = []

    def __enter__(self) -> Gathered:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    async def keep(self, link: Link, session_id: str) -> None:
        """Its events, redacted; a trace that cannot be read is told and not had."""
        if session_id in self._traces:
            return
        path = Path(self._folder.name) / f"{session_id}.parquet"
        before = self.redactor.found if self.redactor else 0
        try:
            listed: SessionsReply = await link.node.ask("store", ListSessions(session_id=session_id))
            self._programs[listed.sessions[0].binary_path] = None
            with TraceWriter(path) as writer:
                await self._pages(link, session_id, writer)
        except StrobeError as error:
            path.unlink(missing_ok=True)
            self._left_out.append(f"trace of {session_id}: {error.what}")
            return
        self._traces[session_id] = path, (self.redactor.found if self.redactor else 0) - before

    async def _pages(self, link: Link, session_id: str, writer: TraceWriter) -> None:
        cursor: str | None = None
        while True:
            query = Query(verbose=True, limit=PAGE, cursor=cursor)
            page: QueryReply = await link.node.ask("store", RunQuery(session_id=session_id, query=query), deadline_s=PAGE_S)
            events = [self.redactor.value(event) for event in page.events] if self.redactor else page.events
            writer.write(events)
            self._sources |= dict.fromkeys(event["sourceFile"] for event in events if event.get("sourceFile"))
            cursor = page.cursor
            if not page.has_more or cursor is None:
                return
            if writer.events >= EVENTS_MAX:
                self._left_out.append(f"{page.total_count - writer.events:,} events of {session_id}, after the first {writer.events:,}")
                return

    def write(self, path: Path, outcome: Outcome, command: list[str], more: dict[str, Any]) -> tuple[str, int]:
        """The bundle. `more`: further JSON members. Answers its manifest's SHA-256, and how much was redacted."""
        with BundleWriter(path, self.redactor) as bundle:
            bundle.left_out += self._left_out
            result = outcome.result.model_dump(by_alias=True, mode="json", exclude_none=True) if outcome.result else None
            tests = [case.model_dump(by_alias=True, mode="json", exclude_none=True) for case in outcome.cases]
            about = {"testRunId": outcome.run_id, "framework": outcome.framework, "result": result, "error": outcome.error, "warnings": outcome.warnings}
            bundle.json("results.json", {**about, "tests": tests})
            bundle.text("junit.xml", junit_xml(outcome).decode())
            bundle.text("output/last-lines.txt", "\n".join([*outcome.last_lines, ""]))
            for name, value in more.items():
                bundle.json(name, value)
            for session_id, (trace, redacted) in self._traces.items():
                bundle.file(f"traces/{session_id}.parquet", trace)
                bundle.count(f"traces/{session_id}.parquet", redacted)
            self._add_sources(bundle, outcome)
            digest = bundle.finish(self._facts(outcome, command))
            return digest, sum(bundle.redacted.values())

    def _add_sources(self, bundle: BundleWriter, outcome: Outcome) -> None:
        files = [case.file for case in outcome.cases if case.failures and case.file]
        for failure in (failure for case in outcome.cases for failure in case.failures):
            files += [file for file in (failure.file, *(frame.file for frame in failure.stack_trace)) if file]
        added: set[str] = set()
        for file in [*files, *self._sources]:
            name = self._inside(file)
            if name is None or name in added or name_problem(f"sources/{name}") is not None:
                continue
            if len(added) == SOURCES_MAX:
                bundle.left_out.append(f"sources after the first {SOURCES_MAX}")
                return
            added.add(name)
            try:
                content = (self._project / name).read_bytes()[: SOURCE_BYTES_MAX + 1]
            except OSError as error:
                bundle.left_out.append(f"source {name}: {error.strerror}")
                continue
            if len(content) > SOURCE_BYTES_MAX:
                bundle.left_out.append(f"source {name}: larger than 1 MiB")
            else:
                bundle.text(f"sources/{name}", content.decode(errors="replace"))

    def _inside(self, file: str) -> str | None:
        """Relative to the project; None for what lies outside (other people's, the system's)."""
        path = Path(os.path.realpath(self._project / file))
        return str(path.relative_to(self._project)) if path.is_relative_to(self._project) and path.is_file() else None

    def _facts(self, outcome: Outcome, command: list[str]) -> dict[str, Any]:
        programs = dict.fromkeys([*self._programs, *(str(self._project / case.suite) for case in outcome.cases if case.suite)])
        redacted = self.redactor.value(command) if self.redactor else command
        return {
            "format": FORMAT, "created_at": datetime.now(UTC).isoformat(timespec="seconds"), "strobe": strobe.__version__,
            "python": platform.python_version(), "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
            "project": self._project.name, "commit": commit_of(self._project), "command": redacted, "framework": outcome.framework,
            "environment": sorted(os.environ), "build_ids": {name: found for name in programs if (found := build_id(Path(name))) is not None},
        }  # fmt: skip


def build_id(path: Path) -> str | None:
    try:
        if not path.is_file():
            return None
        with Elf.open(path) as elf:
            return elf.build_id
    except (OSError, BrokenElf):
        return None


def commit_of(project: Path) -> dict[str, Any] | None:
    """{id, branch, changedFiles} of the project's git repository; None where it is none, or git is not there."""
    found = [_git(project, *words) for words in (("rev-parse", "HEAD"), ("rev-parse", "--abbrev-ref", "HEAD"), ("status", "--porcelain", "--", "."))]
    if found[0] is None:
        return None
    return {"id": found[0].strip(), "branch": (found[1] or "").strip(), "changedFiles": len((found[2] or "").splitlines())}


def _git(project: Path, *words: str) -> str | None:
    try:
        asked = subprocess.run(["git", "-C", str(project), *words], capture_output=True, text=True, timeout=GIT_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout if asked.returncode == 0 else None
