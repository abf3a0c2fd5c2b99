"""A framework that a project names and that is not installed: it is a candidate all the same, and says how to get it."""

from __future__ import annotations

import json

import pytest

from strobe.adapters.adapter import Exit
from strobe.adapters.nextest import escaped
from strobe.adapters.registry import adapter, detect
from strobe.errors import StrobeError
from tests.harness.adapter_replay import MemoryProject, request

CARGO = '[package]\nname = "shop"\n'


@pytest.mark.parametrize("name", ("vitest", "jest", "mocha", "playwright"))
@pytest.mark.parametrize(("lock", "install", "add"), (
    ("package-lock.json", "npm install", "npm install --save-dev"), ("pnpm-lock.yaml", "pnpm install", "pnpm add -D"),
    ("yarn.lock", "yarn install", "yarn add -D"), ("bun.lock", "bun install", "bun add --dev"),
))  # fmt: skip
def test_npm_packages(name: str, lock: str, install: str, add: str) -> None:
    one = adapter(name)
    module = "@playwright/test" if name == "playwright" else name
    manifest = {"scripts": {"test": "playwright test" if name == "playwright" else name}}
    for dependencies, hint in (({module: "*"}, install), ({}, f"{add} {module}")):
        project = MemoryProject({"package.json": json.dumps({**manifest, "devDependencies": dependencies}), lock: ""})
        (found,) = one.detect(project)
        assert found.confidence >= 90 and found.reason.endswith(f"not installed yet: run {hint}")
        with pytest.raises(StrobeError) as refused:
            one.start(project, request())
        assert hint in refused.value.next_step and module in refused.value.what


def test_nextest_that_is_configured() -> None:
    project = MemoryProject({"Cargo.toml": CARGO, "src/lib.rs": "#[test]\nfn a() {}\n", ".config/nextest.toml": ""}, ("cargo",))
    found = [one for one in detect(project) if one.framework in ("cargo test", "cargo-nextest")]
    assert [one.framework for one in found] == ["cargo test", "cargo-nextest"]
    assert "configures it" in found[1].reason and "cargo install cargo-nextest" in found[1].reason
    with pytest.raises(StrobeError) as refused:
        adapter("cargo-nextest").start(project, request())
    assert "cargo install cargo-nextest" in refused.value.next_step


def test_nextest_that_nothing_names() -> None:
    project = MemoryProject({"Cargo.toml": CARGO, "src/lib.rs": "#[test]\nfn a() {}\n"}, ("cargo",))
    assert [one.framework for one in detect(project)] == ["cargo test"]


@pytest.mark.parametrize(("name", "escape"), (("a(b)", r"a(b\)"), ("a,b", r"a\,b"), ("a\\b", r"a\\b"), ("a::ü", "a::ü")))
def test_names_in_nextests_filters(name: str, escape: str) -> None:
    """Checked against cargo-nextest 0.9.148, which refuses any other escape."""
    assert escaped(name) == escape


@pytest.mark.parametrize(("files", "programs", "hint"), (
    ({".venv/bin/python": "", ".venv/pyvenv.cfg": ""}, (), ".venv/bin/python -m pip install pytest"),
    ({"uv.lock": ""}, ("uv",), "uv add --dev pytest"),
    ({"poetry.lock": ""}, ("poetry",), "poetry add --group dev pytest"),
    ({}, ("python3",), "python3 -m pip install pytest"),
))  # fmt: skip
def test_pytest(files: dict[str, str], programs: tuple[str, ...], hint: str) -> None:
    project = MemoryProject({"pytest.ini": "[pytest]", "test_a.py": "def test_a(): pass", **files}, programs)
    run = adapter("pytest").start(project, request())
    (step,) = run.begin()
    run.line(step.name, "stderr", "/x/python: No module named pytest", 1)
    run.ended(step.name, Exit(code=1), {}, 2)
    (error,) = run.book.errors
    assert hint in error


@pytest.mark.parametrize(("name", "files"), (
    ("bun test", {"a.test.ts": "import 'bun:test'"}), ("deno test", {"deno.json": "{}", "a_test.ts": "Deno.test('a', () => {})"}),
    ("node:test", {"a.test.mjs": "import 'node:test'"}), ("cargo test", {"Cargo.toml": CARGO}), ("go test", {"go.mod": "module x\n"}),
    ("CTest", {"CTestTestfile.cmake": "", "CMakeCache.txt": ""}),
))  # fmt: skip
def test_programs(name: str, files: dict[str, str]) -> None:
    project = MemoryProject(files, ())
    with pytest.raises(StrobeError, match=r"is not on the PATH") as refused:
        run = adapter(name).start(project, request())
        run.begin()
    assert refused.value.next_step.startswith("Install ")


def test_ctest_numbers_are_its_own() -> None:
    """With options that leave tests out, its list has fewer than its numbers say."""
    files = {"CTestTestfile.cmake": "add_test(x)"}
    run = adapter("CTest").start(MemoryProject(files, ("ctest", "cmake")), request(command="ctest -L slow -C Release"))
    (listing,) = run.begin()
    run.line(listing.name, "stdout", json.dumps({"tests": [{"name": "third"}, {"name": "fifth"}]}), 1)
    (step,) = run.ended(listing.name, Exit(code=0), {}, 2)
    run.line(step.name, "stdout", "    Start 3: third", 3)
    assert [one.name for one in run.book.running.values()] == ["third"]
    run.line(step.name, "stdout", "1/2 Test #3: third ............................   Passed    0.00 sec", 4)
    run.line(step.name, "stdout", "    Start 5: fifth", 5)
    run.line(step.name, "stdout", "2/2 Test #5: fifth ............................***Failed    0.00 sec", 6)
    assert {case.name: case.status.value for case in run.book.tests.values()} == {"third": "passed", "fifth": "failed"}
    (failure,) = run.book.failures()
    assert failure.rerun_command == "ctest --test-dir . -L slow -C Release -R '^fifth$' --output-on-failure"
