"""@playwright/test: detection, commands, and recorded runs (tests/golden/frameworks/playwright)."""

from __future__ import annotations

from strobe.adapters.registry import adapter
from tests.harness.adapter_replay import MemoryProject, installed, replay, request, statuses

ADAPTER = adapter("playwright")
PROJECT = MemoryProject(
    {
        "package.json": '{"scripts": {"e2e": "playwright test --reporter=html --project=web"}}',
        "a[1].spec.ts": "",
        **installed("@playwright/test", program="playwright"),
    }
)


def test_recorded_suite() -> None:
    book = replay(ADAPTER, PROJECT, request(), "playwright/suite.ndjson")
    assert statuses(book) == {
        "math > adds": "passed", "math > fails here": "failed", "math > left out": "skipped", "math > pair 1 2": "passed", "math > pair 3 4": "passed",
        "prints look-alikes": "passed",
    }  # fmt: skip
    (failure,) = book.failures()
    assert (failure.file, failure.line, failure.message.splitlines()[0]) == ("suite.spec.ts", 3, 'expect(received).toBe(expected) // Object.is equality')
    assert [(frame.function, frame.file, frame.line) for frame in failure.stack_trace] == [("checked", "suite.spec.ts", 3), (None, "suite.spec.ts", 8)]
    assert failure.rerun_command == "npx playwright test --project=web '(?:^|/)suite\\.spec\\.ts$' -g 'math fails here$'"
    assert failure.suggested_traces == ["checked"]
    assert book.finished and not book.errors and book.crash is None


def test_recorded_hang_and_crash() -> None:
    hung = replay(ADAPTER, PROJECT, request(), "playwright/spin.ndjson")
    assert statuses(hung) == {"quick": "passed", "spins": "stuck"} and hung.crash is None
    crashed = replay(ADAPTER, PROJECT, request(), "playwright/crash.ndjson")
    assert statuses(crashed) == {"quick": "passed", "dies": "lost"}
    assert crashed.crash is not None and (crashed.crash.signal, crashed.crash.during) == ("SIGSEGV", ["dies"])


def test_recorded_file_that_cannot_be_read() -> None:
    book = replay(ADAPTER, PROJECT, request(), "playwright/broken.ndjson")
    (error,) = book.errors
    assert error.startswith('broken.spec.ts: SyntaxError: ') and book.compile_message == error and book.crash is None and not book.tests


def test_command() -> None:
    """Files are regular expressions for playwright."""
    (step,) = ADAPTER.start(PROJECT, request(test="a[1].spec.ts::math > adds")).begin()
    assert step.argv == (
        "/bin/node", "/proj/node_modules/@playwright/test/playwright.js", "test", r"(?:^|/)a\[1\]\.spec\.ts$", "--reporter=html", "--project=web",
        "-g", "(?:^| )math(?: > | )adds$",
    )  # fmt: skip
    assert step.env["PW_TEST_REPORTER"] == "/reporters/playwright.mjs"
    (whole,) = ADAPTER.start(PROJECT, request(level="e2e")).begin()
    assert "-g" not in whole.argv and whole.env["PLAYWRIGHT_HTML_OPEN"] == "never"


def test_version_that_knows_no_reporter_beside() -> None:
    old = MemoryProject({"package.json": "{}", **installed("@playwright/test", program="playwright", version="1.39.0")})
    (step,) = ADAPTER.start(old, request()).begin()
    assert step.argv[-1] == "--reporter=list,/reporters/playwright.mjs" and "PW_TEST_REPORTER" not in step.env


def test_detection() -> None:
    (one,) = ADAPTER.detect(PROJECT)
    assert one.confidence == 90 and "'e2e'" in one.reason


def test_projects_and_retries() -> None:
    """The same test in two browsers is two tests; of retries the last counts."""
    run = ADAPTER.start(PROJECT, request())
    run.begin()
    common = {"path": ["logs in"], "file": "/proj/a.spec.ts"}
    run.event("tests", {"ev": "end", "id": "1", **common, "project": "firefox", "status": "failed", "failures": [{"message": "slow"}]}, 1)
    run.event("tests", {"ev": "end", "id": "1", **common, "project": "firefox", "status": "passed"}, 2)
    run.event("tests", {"ev": "end", "id": "2", **common, "project": "chrome", "status": "passed"}, 3)
    assert {(case.suite, case.status.value) for case in run.book.tests.values()} == {("a.spec.ts [firefox]", "passed"), ("a.spec.ts [chrome]", "passed")}
