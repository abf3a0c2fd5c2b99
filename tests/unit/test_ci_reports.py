"""strobe-ci's reports: whatever a test is called and says, they stay well-formed and do nothing else than report."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe.ci import github
from strobe.ci.flakes import flaky_tests, signature
from strobe.ci.junit import junit_xml
from strobe.ci.suite import Outcome, exit_status
from strobe.model.testing import Crash, Failure, TestCase, TestResult, TestStatus
from strobe.render.plain import one_line, visible, xml_text

ANY_TEXT = st.text(st.characters(), max_size=60)  # surrogates and control characters too
# Attributes and children of the schema that Jenkins and most others hold to.
SUITE = {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"}
CASE = {"name", "classname", "time", "file", "line"}
IN_CASE = {"skipped": {"message"}, "failure": {"message", "type"}, "error": {"message", "type"}, "system-out": set[str]()}


def outcome(cases: list[TestCase], **more: Any) -> Outcome:
    count = {status: sum(case.status is status for case in cases) for status in TestStatus}
    failed = count[TestStatus.FAILED] + count[TestStatus.LOST]
    facts: dict[str, Any] = {"passed": count[TestStatus.PASSED], "failed": failed, "skipped": count[TestStatus.SKIPPED], "stuck": count[TestStatus.STUCK]}
    result = TestResult(framework="pytest", **{**facts, **more.pop("result", {})}, duration_ms=1500)
    fields: dict[str, Any] = {"run_id": "r", "framework": "pytest", "result": result, "cases": cases, "last_lines": [], "error": None}
    return Outcome(**{**fields, "session_id": None, "warnings": [], "started_at": 0.0, **more})


def case(status: TestStatus, name: str = "t", message: str = "no", **more: Any) -> TestCase:
    failures = [Failure(name=name, file="a.py", line=3, message=message)] if status not in (TestStatus.PASSED, TestStatus.SKIPPED) else []
    return TestCase(name=name, suite="a.py", status=status, duration_ms=1.5, failures=failures, **more)


def checked(content: bytes) -> ElementTree.Element:
    """Parsed, and held to the schema."""
    root = ElementTree.fromstring(content)
    assert root.tag == "testsuites" and set(root.attrib) == {"name", "tests", "failures", "errors", "time"}
    for suite in root:
        assert suite.tag == "testsuite" and set(suite.attrib) == SUITE
        for one in suite:
            assert one.tag == "testcase" and set(one.attrib) <= CASE and {"name", "classname", "time"} <= set(one.attrib)
            assert [child.tag for child in one] == sorted((child.tag for child in one), key=list(IN_CASE).index)
            for child in one:
                assert set(child.attrib) <= IN_CASE[child.tag]
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(name, "")) == len(suite.findall(f"testcase/{tag}"))
        assert int(suite.get("tests", "")) == len(suite)
    for name in ("tests", "failures", "errors"):
        assert int(root.get(name, "")) == sum(int(suite.get(name, "")) for suite in root)
    return root


def test_every_sort_of_test() -> None:
    root = checked(junit_xml(outcome([case(status) for status in TestStatus])))
    kinds = [child.get("type") for child in root.iter("error")]
    assert kinds == ["stuck", "lost"] and len(list(root.iter("failure"))) == 1 and len(list(root.iter("skipped"))) == 1


@given(name=ANY_TEXT, message=ANY_TEXT, output=ANY_TEXT)
def test_any_text_is_well_formed(name: str, message: str, output: str) -> None:
    one = outcome([case(TestStatus.FAILED, name, message, output=output), case(TestStatus.SKIPPED, name, reason=message)])
    checked(junit_xml(one))
    for line in github.error_commands(one, Path("/work/project"), Path("/work")):
        assert "\n" not in line and "\r" not in line and line.startswith("::error file=project/a.py,line=3")
    text = github.summary(one, [])
    assert "\x1b" not in text and "\x00" not in text
    text.encode()


@given(ANY_TEXT)
def test_texts_lose_only_what_does_something(text: str) -> None:
    for changed in (visible(text), xml_text(text)):
        assert "\x1b" not in changed and "\x00" not in changed
        changed.encode()
    assert "\n" not in one_line(text)
    plain = "".join(sign for sign in text if sign.isalnum())
    assert visible(plain) == plain or not plain.isprintable()


def test_workflow_commands_as_github_documents_them() -> None:
    assert github.escaped_data("100%\r\n::x") == "100%25%0D%0A::x"
    assert github.escaped_property("a:b,c%\n") == "a%3Ab%2Cc%25%0A"


def test_a_summary_keeps_its_form() -> None:
    text = github.summary(outcome([case(TestStatus.FAILED, "</details><script>", "```\n# heading\n````")]), [])
    assert "<script>" not in text and "`````text" in text
    many = outcome([case(TestStatus.FAILED, f"t{number}", "x" * 100_000) for number in range(200)])
    assert len(github.summary(many, []).encode()) < 1 << 20 and len(github.error_commands(many, Path("/p"), Path("/p"))) == 10


def test_a_run_that_was_none_is_annotated() -> None:
    for one in (outcome([], error="It was\nended."), outcome([case(TestStatus.PASSED)], result={"errors": ["It was\nended."]})):
        assert github.error_commands(one, Path("/p"), Path("/p")) == ["::error title=strobe-ci::It was%0Aended."]
    assert github.error_commands(outcome([case(TestStatus.PASSED)]), Path("/p"), Path("/p")) == []


def test_a_file_outside_the_workspace_stays_as_it_is() -> None:
    [line] = github.error_commands(outcome([case(TestStatus.FAILED)]), Path("/elsewhere"), Path("/work"))
    assert line.startswith("::error file=a.py,line=3")


@pytest.mark.parametrize(
    ("one", "status"),
    [
        (outcome([case(TestStatus.PASSED), case(TestStatus.SKIPPED)]), 0),
        (outcome([case(TestStatus.PASSED), case(TestStatus.FAILED)]), 1),
        (outcome([case(TestStatus.LOST)]), 1),
        (outcome([case(TestStatus.STUCK), case(TestStatus.FAILED)]), 2),
        (outcome([]), 3),
        (outcome([case(TestStatus.PASSED)], error="The run was ended before it was through."), 3),
        (outcome([case(TestStatus.PASSED)], result={"errors": ["b.py: SyntaxError"]}), 3),
        (outcome([case(TestStatus.PASSED)], result={"crash": Crash(command="pytest", signal="SIGSEGV")}), 3),
    ],
)
def test_the_exit_status_and_a_report_agree(one: Outcome, status: int) -> None:
    assert exit_status(one) == status
    root = checked(junit_xml(one))
    bad = int(root.get("failures", "")) + int(root.get("errors", ""))
    assert bool(bad) == (status != 0) or not one.cases


def test_outcomes_are_clustered_by_what_failed() -> None:
    runs = [outcome([case(status, "flaky", message), case(TestStatus.PASSED, "good")]) for status, message in (
        (TestStatus.PASSED, ""), (TestStatus.FAILED, "got 3 at 0x55aa"), (TestStatus.FAILED, "got 17 at 0x55bb\nmore"), (TestStatus.FAILED, "other"),
    )]  # fmt: skip
    [flaky] = flaky_tests(runs)
    assert flaky.test == "flaky" and [one.runs for one in flaky.clusters] == [[2, 3], [1], [4]]
    assert flaky.clusters[0].outcome == signature(runs[1].cases[0]) == "got # at # (a.py:3)"
