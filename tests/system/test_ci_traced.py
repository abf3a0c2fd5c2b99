"""strobe-ci with traced runs, on a pytest suite whose test starts a native program: a flaky test's first divergence, failures run again traced."""

from __future__ import annotations

import json
from pathlib import Path

from tests.harness.strobe_ci import run
from tests.harness.targets import program

TRACE = ("turn", "price_of", "rate", "worker", "tick")
SUITE = """
import subprocess
from pathlib import Path

def test_rate():
    path = Path({turns!r})
    n = len(path.read_text()) if path.exists() else 0
    path.write_text("x" * (n + 1))
    how = "noise returns" if n % 3 == {bad} else "noise"
    assert subprocess.run([{program!r}, how, "10"], capture_output=True, text=True, check=True).stdout.startswith("rate 3")

def test_good(): pass
"""


def project(tmp_path: Path, bad: int) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "test_rates.py").write_text(SUITE.format(turns=str(tmp_path / "turns"), program=str(program("divergent.c", "-O1")), bad=bad))
    return root


def test_a_flaky_test_repeated(tmp_path: Path) -> None:
    home, bundle = tmp_path / "home", tmp_path / "evidence.zip"
    patterns = [word for pattern in TRACE for word in ("--trace", pattern)]
    done = run("strobe.ci", home, project(tmp_path, 1), "--repeat", "3", "--test", "test_rate", *patterns, "--evidence", bundle)
    assert done.returncode == 1, done
    assert "2 of 3 runs passed" in done.stdout and "FLAKY test_rates.py::test_rate" in done.stdout, done.stdout
    opened = run("strobe.ctl", home, "evidence", "open", bundle, "--member", "flakes.json")
    [flaky] = json.loads(opened.stdout)["flaky"]
    divergence = flaky["divergence"]
    assert divergence["ignored"] == ["tick(time)"], done.stdout
    assert (divergence["rows"][0]["kind"], divergence["rows"][0]["function"]) == ("returnValue", "rate"), done.stdout
    assert divergence["rows"][0]["differs"] == [{"path": "ret", "here": 7, "there": 3}]
    assert "rate returned something else (divergent.c:" in done.stdout
    shown = run("strobe.ctl", home, "evidence", "open", bundle, "--member", f"traces/{divergence['failing']}.parquet", "--limit", "10000")
    assert 'rate(currency="EUR", factor=1.5)' in shown.stdout and "= 7" in shown.stdout


def test_a_failure_is_run_again_traced(tmp_path: Path) -> None:
    """It fails the first time and passes the second: a flaky test, and told as one."""
    home, bundle = tmp_path / "home", tmp_path / "evidence.zip"
    done = run("strobe.ci", home, project(tmp_path, 0), "--evidence", bundle)
    assert done.returncode == 1, done
    assert "test_rates.py::test_rate passes now: flaky" in done.stdout, done.stdout
    opened = json.loads(run("strobe.ctl", home, "evidence", "open", bundle, "--json").stdout)
    names = [one["path"] for one in opened["manifest"]["members"]]
    assert "reruns.json" in names and any(name.startswith("traces/") for name in names), names
