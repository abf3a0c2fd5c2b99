"""Import rules of DESIGN §6, read from the syntax tree of every file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Distribution's import name → who may import it.
HOMES = {
    "zmq": ("strobe.runtime", "strobe.cli.gateway_link"),  # the second is the shim
    "frida": ("actors.spawner",),
    "duckdb": ("actors.store",),
    "pyarrow": ("actors.store", "strobe.evidence.traces"),
    "mcp": ("actors.gateway", "strobe.cli.demo", "strobe.demo", "strobe.ci.link"),  # demo and strobe-ci are MCP clients
    "mcp_types": ("actors.gateway",),
    "anyio": ("actors.gateway",),
    "elftools": ("actors.indexer",),
    "symbolic": ("actors.indexer",),
    "psutil": ("actors.session", "actors.stuck_detector"),
    "typer": ("strobe.cli", "strobe.ctl", "strobe.ci"),
}
# Decide and describe; never touch the machine.
PURE = ("strobe.render", "strobe.model", "strobe.protocol", "strobe.expression", "strobe.redaction", "strobe.adapters")
MACHINE = {"asyncio", "socket", "subprocess", "threading", "multiprocessing", "zmq", "os", "pathlib", "shutil", "tempfile", "time", "selectors", "signal"}
REASON_NEEDED = "an import inside a function needs its reason as a comment on its line or the line above"


@dataclass(frozen=True)
class Import:
    importer: str  # module
    imported: str
    path: Path
    line: int
    inside: bool  # a function
    typing_only: bool

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.imported}"


def files() -> list[Path]:
    return sorted(path for folder in ("strobe", "actors") for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in files()}


def imports_of(path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from _walk(tree, path, inside=False, typing_only=False)


def _walk(node: ast.AST, path: Path, *, inside: bool, typing_only: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            for name in _names(child):
                yield Import(module_name(path), name, path, child.lineno, inside, typing_only)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            yield from _walk(child, path, inside=inside, typing_only=True)
        else:
            within = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _walk(child, path, inside=within, typing_only=typing_only)


def _names(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Absolute names; `from package import module` names the module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert node.level == 0, "imports are absolute"
    base = node.module or ""
    return [f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names]


IMPORTS = [found for path in files() for found in imports_of(path)]


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def test_there_is_something_to_check() -> None:
    assert len(MODULES) > 40
    assert len(IMPORTS) > 200


def test_strobe_never_imports_actors() -> None:
    assert [str(found) for found in IMPORTS if within(found.importer, "strobe") and within(found.imported, "actors")] == []


def test_actors_never_import_each_other() -> None:
    def role(module: str) -> str:
        return module.split(".")[1] if module.startswith("actors.") else ""

    assert [str(found) for found in IMPORTS if role(found.importer) and role(found.imported) not in ("", role(found.importer))] == []


@pytest.mark.parametrize("dependency", sorted(HOMES))
def test_heavy_dependency_has_one_home(dependency: str) -> None:
    users = [found for found in IMPORTS if within(found.imported, dependency)]
    assert [str(found) for found in users if not any(within(found.importer, home) for home in HOMES[dependency])] == []


@pytest.mark.parametrize("package", PURE)
def test_pure_parts_import_no_io(package: str) -> None:
    assert [str(found) for found in IMPORTS if within(found.importer, package) and found.imported.split(".")[0] in MACHINE] == []


def test_imports_inside_functions_have_a_reason() -> None:
    missing = []
    for found in IMPORTS:
        if not found.inside or found.typing_only:
            continue
        lines = found.path.read_text(encoding="utf-8").splitlines()
        above = lines[found.line - 2].strip() if found.line > 1 else ""
        if "#" not in lines[found.line - 1] and not above.startswith("#"):
            missing.append(str(found))
    assert missing == [], REASON_NEEDED


def test_no_import_cycle() -> None:
    graph: dict[str, set[str]] = {name: set() for name in MODULES}
    for found in IMPORTS:
        if found.imported in MODULES and not found.typing_only and not found.inside and found.imported != found.importer:
            graph[found.importer].add(found.imported)
    assert _cycle(graph) is None


def _cycle(graph: dict[str, set[str]]) -> list[str] | None:
    done: set[str] = set()
    for start in sorted(graph):
        stack = [(start, iter(sorted(graph[start])))]
        trail = [start]
        while stack:
            node, successors = stack[-1]
            following = next((name for name in successors if name not in done), None)
            if following is None:
                done.add(node)
                stack.pop()
                trail.pop()
            elif following in trail:
                return [*trail[trail.index(following) :], following]
            else:
                stack.append((following, iter(sorted(graph[following]))))
                trail.append(following)
    return None


def test_cycles_would_be_found() -> None:
    assert _cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert _cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None
