"""debug_test through a real client on suites that are programs: what the engine must do for their adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness.all_suites import CARGO, CATCH2, PYTEST
from tests.harness.mcp import Strobe, strobe_mcp
from tests.harness.suites import bench
from tests.harness.targets import require
from tests.system.test_debug_test import ended, progress, quick, run

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def strobe(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Strobe]:
    async with strobe_mcp(quick(tmp_path_factory.mktemp("programs") / "home")) as connected:
        yield connected


async def test_report_that_is_followed(strobe: Strobe, tmp_path: Path) -> None:
    """Catch2 tells of its tests in a file alone: the one that hangs is seen while it runs, with its place afterwards."""
    require("g++")
    at = bench(CATCH2, tmp_path, "hang")
    reply = await strobe.call("debug_test", projectRoot=str(at.root), timeout=3000)
    seen = await progress(strobe, reply["testRunId"], "never ends")
    assert seen["passed"] == 1 and seen["phase"] == "running"
    result = (await ended(strobe, reply))["result"]
    assert result["framework"] == "Catch2" and result["summary"]["stuck"] == 1 and result["summary"]["passed"] == 1


async def test_place_of_a_failure_in_a_monorepo(strobe: Strobe, tmp_path: Path) -> None:
    """Paths are of the project, though the run is of one of its folders."""
    require("cargo")
    at = bench(CARGO, tmp_path, "suite", folder="packages/one")
    result = (await run(strobe, at.root))["result"]
    (failure,) = result["failures"]
    assert (result["framework"], failure["file"]) == ("cargo test", "packages/one/src/lib.rs") and failure["line"] > 0
    assert failure["rerunCommand"].startswith("cd packages/one && cargo test")


async def test_python_of_the_path(strobe: Strobe, tmp_path: Path) -> None:
    at = bench(PYTEST, tmp_path, "suite")
    result = (await run(strobe, at.root, env={"PATH": at.path}))["result"]
    assert result["summary"] | {"durationMs": 0} == {"passed": 4, "failed": 1, "skipped": 1, "stuck": 0, "durationMs": 0}
    assert result["failures"][0]["suggestedTraces"][0] == "**.checked"
