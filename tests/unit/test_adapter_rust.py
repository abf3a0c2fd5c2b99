"""cargo test, on recorded runs of Rust's test programs (tests/golden/frameworks/cargo)."""

from __future__ import annotations

import json

import pytest

from strobe.adapters.adapter import Exit
from strobe.adapters.cargo_project import Asked, named, read_arguments
from strobe.adapters.cargo_test import CargoRun, CargoTest
from strobe.adapters.rust_panics import failure_of, panics
from strobe.adapters.wanted import Wanted
from strobe.model.testing import TestStatus
from tests.harness.adapter_replay import GOLDEN, MemoryProject, request

FILES = {"Cargo.toml": '[package]\nname = "rx"\n', "src/lib.rs": "#[test]\nfn ok() {}\n", "tests/it.rs": ""}
TESTS = ("tests::fails", "tests::ign", "tests::ok", "tests::res", "tests::slow_ok", "tests::sp")


def project() -> MemoryProject:
    return MemoryProject(FILES, ("cargo",))


def built() -> tuple[CargoRun, str]:
    """A run after its build; the name of its library's list step."""
    run = CargoTest().start(project(), request())
    (step,) = run.begin()
    assert step.argv[1:3] == ("test", "--no-run") and step.phase == "compiling"
    for line in (GOLDEN / "cargo" / "norun.out").read_text().splitlines():
        run.line(step.name, "stdout", line, 1)
    (listing,) = run.ended(step.name, Exit(code=0), {}, 2)
    return run, listing.name


def running(name: str, tests: tuple[str, ...]) -> tuple[CargoRun, str]:
    """The library's list is told, other programs are empty."""
    run, listing = built()
    for test in tests:
        run.line(listing, "stdout", f"{test}: test", 3)
    step = next(iter(run.ended(listing, Exit(code=0), {}, 4)))
    while step.name.startswith("list "):
        step = next(iter(run.ended(step.name, Exit(code=0), {}, 4)))
    assert "--format" in step.argv and step.is_program and step.env["RUSTC_BOOTSTRAP"] == "1"
    for line in (GOLDEN / "cargo" / name).read_text().splitlines():
        run.line(step.name, "stdout", line, 5)
    return run, step.name


def test_results_of_a_program() -> None:
    run, step = running("lib_json_bootstrap.out", TESTS)
    run.ended(step, Exit(code=101), {}, 6)
    book = run.book
    assert {case.name: case.status.value for case in book.tests.values()} == {
        "tests::fails": "failed", "tests::ign": "skipped", "tests::ok": "passed", "tests::res": "failed", "tests::slow_ok": "passed", "tests::sp": "failed",
    }  # fmt: skip
    failures = {one.name: one for one in book.failures()}
    fails = failures["tests::fails"]
    assert (fails.file, fails.line) == ("src/lib.rs", 8) and fails.message.startswith("assertion `left == right` failed: math 1")
    assert [frame.function for frame in fails.stack_trace] == ["rx::tests::fails", "rx::tests::fails::{{closure}}"]
    assert failures["tests::res"].message == 'Error: "bad"' and "panic did not contain expected string" in failures["tests::sp"].message
    assert fails.rerun_command == "cargo test -p rx --lib -- --exact tests::fails"
    assert book.crash is None and not book.errors


def test_hang_is_known_without_an_end() -> None:
    run, _ = running("hang_json.out", ("dead", "other"))
    assert [one.name for one in run.book.running.values()] == ["dead"]
    run.finish(9000)
    assert {case.name: case.status for case in run.book.tests.values()} == {"dead": TestStatus.STUCK, "other": TestStatus.PASSED}


def test_crash_loses_what_ran() -> None:
    run, step = running("hang_json.out", ("dead", "other", "never begun"))
    run.ended(step, Exit(signal="SIGSEGV"), {}, 50)
    assert run.book.crash is not None and run.book.crash.during == ["dead"] and run.book.crash.signal == "SIGSEGV"
    assert any("never begun" in error for error in run.book.errors)


def test_names_that_are_not_its_own_are_not_believed() -> None:
    run, step = running("hang_json.out", ("dead",))
    run.line(step, "stdout", 'noise { "type": "test", "event": "started", "name": "fake" }', 6)
    assert {one.name for one in run.book.running.values()} == {"dead"} and not run.book.tests


def test_compile_error() -> None:
    run = CargoTest().start(project(), request())
    (step,) = run.begin()
    said = "error[E0308]: mismatched types\\n --> src/lib.rs:3"
    run.line(step.name, "stdout", f'{{"reason":"compiler-message","message":{{"level":"error","rendered":"{said}"}}}}', 1)
    assert run.ended(step.name, Exit(code=101), {}, 2) == ()
    assert run.book.compile_message is not None and "E0308" in run.book.compile_message and run.book.errors


def test_panics_of_all_formats() -> None:
    old = "thread 'tests::a' panicked at 'assertion failed: left\n right', src/lib.rs:8:5\nnote: run with `RUST_BACKTRACE=1`"
    assert [(one.thread, one.file, one.line, one.message) for one in panics(old)] == [("tests::a", "src/lib.rs", 8, "assertion failed: left\n right")]
    new = "\nthread 'tests::a' (77) panicked at src/a.rs:3:9:\n4 is not 3\nnote: run with `RUST_BACKTRACE=1`"
    assert [(one.file, one.line, one.message) for one in panics(new)] == [("src/a.rs", 3, "4 is not 3")]
    two = "thread 'helper' panicked at src/b.rs:1:1:\nfirst\nthread 'tests::a' panicked at src/a.rs:2:2:\nsecond"
    assert failure_of("tests::a", two, None).message == "second"


def test_arguments_and_names() -> None:
    read = read_arguments(["-p", "shop", "cart", "--message-format", "short", "--", "--nocapture", "--test-threads", "2", "--exact", "adds"])
    assert read == Asked(("-p", "shop"), ("--test-threads", "2", "--exact"), ("cart", "adds"))
    assert named("path+file:///p/rx#0.1.0", "/p/rx") == ("rx", "0.1.0") and named("path+file:///p#rx@0.2.0", "/p") == ("rx", "0.2.0")
    assert named("rx 0.1.0 (path+file:///p)", "/p") == ("rx", "0.1.0")


def test_documentation_tests() -> None:
    run = CargoRun(project(), request(), Wanted(), CargoTest().hint(), "cargo", Asked())
    for line in (GOLDEN / "cargo" / "doc.out").read_text().splitlines():
        run.line("doc tests", "stdout", line, 1)
    ((_, case),) = run.book.tests.items()
    assert (case.name, case.file, case.line, case.status) == ("src/lib.rs - add (line 1)", "src/lib.rs", 1, TestStatus.PASSED)


def event(name: str, what: str, stdout: str | None = None) -> str:
    said = f', "exec_time": 0.5, "stdout": {json.dumps(stdout)}' if stdout is not None else ""
    return f'{{ "type": "test", "name": "{name}", "event": "{what}"{said} }}'


def test_a_printed_success_is_not_believed_against_the_failure() -> None:
    """A test that writes to its standard output by itself may write what looks like its own end."""
    run, step = running("lib_json_bootstrap.out", TESTS)
    name = "tests::ok"
    run.line(step, "stdout", event(name, "failed", "thread 'tests::ok' panicked at src/lib.rs:3:5:\nboom\n"), 6)
    run.ended(step, Exit(code=101), {}, 7)
    assert run.book.tests[("rx", name)].status is TestStatus.FAILED


def test_a_status_that_no_failure_explains() -> None:
    run, step = running("lib_json_bootstrap.out", ("tests::ok",))
    run.ended(step, Exit(code=101), {}, 7)
    assert run.book.tests[("rx", "tests::ok")].status is TestStatus.PASSED
    assert any("ended with status 101, though no test failed" in error for error in run.book.errors)


@pytest.mark.parametrize("pieces", (1, 2, 5))
def test_a_message_too_long_for_a_line(pieces: int) -> None:
    """The engine parts lines at 4 MiB; a failing test's output is in one."""
    run, step = running("lib_json_bootstrap.out", ("tests::ok", "tests::fails"))
    del run.book.tests[("rx", "tests::fails")]
    run.line(step, "stdout", event("tests::fails", "started"), 5)
    said = "".join(f"line \\ \u2603 \"{n}\"\n" for n in range(90_000))
    text = event("tests::fails", "failed", f"{said}thread 'tests::fails' panicked at src/lib.rs:8:9:\nboom\n")
    size = len(text) // pieces + 1
    for start in range(0, len(text), size):
        run.line(step, "stdout", text[start : start + size] if pieces > 1 else text[: len(text) // 2 + 1], 6)
    run.line(step, "stdout", '{ "type": "suite", "event": "failed", "passed": 1, "failed": 1 }', 7)
    run.ended(step, Exit(code=101), {}, 8)
    case = run.book.tests[("rx", "tests::fails")]
    assert case.status is TestStatus.FAILED and run.book.crash is None and len(case.output or "") < 70_000
    if pieces > 1:
        assert (case.failures[0].file, case.failures[0].line, case.failures[0].message) == ("src/lib.rs", 8, "boom")


def test_a_toolchain_is_kept() -> None:
    (step,) = CargoTest().start(project(), request(command="cargo +nightly test --release")).begin()
    assert step.argv[1:] == ("+nightly", "test", "--no-run", "--message-format=json", "--release")
