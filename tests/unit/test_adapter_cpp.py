"""GoogleTest, Catch2 3 and CTest, on their recorded output (tests/golden/frameworks)."""

from __future__ import annotations

from strobe.adapters.adapter import Exit, Run
from strobe.adapters.catch2 import Catch2, Catch2Run, escaped, expression
from strobe.adapters.ctest import CTest
from strobe.adapters.googletest import GoogleTest, GoogleTestRun
from strobe.adapters.program_run import Program
from strobe.model.testing import TestStatus
from tests.harness.adapter_replay import GOLDEN, MemoryProject, request

ELF = "\x7fELF gtest_list_tests catch2-version"


def project() -> MemoryProject:
    return MemoryProject({"t": ELF, "gt.cpp": "", "c3.cpp": "", "b/CTestTestfile.cmake": "add_test(x)"}, ("ctest", "cmake"))


def statuses(run: Run) -> dict[str, str]:
    return {case.name: case.status.value for case in run.book.tests.values()}


def gtest(name: str) -> tuple[GoogleTestRun, str]:
    run = GoogleTest().start(project(), request())
    (listing,) = run.begin()
    for line in (GOLDEN / "gtest" / "list.out").read_text().splitlines():
        run.line(listing.name, "stdout", line, 1)
    (step,) = run.ended(listing.name, Exit(code=0), {}, 2)
    for line in (GOLDEN / "gtest" / name).read_text().splitlines():
        run.line(step.name, "stdout", line, 3)
    return run, step.name


EXPECTED = {"A.Pass": "passed", "A.Fail": "failed", "A.Skip": "skipped", "A.Throw": "failed", "Inst/P.V/0": "passed", "Inst/P.V/1": "failed"}


def test_googletest_live_then_its_report() -> None:
    run, step = gtest("suite.out")
    assert statuses(run) == EXPECTED  # before any report
    live = {(one.name, one.line) for one in run.book.failures()}
    report = (GOLDEN / "gtest" / "report.json").read_text()
    run.ended(step, Exit(code=1), {"/run-folder/t.json": report}, 9)
    assert statuses(run) == {**EXPECTED, "A.DISABLED_Dis": "skipped"} and not run.book.errors and run.book.crash is None
    assert {("A.Fail", 6), ("A.Fail", 4)} <= live
    fail = [one for one in run.book.failures() if one.name == "A.Fail"]
    assert [(one.file, one.line) for one in fail] == [("gt.cpp", 6), ("gt.cpp", 4)] and "extra" in fail[1].message
    thrown = next(one for one in run.book.failures() if one.name == "A.Throw")
    assert "kaput" in thrown.message and thrown.line == 9
    assert run.book.tests[("t", "A.Skip")].reason == "why"
    assert "GetParam() = 2" in next(one for one in run.book.failures() if one.name == "Inst/P.V/1").message


def test_googletest_that_dies_writes_no_report() -> None:
    run, step = gtest("crash.out")
    run.by_step[step].chosen["Z.Segv"] = None
    run.speaking.clear()
    run.line(step, "stdout", "[ RUN      ] Z.Segv", 4)
    run.ended(step, Exit(signal="SIGSEGV"), {}, 9)
    assert run.book.crash is not None and run.book.crash.during == ["Z.Segv"] and run.book.tests[("t", "Z.Segv")].status is TestStatus.LOST


def catch(name: str, tests: tuple[str, ...]) -> tuple[Catch2Run, Program]:
    run = Catch2().start(project(), request())
    (listing,) = run.begin()
    assert listing.argv[1:] == ("--list-tests", "-r", "xml")
    program = run.by_step[listing.name]
    for test in tests:
        run.line(listing.name, "stdout", f"    <TestCase>\n      <Name>{test}</Name>".splitlines()[1], 1)
        run.line(listing.name, "stdout", "      <Tags>[unit]</Tags>", 1)
    (step,) = run.ended(listing.name, Exit(code=0), {}, 2)
    assert step.follow == step.reports and "console" in step.argv
    for line in (GOLDEN / "catch2v3" / name).read_text().splitlines():
        if not line.startswith("stdout noise"):
            run.line(step.name, "report", line, 3)
    return run, program


NAMES = ("passes, with comma", "fails", "throws", "prints")


def test_catch2_of_version_three() -> None:
    run, program = catch("multi.xml", NAMES)
    assert statuses(run) == {"passes, with comma": "passed", "fails": "failed", "throws": "failed", "prints": "passed"}
    fails = next(one for one in run.book.failures() if one.name == "fails")
    assert (fails.file, fails.line) == ("c3.cpp", 7) and fails.message == "in s1:\nREQUIRE( 1+1==3 )\nwith expansion: 2 == 3\nctx"
    assert next(one for one in run.book.failures() if one.name == "throws").message == "kaput <&>"
    assert program.suite == "t" and fails.rerun_command == "./t fails"


def test_catch2_that_dies_closes_its_report() -> None:
    run, _ = catch("crash.out", (*NAMES, "segv"))
    run.ended("run t", Exit(signal="SIGSEGV"), {}, 9)
    assert run.book.crash is not None and run.book.crash.during == ["segv"] and run.book.tests[("t", "segv")].status is TestStatus.LOST


def test_catch2_that_hangs() -> None:
    run, _ = catch("hang.out", (*NAMES, "dead"))
    assert [one.name for one in run.book.running.values()] == ["dead"]
    run.finish(9000)
    assert run.book.tests[("t", "dead")].status is TestStatus.STUCK and run.book.tests[("t", "dead")].line == 12


def test_catch2_names_as_specs() -> None:
    assert escaped("a, b [c]") == "a\\, b \\[c\\]" and escaped("*x*") == "\\*x\\*" and escaped("~not") == "\\~not"
    assert expression.__doc__


def test_ctest() -> None:
    run = CTest().start(project(), request("/proj/b"))
    (listing,) = run.begin()
    for line in (GOLDEN / "ctest" / "showonly.out").read_text().splitlines():
        run.line(listing.name, "stdout", line, 1)
    (step,) = run.ended(listing.name, Exit(code=0), {}, 2)
    text = (GOLDEN / "ctest" / "suite.out").read_text().splitlines()
    for line in text[: text.index("      Start  9: sleeper") + 1 if "      Start  9: sleeper" in text else len(text)]:
        run.line(step.name, "stdout", line, 3)
    assert [one.name for one in run.book.running.values()] == ["sleeper"]
    for line in text[text.index("      Start  9: sleeper") + 1 :]:
        run.line(step.name, "stdout", line, 4)
    run.ended(step.name, Exit(code=8), {"/run-folder/junit.xml": (GOLDEN / "ctest" / "junit.xml").read_text()}, 9)
    found = statuses(run)
    assert {name for name, status in found.items() if status == "failed"} == {"A.Fail", "A.Throw", "Inst/P.V/2", "shell_fail", "sleeper", "notfound"}
    assert {name for name, status in found.items() if status == "skipped"} == {"A.Skip", "A.Dis", "skipme"}
    places = [(one.file, one.line) for one in run.book.failures() if one.name == "A.Fail"]
    assert [line for _, line in places] == [6, 4] and run.book.tests[("b", "A.Skip")].reason == "why" and not run.book.errors
    assert "Timeout" in next(one for one in run.book.failures() if one.name == "sleeper").message
