"""Builds the agent: agent/frida/src → agent/frida/dist/agent.js, which is committed and shipped. `--check` only says whether it is stale.

frida.Compiler type-checks and bundles; neither node nor node_modules is needed. The C sources that the agent compiles in the target
(CModule) go in as text.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import frida

ROOT: Final = Path(__file__).resolve().parents[2] / "agent" / "frida"
BUNDLE: Final = ROOT / "dist" / "agent.js"
C_SOURCES: Final = {"PREPARE_C": "prepare.c", "FALLBACK_C": "fallback.c"}


def c_module(folder: Path) -> str:
    """csource.ts: the C sources in `folder` as constants."""
    return "".join(f"export const {name} = {json.dumps((folder / file).read_text())};\n" for name, file in C_SOURCES.items())


def build() -> str:
    """The bundle's text: the same for the same sources. Raises RuntimeError with the compiler's words."""
    with tempfile.TemporaryDirectory(prefix="strobe-bundle-") as folder:
        work = Path(folder)
        shutil.copytree(ROOT / "src", work / "src")
        shutil.copy(ROOT / "layout.gen.ts", work)
        (work / "src" / "csource.d.ts").unlink()
        (work / "src" / "csource.ts").write_text(c_module(ROOT / "src"))
        return compile_project(work)


def compile_project(work: Path) -> str:
    complaints: list[str] = []
    compiler = frida.Compiler()  # type: ignore[no-untyped-call]
    compiler.on("diagnostics", lambda items: complaints.extend(_complaint(item) for item in items))
    try:
        text = compiler.build("src/agent.ts", project_root=str(work), source_maps="omitted", type_check="full", bundle_format="iife")
    except frida.InvalidArgumentError as error:
        raise RuntimeError("\n".join([str(error), *complaints])) from error
    if complaints:
        raise RuntimeError("\n".join(complaints))
    return text


def _complaint(item: frida.CompilerDiagnostic) -> str:
    file = item.get("file")
    where = f"{file['path']}:{file['line'] + 1}:{file['character'] + 1}: " if file else ""
    return f"{where}{item['category']} {item['code']}: {item['text']}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m actors.spawner.bundle", description="Builds the agent's bundle.")
    parser.add_argument("--check", action="store_true", help="only say whether the committed bundle is stale (exit status 1)")
    check = parser.parse_args().check
    text = build()
    if check:
        if not BUNDLE.is_file() or BUNDLE.read_text() != text:
            sys.exit(f"{BUNDLE} is stale: run python -m actors.spawner.bundle")
        return
    BUNDLE.parent.mkdir(parents=True, exist_ok=True)
    BUNDLE.write_text(text)


if __name__ == "__main__":
    main()
