"""deno test: detection, commands, and recorded runs (tests/golden/frameworks/deno)."""

from __future__ import annotations

from strobe.adapters.adapter import Exit
from strobe.adapters.deno_test import permitted
from strobe.adapters.registry import adapter
from tests.harness.adapter_replay import GOLDEN, MemoryProject, replay, request, statuses

ADAPTER = adapter("deno test")
PROJECT = MemoryProject({"deno.jsonc": '{"tasks": {"test": {"command": "deno test --allow-read=."}}, /* x */}', "a_test.ts": "Deno.test('adds', () => {})"})


def test_recorded_suite() -> None:
    book = replay(ADAPTER, PROJECT, request(), "deno/suite.ndjson")
    assert statuses(book) == {
        "math > adds": "passed", "math > fails here": "failed", "math > left out": "skipped", "math > pair 1 2": "passed", "math > pair 3 4": "passed",
        "prints look-alikes": "passed",
    }  # fmt: skip
    (failure,) = book.failures()
    assert (failure.file, failure.line, failure.message.splitlines()[0]) == ("suite_test.ts", 6, '4 is not 3')
    assert [(frame.function, frame.file, frame.line) for frame in failure.stack_trace] == [("checked", "suite_test.ts", 6), (None, "suite_test.ts", 11)]
    assert failure.rerun_command == "deno test --allow-read=. --filter '/^(?:math > fails here|math)$/' ./suite_test.ts"
    assert failure.suggested_traces == ["checked"]
    assert book.finished and not book.errors and book.crash is None


def test_recorded_hang_and_crash() -> None:
    hung = replay(ADAPTER, PROJECT, request(), "deno/spin.ndjson")
    assert statuses(hung) == {"quick": "passed", "spins": "stuck"} and hung.crash is None
    crashed = replay(ADAPTER, PROJECT, request(), "deno/crash.ndjson")
    assert statuses(crashed) == {"quick": "passed", "dies": "lost"}
    assert crashed.crash is not None and (crashed.crash.signal, crashed.crash.during) == ("SIGKILL", ["dies"])


def test_recorded_file_that_cannot_be_read() -> None:
    book = replay(ADAPTER, PROJECT, request(), "deno/broken.ndjson")
    (error,) = book.errors
    assert error.startswith('broken_test.ts:1: error: SyntaxError') and book.compile_message == error and book.crash is None and not book.tests


def test_command() -> None:
    """Nothing is permitted but what the task permits, and the file of the events."""
    (step,) = ADAPTER.start(PROJECT, request(test="adds")).begin()
    assert step.argv == (
        "/bin/deno", "test", "--allow-read=.", "--allow-write=/run-folder", "--allow-env=STROBE_TEST_EVENTS", "--preload=/reporters/deno.ts",
        "--junit-path=/run-folder/work/deno.xml", "--filter=adds",
    )  # fmt: skip
    assert permitted(["-A"], "/w") == ["-A"] and permitted(["--allow-write=x", "-E"], "/w") == ["--allow-write=x,/w", "-E"]
    (other,) = ADAPTER.start(PROJECT, request(test="a step")).begin()
    assert not any(word.startswith("--filter") for word in other.argv), "a step's name is no test's"


def test_recorded_report() -> None:
    run = ADAPTER.start(PROJECT, request())
    run.begin()
    run.ended("tests", Exit(code=1), {"/run-folder/work/deno.xml": (GOLDEN / "deno" / "junit.xml").read_text()}, 5)
    assert statuses(run.book) == {"ok": "passed", "fails": "failed", "sk": "skipped", "logs": "passed", "steps > one": "passed", "steps > two": "failed"}
    first, second = run.book.failures()
    assert (first.file, first.line, first.suggested_traces) == ("d/a_test.ts", 1, ["helper"])
    assert (second.message, second.file, second.line) == ("TypeError: kaput", "d/a_test.ts", 2)


def test_file_that_throws_while_it_is_loaded() -> None:
    run = ADAPTER.start(PROJECT, request())
    run.begin()
    said = "./load_test.ts (uncaught error)\nerror: (in promise) Error: at load\n    at file:///proj/load_test.ts:1:7\nThis error was not caught from a test"
    for text in said.splitlines():
        run.line("tests", "stdout", text, 1)
    run.ended("tests", Exit(code=1), {}, 5)
    assert run.book.errors == ["load_test.ts:1: Error: at load"]


def test_detection() -> None:
    (one,) = ADAPTER.detect(PROJECT)
    assert one.confidence == 97 and one.folder == "."
    assert ADAPTER.detect(MemoryProject({"package.json": "{}", "a.test.ts": "import 'vitest'"})) == []
