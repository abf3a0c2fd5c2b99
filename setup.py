"""Builds the C parts (agent/native) along with the package: they go into a wheel as `strobe/built/`, and stay in agent/native/build for an editable install."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
NATIVE = ROOT / "agent" / "native"
BUILT = NATIVE / "build"
SHIPPED = ("strobe-keeper", "strobe-recorder.so")
REPORTERS = ROOT / "agent" / "reporters"
AGENT_BUNDLE = ROOT / "agent" / "frida" / "dist" / "agent.js"


def need(tool: str, why: str, package: str) -> None:
    if shutil.which(tool) is None:
        sys.exit(f"{tool} is missing: {why} need it. Get it with: apt-get install {package}")


def make_native() -> None:
    need("make", "Strobe's C parts", "make")
    need("cc", "Strobe's C parts", "gcc libc6-dev")
    subprocess.run(["make", "-C", str(NATIVE)], check=True, stdin=subprocess.DEVNULL)


class BuildWithNative(build_py):
    """`build_py`, and before it `make -C agent/native`."""

    def run(self) -> None:
        make_native()
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "strobe" / "built"
            target.mkdir(parents=True, exist_ok=True)
            for source in (*(BUILT / name for name in SHIPPED), AGENT_BUNDLE):
                shutil.copy2(source, target / source.name)
            shutil.copytree(REPORTERS, target / REPORTERS.name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


class PlatformWheel(bdist_wheel):
    """A wheel for any Python 3 on this machine's platform: it holds machine code, but no extension module."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class StrobeDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(cmdclass={"build_py": BuildWithNative, "bdist_wheel": PlatformWheel}, distclass=StrobeDistribution)
