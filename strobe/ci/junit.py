"""Results as JUnit XML: what Jenkins, GitLab, GitHub actions and most others read (testsuites, testsuite, testcase, failure, error, skipped, system-out).

A suite for each binary, package or file. failure: an assertion; error: a crash, a test that was stuck, a run that did not come to its end.
"""

from __future__ import annotations

import socket
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from strobe.ci.suite import Outcome
from strobe.model.testing import Failure, TestCase, TestStatus
from strobe.render.plain import one_line, xml_text

OUTPUT_MAX: Final = 65_536
MESSAGE_MAX: Final = 1_000
Element = ElementTree.Element


def junit_xml(outcome: Outcome) -> bytes:
    cases: defaultdict[str, list[TestCase]] = defaultdict(list)
    for case in outcome.cases:
        cases[case.suite or outcome.framework or "tests"].append(case)
    root = Element("testsuites")
    suites = [_suite(name, several, outcome) for name, several in cases.items()]
    if (broken := _broken(outcome)) is not None:
        suites.append(broken)
    root.extend(suites)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.set("name", xml_text(outcome.framework or "strobe-ci"))
    root.set("time", f"{(outcome.result.duration_ms if outcome.result else 0) / 1000:.3f}")
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _suite(name: str, cases: Sequence[TestCase], outcome: Outcome) -> Element:
    suite = Element("testsuite", _named(name, outcome, sum(case.duration_ms or 0 for case in cases)))
    suite.extend(_case(case, name) for case in cases)
    return _counted(suite)


def _named(name: str, outcome: Outcome, duration_ms: float) -> dict[str, str]:
    at = datetime.fromtimestamp(outcome.started_at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return {"name": xml_text(name), "timestamp": at, "hostname": xml_text(socket.gethostname()), "time": f"{duration_ms / 1000:.3f}"}


def _counted(suite: Element) -> Element:
    suite.set("tests", str(len(suite.findall("testcase"))))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
    return suite


def _case(case: TestCase, suite: str) -> Element:
    element = Element("testcase", {"name": xml_text(case.name), "classname": xml_text(suite), "time": f"{(case.duration_ms or 0) / 1000:.3f}"})
    if case.file:
        element.set("file", xml_text(case.file))
    if case.line:
        element.set("line", str(case.line))
    if case.status is TestStatus.SKIPPED:
        _add(element, "skipped", case.reason or "", "")
    elif case.status is TestStatus.FAILED:
        _add(element, "failure", _first(case, "failed"), _told(case.failures), "failure")
    elif case.status is not TestStatus.PASSED:
        _add(element, "error", _first(case, case.status.value), _told(case.failures), case.status.value)
    if case.output:
        ElementTree.SubElement(element, "system-out").text = xml_text(case.output[:OUTPUT_MAX])
    return element


def _add(element: Element, tag: str, message: str, text: str, kind: str | None = None) -> None:
    child = ElementTree.SubElement(element, tag, {"message": xml_text(message[:MESSAGE_MAX])} if message else {})
    if kind is not None:
        child.set("type", kind)
    if text:
        child.text = xml_text(text)


def _first(case: TestCase, otherwise: str) -> str:
    return one_line(case.failures[0].message, MESSAGE_MAX) if case.failures else otherwise


def _told(failures: Sequence[Failure]) -> str:
    return "\n\n".join(failure_text(failure) for failure in failures)[:OUTPUT_MAX]


def failure_text(failure: Failure) -> str:
    """Place, message, stack and how to run it again."""
    place = [f"{failure.file}:{failure.line or '?'}"] if failure.file else []
    stack = [f"    at {frame.function or '?'} ({frame.file or '?'}:{frame.line or '?'})" for frame in failure.stack_trace]
    return "\n".join([*place, failure.message, *stack, *([f"rerun: {failure.rerun_command}"] if failure.rerun_command else [])])


def _broken(outcome: Outcome) -> Element | None:
    """What failed and is no test's: told as a test of its own, or a reader of the file would take the run for a good one."""
    result = outcome.result
    told = [outcome.error] if outcome.error else []
    told += [outcome.hint] if outcome.hint else []
    told += result.errors if result else []
    if result and result.crash and not outcome.failed and not outcome.stuck:
        told.append(f"{result.crash.command} ended by {result.crash.signal or f'exit status {result.crash.exit_code}'}")
    if not told:
        return None
    suite = Element("testsuite", _named("strobe-ci", outcome, 0))
    case = ElementTree.SubElement(suite, "testcase", {"name": "the run itself", "classname": "strobe-ci", "time": "0.000"})
    _add(case, "error", one_line(told[0], MESSAGE_MAX), "\n".join([*told, *outcome.last_lines]), "run")
    return _counted(suite)
