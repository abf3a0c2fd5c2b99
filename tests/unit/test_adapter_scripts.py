"""What is read from package.json's scripts, from commands, names and stacks: shared by the adapters of JavaScript's frameworks."""

from __future__ import annotations

import pytest

from strobe.adapters.levels import files_of_level
from strobe.adapters.packages import Package, packages, parsed, surroundings
from strobe.adapters.scripts import read_command, read_script, script_of, split_positional, without
from strobe.adapters.v8 import frames_of, message_of, suggested_traces
from strobe.adapters.wanted import Wanted, nearest, no_match, wanted
from strobe.artifacts import artifact_folder
from strobe.errors import StrobeError
from strobe.model.testing import Frame
from tests.harness.adapter_replay import MemoryProject, request


@pytest.mark.parametrize(
    ("text", "args", "program_args", "env", "before"),
    [
        ("vitest", (), (), {}, ()),
        ("vitest run --config vite.test.ts", ("run", "--config", "vite.test.ts"), (), {}, ()),
        ("NODE_ENV=test TZ=UTC vitest", (), (), {"NODE_ENV": "test", "TZ": "UTC"}, ()),
        ("cross-env CI=true npx vitest 'a b'", ("a b",), (), {"CI": "true"}, ()),
        ("node --experimental-vm-modules node_modules/vitest/vitest.mjs run", ("run",), ("--experimental-vm-modules",), {}, ()),
        ("tsc -p . && vitest --dir dist", ("--dir", "dist"), (), {}, ("tsc -p .",)),
        ("eslint . && tsc --noEmit && vitest", (), (), {}, ()),
        ("npm run build &&\n  vitest run", ("run",), (), {}, ("npm run build",)),
        ("c8 --reporter=text vitest", (), (), {}, ()),
    ],
)
def test_scripts(text: str, args: tuple[str, ...], program_args: tuple[str, ...], env: dict[str, str], before: tuple[str, ...]) -> None:
    script = read_script("test", text, ("vitest",), {})
    assert script is not None
    assert (script.args, script.program_args, dict(script.env), script.before) == (args, program_args, env, before)


@pytest.mark.parametrize("text", ["vitest | tee log", "jest", "echo 'vitest", "vitest &", "(cd a; vitest)", ""])
def test_scripts_that_cannot_be_repeated(text: str) -> None:
    assert read_script("test", text, ("vitest",), {}) is None


def test_pretest_comes_first() -> None:
    script = read_script("test", "mocha dist", ("mocha",), {"pretest": "tsc -b", "test": "mocha dist"})
    assert script is not None and script.before == ("tsc -b",)


def test_script_of_a_level() -> None:
    package = Package(".", {"scripts": {"test": "jest", "test:integration": "jest -c int.json", "test:watch": "jest --watch", "lint": "eslint"}})
    by_level = {level: script_of(package, ("jest",), level) for level in (None, "integration", "e2e")}
    names = {level: script.name if script else None for level, script in by_level.items()}
    assert names == {None: "test", "integration": "test:integration", "e2e": "test"}


def test_commands() -> None:
    package = Package(".", {"scripts": {"test": "mocha --recursive", "test:unit": "mocha unit"}})
    for command, args in (
        ("npx mocha a.js", ("a.js",)), ("npm test", ("--recursive",)), ("npm run test:unit -- --bail", ("unit", "--bail")), ("yarn test:unit", ("unit",)),
        ("pnpm run test", ("--recursive",)),
    ):  # fmt: skip
        script = read_command(command, ("mocha",), package)
        assert script is not None and script.args == args, command
    assert read_command("make check", ("mocha",), package) is None


def test_node_and_bun_and_deno() -> None:
    node = read_script("test", "node --import tsx --test test/*.ts", ("node",), {})
    assert node is not None and node.args == ("--import", "tsx", "test/*.ts")
    assert read_script("test", "node build.js", ("node",), {}) is None
    bun = read_script("test", "bun test --timeout 10", ("bun", "test"), {})
    assert bun is not None and bun.args == ("--timeout", "10")
    assert read_script("start", "bun run x", ("bun", "test"), {}) is None


def test_options() -> None:
    assert without(["--reporter", "dot", "--reporter=x", "--watch", "a", "--coverage.enabled"], ("--watch", "--coverage"), ("--reporter",)) == ["a"]
    assert split_positional(["-c", "x", "a", "--", "-b"], ("-c",)) == (["-c", "x"], ["a", "-b"])


def test_environment_is_scrubbed() -> None:
    env = surroundings(request(env={"NODE_OPTIONS": "--inspect-brk=0 --max-old-space-size=100 --require /x/bootloader.js", "MINE": "1"}))
    assert env["CLAUDECODE"] is None and env["REPL_ID"] is None and env["VITEST"] is None and env["MINE"] == "1"
    assert env["NODE_OPTIONS"] is not None and "--inspect" not in env["NODE_OPTIONS"] and "--max-old-space-size=100" in env["NODE_OPTIONS"]
    assert surroundings(request())["NODE_OPTIONS"] is None


def test_what_is_asked_for() -> None:
    project = MemoryProject({"src/a.test.ts": "", "package.json": "{}"})
    assert wanted(project, request()) == Wanted()
    assert wanted(project, request(test="adds")) == Wanted(name="adds")
    assert wanted(project, request(test="src/a.test.ts")) == Wanted(file="src/a.test.ts")
    assert wanted(project, request(test="src/a.test.ts::math > adds")) == Wanted(file="src/a.test.ts", name="math > adds", exact=True)
    assert wanted(project, request(test="std::vec")) == Wanted(name="std::vec")
    assert wanted(project, request(folder="/proj/src", test="a.test.ts")) == Wanted(file="a.test.ts")
    assert Wanted(name="math > adds").matches("math > adds more") and not Wanted(name="math > adds", exact=True).matches("math > adds more")
    assert Wanted(name="a > b.c (d)", exact=True).pattern() == r"^a(?: > | )b\.c \(d\)$"


def test_nearest_names() -> None:
    names = ["math > adds", "math > subtracts", "io > reads a file", "other"]
    assert nearest("math > ads", names)[0] == "math > adds" and nearest("reads", names)[0] == "io > reads a file"
    assert "'zzz'" in no_match(Wanted(name="zzz"), names) and "no tests of a like name" in no_match(Wanted(name="zzzzqqqq"), names)


def test_levels_of_files() -> None:
    files = ["src/a.test.ts", "test/integration/db.test.ts", "e2e/login.spec.ts"]
    assert files_of_level(files, "unit") == ["src/a.test.ts"] and files_of_level(files, "integration") == ["test/integration/db.test.ts"]
    assert files_of_level(["a.test.ts"], "unit") is None
    with pytest.raises(StrobeError, match="No e2e tests"):
        files_of_level(["a.test.ts"], "e2e")


def test_stacks() -> None:
    text = (
        "TypeError: kaput\nsecond line\n    at Object.helper [as fn] (file:///proj/src/a%20b.ts:2:38)\n    at async Cart.total (/proj/src/cart.js:10:5)\n"
        "    at new Promise (<anonymous>)\n    at /proj/a.test.ts:3:1\n    at node:internal/timers:483:21"
    )
    assert message_of(text) == "TypeError: kaput\nsecond line"
    assert [(frame.function, frame.file, frame.line) for frame in frames_of(text)] == [
        ("helper", "/proj/src/a b.ts", 2), ("Cart.total", "/proj/src/cart.js", 10), (None, "/proj/a.test.ts", 3), (None, "node:internal/timers", 483),
    ]  # fmt: skip


def test_suggested_traces() -> None:
    frames = [Frame(function="Cart.total", file="src/cart.ts", line=4), Frame(function="run", file="node_modules/x/y.js"), Frame(file="test/cart.test.ts")]
    assert suggested_traces(frames, "cart > applyDiscount works", "test/cart.test.ts") == ["Cart.total", "@file:src/cart.ts", "*applyDiscount*"]
    assert suggested_traces([], "works", "src/cart.test.ts") == ["@file:cart."]


def test_packages_and_json_with_comments() -> None:
    project = MemoryProject({"package.json": '{"name":"a"}', "packages/b/package.json": "{broken", "packages/c/package.json": "{}"})
    assert [one.folder for one in packages(project)] == [".", "packages/c"]
    assert parsed('{ // x\n "a": "http://b", /* y */ "c": [1,], }') == {"a": "http://b", "c": [1]}


def test_reporters_are_where_the_engine_looks() -> None:
    folder = artifact_folder("reporters")
    assert {"bun.ts", "deno.ts", "jest.cjs", "mocha.cjs", "node_test.mjs", "playwright.mjs", "vitest.mjs"} <= {file.name for file in folder.iterdir()}
