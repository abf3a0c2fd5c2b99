"""strobe-ci as CI systems start it: real suites of pytest, a real node, the files and the exit status that it leaves."""

from __future__ import annotations

import json
import os
import signal
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from strobe.supervisor.start import node_pid
from tests.harness.strobe_ci import run, start

BAD = "import sys\ndef total(values):\n    return sum(values)\n\ndef test_good():\n    assert total([1]) == 1\n\n"
FAILS = BAD + 'def test_bad():\n    assert total([1, 2]) == 4, "odd \\x1b[31m\\x00 & <b> ]]>\\n::error::x token=a1b2c3d4e5f6a7b8c9"\n'
HANGS = "import time\ndef test_good(): pass\ndef test_hangs():\n    time.sleep(600)\n"
END_S = 60.0


def project(tmp_path: Path, text: str) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "test_sums.py").write_text(text)
    return root


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def nothing_is_left(home: Path, root: Path) -> None:
    assert node_pid(home) is None
    assert not _in_folder(root)


def _in_folder(root: Path, word: bytes = b"") -> list[int]:
    """Processes with that folder as their own, and the word in their command line."""
    found = []
    for one in Path("/proc").iterdir():
        try:
            if one.name.isdigit() and (one / "cwd").readlink() == root and word in (one / "cmdline").read_bytes():
                found.append(int(one.name))
        except OSError:
            continue
    return found


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + END_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_all_passed(tmp_path: Path, home: Path) -> None:
    root, junit = project(tmp_path, BAD), tmp_path / "junit.xml"
    done = run("strobe.ci", home, root, "--junit", junit)
    assert done.returncode == 0, done
    assert "1 passed, 0 failed" in done.stdout
    suites = ElementTree.parse(junit).getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("1", "0", "0")
    nothing_is_left(home, root)


def test_a_failure_is_reported_everywhere(tmp_path: Path, home: Path) -> None:
    root, junit, bundle, summary = project(tmp_path, FAILS), tmp_path / "junit.xml", tmp_path / "evidence.zip", tmp_path / "summary.md"
    on_github = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path), "GITHUB_STEP_SUMMARY": str(summary)}
    on_github["MY_SECRET_KEY"] = "a-secret-of-the-environment"
    done = run("strobe.ci", home, root, "--junit", junit, "--evidence", bundle, env=on_github)
    assert done.returncode == 1, done
    failure = ElementTree.parse(junit).getroot().find(".//testcase[@name='test_sums.py::test_bad']/failure")
    assert failure is not None and "& <b> ]]>" in (failure.text or "") and "\\x00" in (failure.text or "")
    lines = done.stdout.splitlines()
    [told] = [line for line in lines if line.startswith("::error ")]
    assert told.startswith("::error file=project/test_sums.py,line=9,title=test_sums.py%3A%3Atest_bad::") and "%0A" in told
    stop = next(index for index, line in enumerate(lines) if line.startswith("::stop-commands::"))
    said = next(index for index, line in enumerate(lines) if line.strip().startswith("::error::x"))
    go_on = lines.index(f"::{lines[stop].rpartition('::')[2]}::")
    assert stop < said < go_on, done.stdout
    assert "| 1 | 1 | 0 | 0 |" in summary.read_text() and "test_bad" in summary.read_text()
    everything = done.stdout + done.stderr + summary.read_text() + junit.read_text()
    assert "a1b2c3d4e5f6a7b8c9" not in everything and "<redacted>" in everything
    nothing_is_left(home, root)

    checked = run("strobe.ctl", tmp_path / "no-home", "evidence", "verify", bundle)
    assert checked.returncode == 0, checked
    opened = run("strobe.ctl", tmp_path / "no-home", "evidence", "open", bundle, "--json")
    content = json.loads(opened.stdout)
    assert "MY_SECRET_KEY" in content["manifest"]["environment"]
    assert {one["path"] for one in content["manifest"]["members"]} >= {"results.json", "junit.xml", "sources/test_sums.py", "redaction.json"}
    assert content["results"]["result"]["failed"] == 1 and len(content["results"]["tests"]) == 2
    assert run("strobe.ctl", tmp_path, "evidence", "open", bundle, "--to", tmp_path / "unpacked").returncode == 0
    whole = b"".join(path.read_bytes() for path in (tmp_path / "unpacked").rglob("*") if path.is_file())
    assert b"a-secret-of-the-environment" not in whole and b"a1b2c3d4e5f6a7b8c9" not in whole
    assert json.loads((tmp_path / "unpacked" / "redaction.json").read_text())["redacted"] > 0
    assert not (tmp_path / "no-home").exists()


def test_a_stuck_test(tmp_path: Path, home: Path) -> None:
    root, junit = project(tmp_path, HANGS), tmp_path / "junit.xml"
    done = run("strobe.ci", home, root, "--timeout", "2", "--junit", junit, "--no-trace")
    assert done.returncode == 2, done
    assert "STUCK test_sums.py::test_hangs" in done.stdout
    error = ElementTree.parse(junit).getroot().find(".//testcase[@name='test_sums.py::test_hangs']/error")
    assert error is not None and error.get("type") == "stuck"
    nothing_is_left(home, root)


@pytest.mark.parametrize(
    ("text", "options", "word"),
    [
        ("", (), "test"),
        (BAD, ("--framework", "junit9"), "junit9"),
        (BAD, ("--level", "some"), "some"),
        (BAD, ("--test", "no_such_test"), "est"),
        (BAD, ("--junit", "/no/such/folder/junit.xml"), "/no/such/folder"),
        ("def test_broken(:\n", (), "SyntaxError"),
    ],
)
def test_what_cannot_be_run(tmp_path: Path, home: Path, text: str, options: tuple[str, ...], word: str) -> None:
    root = project(tmp_path, text)
    done = run("strobe.ci", home, root, "--no-trace", *options)
    assert done.returncode == 3, done
    assert word in done.stdout + done.stderr and "Traceback (most recent call last)" not in done.stderr
    nothing_is_left(home, root)


def test_failures_are_run_again(tmp_path: Path, home: Path) -> None:
    done = run("strobe.ci", home, project(tmp_path, FAILS))
    assert done.returncode == 1, done
    assert "test_sums.py::test_bad: fails again" in done.stdout, done


def test_repeats_tell_flaky_tests(tmp_path: Path, home: Path) -> None:
    turns = tmp_path / "turns"
    flaky = f"from pathlib import Path\ndef test_now_and_then():\n    path = Path({str(turns)!r})\n    n = len(path.read_text()) if path.exists() else 0\n"
    flaky += "    path.write_text('x' * (n + 1))\n    assert n % 3 != 1, f'turn {n}'\ndef test_good(): pass\n"
    bundle = tmp_path / "evidence.zip"
    done = run("strobe.ci", home, project(tmp_path, flaky), "--repeat", "5", "--no-trace", "--evidence", bundle)
    assert done.returncode == 1, done
    assert "3 of 5 runs passed" in done.stdout and "2 of 5 runs failed" in done.stdout
    assert "FLAKY test_sums.py::test_now_and_then" in done.stdout and "test_good" not in done.stdout.partition("FLAKY")[2]
    opened = run("strobe.ctl", home, "evidence", "open", bundle, "--member", "flakes.json")
    [one] = json.loads(opened.stdout)["flaky"]
    assert [cluster["runs"] for cluster in one["clusters"]] == [[1, 3, 4], [2, 5]]
    assert "turn #" in one["clusters"][1]["outcome"]


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, b"pytest"), (signal.SIGINT, b"strobe.cli"), (signal.SIGTERM, b"pytest")])
def test_interrupted_it_leaves_nothing(tmp_path: Path, home: Path, number: signal.Signals, word: bytes) -> None:
    """While tests run, and before they have begun."""
    root, bundle = project(tmp_path, HANGS), tmp_path / "evidence.zip"
    with start("strobe.ci", home, root, "--evidence", bundle) as process:
        until(lambda: bool(_in_folder(root, word)))
        process.send_signal(number)
        _, said = process.communicate(timeout=END_S)
    assert process.returncode == 130 and "interrupted" in said, said
    until(lambda: not _in_folder(root))
    nothing_is_left(home, root)
    assert not bundle.exists() and not list(tmp_path.glob(".*part"))


def test_a_node_that_is_gone_ends_it(tmp_path: Path, home: Path) -> None:
    """All of it killed: the run with its processes is lost, and that is said."""
    root = project(tmp_path, HANGS)
    with start("strobe.ci", home, root) as process:
        until(lambda: bool(_in_folder(root, b"pytest")))
        for pid in _node_processes(home):
            os.kill(pid, signal.SIGKILL)
        out, said = process.communicate(timeout=3 * END_S)
    assert process.returncode == 3 and "ACTOR_UNAVAILABLE" in said, (out, said)
    assert "Traceback (most recent call last)" not in said
    for pid in _in_folder(root):  # their keeper lives on: nobody was left who could end them
        os.kill(pid, signal.SIGKILL)
    until(lambda: not _in_folder(root))


def _node_processes(home: Path) -> list[int]:
    found = []
    for one in Path("/proc").iterdir():
        try:
            if one.name.isdigit() and f"STROBE_HOME={home}".encode() in (one / "environ").read_bytes().split(b"\0"):
                line = (one / "cmdline").read_bytes()
                if b"actors." in line or b"strobe.supervisor" in line or b"node" in line.split(b"\0"):
                    found.append(int(one.name))
        except OSError:
            continue
    return found
