"""deploy/setup.sh on machines that lack something: it names each missing thing and gives one command."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
TOOLS: Final = ("sh", "dirname", "id", "cat", "awk", "paste", "cksum", "make", "cc", "apt-get", "apt-cache", "env", "mkdir")


class Machine:
    """A checkout's set-up files and a PATH that holds only the named tools and a `python3` that behaves as told."""

    def __init__(self, base: Path) -> None:
        self.checkout = base / "checkout"
        self.bin = base / "bin"
        (self.checkout / "deploy").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("requirements.lock", "requirements-dev.lock", "pyproject.toml", "setup.py", "deploy/setup.sh"):
            shutil.copy(ROOT / name, self.checkout / name)
        for tool in TOOLS:
            found = shutil.which(tool)
            if found:
                (self.bin / tool).symlink_to(found)

    def script(self, name: str, text: str) -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def python(self, *, version: str = "3.11", without: str = "no such module") -> None:
        """A python3 of `version` that cannot import `without`: it answers the questions that the script asks."""
        old = int(version.split(".")[1]) < 11
        answers = (
            f'*"{without}"*) exit 1',
            f"*sys.version_info\\ \\<*) exit {int(old)}",
            f"*print*) echo python{version}",
            f"-V) echo Python {version}.0",
        )
        self.script("python3", f'case "$*" in {" ;; ".join(answers)} ;; esac')

    def set_up(self) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "HOME": str(self.checkout), "LC_ALL": "C"}
        return subprocess.run(
            [str(self.bin / "sh"), "deploy/setup.sh", "run"], cwd=self.checkout, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    def refusal(self) -> str:
        done = self.set_up()
        assert done.returncode == 1, done
        assert not (self.checkout / ".venv").exists()
        assert done.stderr.count("Get it with") == 1, done.stderr
        return done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_no_python_at_all(machine: Machine) -> None:
    text = machine.refusal()
    assert "Python 3.11 or newer (no python3 is here)" in text


def test_python_too_old(machine: Machine) -> None:
    machine.python(version="3.9")
    assert "Python 3.11 or newer (Python 3.9.0 is here)" in machine.refusal()


@pytest.mark.parametrize(("module", "named"), [("import venv", "the venv module"), ("import ensurepip", "pip for")])
def test_python_without_a_module(machine: Machine, module: str, named: str) -> None:
    machine.python(without=module)
    text = machine.refusal()
    assert named in text
    assert "python3.11-venv" in text


def test_no_compiler_and_no_make(machine: Machine) -> None:
    machine.python()
    (machine.bin / "cc").unlink()
    (machine.bin / "make").unlink()
    text = machine.refusal()
    assert "a C compiler (cc)" in text
    assert "- make" in text
    command = next(line for line in text.splitlines() if line.startswith("Get it with"))
    assert "make" in command
    assert "gcc libc6-dev" in command
    assert command.count("libc6-dev") == 1


def test_without_apt_the_packages_are_named(machine: Machine) -> None:
    machine.python()
    for tool in ("cc", "apt-get", "apt-cache"):
        (machine.bin / tool).unlink(missing_ok=True)
    assert "with your package manager" in machine.refusal()


def test_uv_is_used_where_it_is(machine: Machine) -> None:
    machine.python()
    machine.script("uv", 'echo "$@" >> "$HOME/uv.log"; case "$1" in venv) mkdir -p .venv/bin; : > .venv/bin/python ;; esac')
    done = machine.set_up()
    assert done.returncode == 0, done
    asked = (machine.checkout / "uv.log").read_text().splitlines()
    assert [line.split()[0] for line in asked] == ["venv", "pip", "pip"]
    assert "--require-hashes -r requirements.lock" in asked[1]
    assert "--no-deps --no-build-isolation -e ." in asked[2]


def test_locks_hash_everything_and_name_no_address() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        assert "://" not in text
        for requirement in (part for part in text.replace("\\\n", " ").splitlines() if part and not part.lstrip().startswith("#")):
            assert "==" in requirement, requirement
            assert "--hash=sha256:" in requirement, requirement
    assert os.access(ROOT / "deploy" / "setup.sh", os.X_OK)
