"""What deploy/ gives CI systems: the script runs a real suite; no input of a workflow becomes part of a command."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.harness.mcp import ROOT
from tests.harness.strobe_ci import RUN_S, environment

DEPLOY = ROOT / "deploy"


def test_the_script_runs_a_suite(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_it.py").write_text("def test_one(): pass\ndef test_other(): assert False\n")
    options = {"STROBE_CI_PYTHON": sys.executable, "STROBE_CI_TEST": "test_one", "STROBE_CI_JUNIT": "out.xml", "STROBE_CI_NO_TRACE": "1"}
    env = environment(tmp_path / "home", **options)
    done = subprocess.run(["sh", DEPLOY / "ci.sh"], cwd=project, env=env, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done
    assert ElementTree.parse(project / "out.xml").getroot().get("tests") == "1"


def test_inputs_go_through_the_environment() -> None:
    """An expression inside of `run:` would be put into the script as it stands."""
    action = (DEPLOY / "github-action" / "action.yml").read_text()
    script = action.partition("      run: |\n")[2].partition("    - if:")[0]
    assert "ci.sh" in script and "${{" not in script
    given = set(re.findall(r"^  ([a-z-]+):\n    description", action.partition("outputs:")[0], re.MULTILINE))
    used = set(re.findall(r"inputs\.([a-z-]+)", action))
    assert given == used
    known = set(re.findall(r"STROBE_CI_[A-Z_]+", (DEPLOY / "ci.sh").read_text()))
    for file in (action, (DEPLOY / "gitlab" / "strobe-ci.yml").read_text()):
        assert set(re.findall(r"STROBE_CI_[A-Z_]+[A-Z]", file)) <= known
