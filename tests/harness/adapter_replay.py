"""Adapters without processes: a project in memory, and recordings of real runs given to an adapter again (tests/golden/frameworks).

A recording is one JSON object a line: {"line", "stream"} of output, {"event"} of a reporter, and last {"exit", "reports"}. Paths of the project are
/proj, those of the run's own folder /run-folder. `python -m tests.harness.adapter_replay NAME STEM` records a conformance project anew.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from strobe.adapters.adapter import Adapter, Exit, Project, Request
from strobe.adapters.book import Book
from tests.harness import npm
from tests.harness.javascript_suites import JAVASCRIPT
from tests.harness.suites import bench
from tests.harness.test_runs import drive, regex

GOLDEN: Final = Path(__file__).resolve().parents[1] / "golden" / "frameworks"


class MemoryProject:
    """A `Project` of these texts."""

    root = "/proj"

    def __init__(self, files: Mapping[str, str], programs: Sequence[str] = ("node", "npm", "bun", "deno")) -> None:
        self._files = dict(files)
        self._programs = programs

    def files(self, pattern: str, limit: int = 1000) -> Sequence[str]:
        wanted = re.compile(regex(pattern))
        return sorted(path for path in self._files if wanted.fullmatch(path) and "node_modules/" not in path)[:limit]

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        text = self._files.get(path)
        return text[:limit] if text is not None else None

    def exists(self, path: str) -> bool:
        return path in self._files or any(one.startswith(path.rstrip("/") + "/") for one in self._files)

    def program(self, name: str) -> str | None:
        return f"/bin/{name}" if name in self._programs else None

    def has_bytes(self, path: str, needle: bytes) -> bool:
        return needle in self._files.get(path, "").encode()


def request(folder: str = "/proj", **more: Any) -> Request:
    return Request(folder=folder, reporters="/reporters", work="/run-folder/work", **more)


def installed(module: str, *, folder: str = ".", program: str | None = None, version: str = "9.0.0") -> dict[str, str]:
    """An npm package as it lies in node_modules."""
    place = f"node_modules/{module}" if folder == "." else f"{folder}/node_modules/{module}"
    name = program or module.rsplit("/", 1)[-1]
    return {f"{place}/package.json": json.dumps({"name": module, "version": version, "bin": {name: f"./{name}.js"}}), f"{place}/{name}.js": ""}


def replay(adapter: Adapter, project: Project, asked: Request, recording: str) -> Book:
    """The book after a recorded run; its times are made up, 1 ms a line."""
    run = adapter.start(project, asked)
    (step,) = run.begin()
    while step.phase == "compiling":
        (step,) = run.ended(step.name, Exit(code=0), {}, 0.0)
    for at, text in enumerate((GOLDEN / recording).read_text().splitlines(), 1):
        entry = json.loads(text)
        if "line" in entry:
            run.line(step.name, entry["stream"], entry["line"], float(at))
        elif "event" in entry:
            run.event(step.name, entry["event"], float(at))
        else:
            assert run.ended(step.name, Exit(**entry["exit"]), entry["reports"], float(at)) == ()
    run.finish(1000.0)
    return run.book


def statuses(book: Book) -> dict[str, str]:
    return {case.name: case.status.value for case in book.tests.values()}


def _hangs(book: Book) -> bool:
    return bool(book.running) and {name for _, name in book.running} <= {"never ends", "spins"}


def record(name: str, stem: str) -> None:
    """Writes GOLDEN/<folder>/<stem>.ndjson. A test that does not end is killed once it runs alone."""
    suite = next(one for one in JAVASCRIPT if one.framework == name)
    with tempfile.TemporaryDirectory() as base:
        at = bench(suite, Path(base), stem)
        asked = at.request()
        outcome = drive(at.adapter, at.project, asked, kill_when=_hangs, env={"PATH": at.path})
        lines = [json.dumps(entry, ensure_ascii=False) for entry in outcome.recording]
    text = "\n".join(lines)
    shown = {str(at.root): "/proj", quote(str(at.root)): "/proj", str(Path(asked.work).parent): "/run-folder", asked.reporters: "/reporters"}
    for path, instead in {**shown, str(npm.node_modules()): "/proj/node_modules"}.items():
        text = text.replace(path, instead)
    text = re.sub(r'hostname=\\"[^"\\]*', 'hostname=\\"host', text)
    place = GOLDEN / suite.folder / f"{stem}.ndjson"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text + "\n")


if __name__ == "__main__":
    record(sys.argv[1], sys.argv[2])
