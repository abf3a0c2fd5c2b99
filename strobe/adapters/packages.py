"""npm packages of a project: which there are, what they depend on, where a tool of theirs lies, and what a run of it may not inherit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from strobe.adapters.adapter import Project, Request
from strobe.adapters.wanted import inside
from strobe.errors import Code, StrobeError

PACKAGES_MAX: Final = 200
HOW: Final = {"node": " (nodejs.org, or the system's package nodejs)", "bun": " (npm install -g bun)", "deno": " (npm install -g deno)"}
_LEVELS_UP: Final = 6  # above the project: a package of a monorepo may be opened alone
# They change what a runner prints or runs: bun hides passing tests from agents, debuggers' variables stop a test's process, a runner's own mark
# makes a nested one believe that it is a worker.
SCRUBBED: Final = (
    "CLAUDECODE", "AGENT", "AI_AGENT", "REPL_ID", "BUN_INSPECT", "BUN_INSPECT_NOTIFY", "BUN_INSPECT_CONNECT_TO", "VSCODE_INSPECTOR_OPTIONS", "FORCE_COLOR",
    "NODE_INSPECT_RESUME_ON_START", "NODE_TEST_CONTEXT", "NODE_V8_COVERAGE", "VITEST", "VITEST_WORKER_ID", "VITEST_POOL_ID", "JEST_WORKER_ID",
    "TEST_WORKER_INDEX", "TEST_PARALLEL_INDEX", "MOCHA_WORKER_ID",
)  # fmt: skip
_DEBUGGERS: Final = re.compile(r"^--(?:inspect|debug)(?:-\w+)*(?:=|$)|vscode-js-debug|bootloader\.js|^--cpu-prof|^--heap-prof")


@dataclass(frozen=True, slots=True)
class Package:
    folder: str
    manifest: Mapping[str, Any]

    def depends(self, *names: str) -> str | None:
        """`name version` of the first of these that it depends on."""
        for section in ("devDependencies", "dependencies", "peerDependencies", "optionalDependencies"):
            entries = self.manifest.get(section)
            if isinstance(entries, dict):
                for name in names:
                    if name in entries:
                        return f"{name} {entries[name]}"
        return None

    @property
    def scripts(self) -> Mapping[str, str]:
        scripts = self.manifest.get("scripts")
        return {str(name): text for name, text in scripts.items() if isinstance(text, str)} if isinstance(scripts, dict) else {}


def packages(project: Project) -> list[Package]:
    paths = dict.fromkeys(["package.json", *project.files("**/package.json", PACKAGES_MAX)])
    found = [package_in(project, path.rpartition("/")[0] or ".") for path in paths]
    return [one for one in found if one is not None]


def package_in(project: Project, folder: str) -> Package | None:
    text = project.read(inside(folder, "package.json"))
    if text is None:
        return None
    manifest = parsed(text)
    return Package(folder, manifest) if isinstance(manifest, dict) else None


def parsed(text: str) -> Any:
    """JSON, with the comments and commas that configuration files may have; None where it is broken."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    bare = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda match: match[1] or "", text, flags=re.S)
    try:
        return json.loads(re.sub(r",(\s*[}\]])", r"\1", bare))
    except ValueError:
        return None


def existing(project: Project, folder: str, stem: str, endings: Sequence[str] = ("ts", "mts", "cts", "js", "mjs", "cjs", "json")) -> str | None:
    """The configuration file of this stem in a folder, as `vitest.config.ts`."""
    for ending in endings:
        if project.exists(inside(folder, f"{stem}.{ending}")):
            return f"{stem}.{ending}"
    return None


def module_folder(project: Project, folder: str, module: str) -> str | None:
    """Where Node finds a package from a folder, relative to the project; monorepos keep it further up."""
    parts = [] if folder == "." else folder.split("/")
    places = ["/".join(parts[:count]) or "." for count in range(len(parts), -1, -1)]
    places += ["/".join([".."] * count) for count in range(1, _LEVELS_UP + 1)]
    for place in places:
        path = inside(place, f"node_modules/{module}")
        if project.exists(f"{path}/package.json"):
            return path
    return None


def entry(project: Project, folder: str, module: str, command: str) -> str:
    """Absolute path of a package's program, a script for Node."""
    place = module_folder(project, folder, module)
    if place is None:
        where = "the project" if folder == "." else folder
        known = package_in(project, folder) or Package(folder, {})
        whole = package_in(project, ".") or known
        is_named = known.depends(module) or whole.depends(module)
        next_step = f"Install the project's packages first ({installer(project)})." if is_named else f"Add it: {adder(project)} {module}"
        raise StrobeError(Code.VALIDATION_ERROR, f"{module} is not installed in {where}.", next_step, value=module)
    manifest = parsed(project.read(f"{place}/package.json") or "") or {}
    programs = manifest.get("bin")
    path = programs if isinstance(programs, str) else (programs or {}).get(command)
    if not isinstance(path, str):
        raise StrobeError(Code.VALIDATION_ERROR, f"{place} has no program {command!r}.", "Give `command`.", value=module)
    return absolute(project, f"{place}/{path.removeprefix('./')}")


def absolute(project: Project, path: str) -> str:
    root = project.root.rstrip("/")
    while path.startswith("../"):
        root, path = root.rpartition("/")[0], path[3:]
    return root if path in ("", ".") else f"{root}/{path}"


def installer(project: Project) -> str:
    for lock, command in (("pnpm-lock.yaml", "pnpm install"), ("yarn.lock", "yarn install"), ("bun.lock", "bun install"), ("bun.lockb", "bun install")):
        if project.exists(lock):
            return command
    return "npm install"


def adder(project: Project) -> str:
    """The command that adds a package for development, before its name."""
    manager = installer(project).split()[0]
    return "npm install --save-dev" if manager == "npm" else f"{manager} add --dev" if manager == "bun" else f"{manager} add -D"


def tool(project: Project, name: str) -> str:
    """Absolute path of a program; node_modules/.bin holds some that no PATH names."""
    found = project.program(name)
    if found is None:
        raise StrobeError(Code.VALIDATION_ERROR, f"{name} is not on the PATH.", f"Install it{HOW.get(name, '')}, or give `env` a PATH with it.", value=name)
    return found


def surroundings(request: Request, more: Mapping[str, str | None] | None = None) -> dict[str, str | None]:
    """Environment of a step: the request's, without what would change the run behind its back."""
    env: dict[str, str | None] = dict.fromkeys(SCRUBBED)
    env["NODE_OPTIONS"] = None
    env.update(more or {})
    env.update(request.env)
    options = request.env.get("NODE_OPTIONS", "")
    kept = " ".join(word for word in options.split() if not _DEBUGGERS.search(word))
    ours = (more or {}).get("NODE_OPTIONS") or ""
    env["NODE_OPTIONS"] = f"{kept} {ours}".strip() or None
    return env
