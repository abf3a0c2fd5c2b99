"""The suites of JavaScript's frameworks: the same files for each, with another ending."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Final

from tests.harness import npm
from tests.harness.suites import Suite

NAMES: Final = {
    "adds": ("math > adds",), "fails": ("math > fails here",), "skipped": ("math > left out",), "pair": ("math > pair 1 2", "math > pair 3 4"),
    "prints": ("prints look-alikes",), "quick": ("quick",), "hangs": ("never ends",), "spins": ("spins",), "dies": ("dies",), "retried": ("fails once",),
    "odd": (
        "says \"hi\" and it's fine", "ünï ☃ 雪", "a [b] (c) {d} $1 ^*+?.|\\ x", "comma, semi; colon: and/slash", "is true when 3 > 2",
    ),
    "meet": ("meets on the left", "meets on the right"), "hooked": ("group > quick",),
}  # fmt: skip
NO_REASON: Final = {"reasons": "its way to leave a test out takes no reason"}


def installed(place: Path, root: Path) -> None:
    """What npm installed lies where a package of a monorepo finds it: in the project's folder."""
    del place
    if not (root / "node_modules").exists():
        (root / "node_modules").symlink_to(npm.node_modules())


def javascript(framework: str, folder: str, ending: str, parallel: str, fails: str, settings: str = "package.json", **more: Any) -> Suite:
    """`fails`: the text of the line that fails."""
    sets: dict[str, tuple[str, ...]] = {role: (f"{role}{ending}",) for role in ("suite", "names", "hang", "spin", "crash", "retried", "late", "after")}
    sets |= {"broken": (f"broken{ending}", f"suite{ending}"), "empty": (), "parallel": (f"left{ending}", f"right{ending}")}
    return Suite(
        framework, folder, (settings,), sets, NAMES, failing=(f"suite{ending}", fails), no_match=("math > adss", "adds"), trace="checked",
        **{
            "parallel": parallel, "file": f"names{ending}", "prepare": installed, "breaks_all": False, "fails_with": "4", "cannot": NO_REASON,
            "needs": ("node", "npm"), **more,
        },
    )  # fmt: skip


JAVASCRIPT: Final = (
    javascript("vitest", "vitest", ".test.ts", "vitest run --maxWorkers=2", "expect(value).toBe(3)", slow=True),
    javascript("jest", "jest", ".test.js", "jest --maxWorkers=2 --cacheDirectory=.cache", "expect(value).toBe(3)", slow=True),
    javascript(
        "node:test", "node_test", ".test.mjs", "node --test --test-concurrency=2 *.test.mjs", "assert.strictEqual(value, 3)",
        # Each file is a process of its own, and that hangs.
        after_late={"quick": "passed", "(after its last test)": "stuck"}, cannot={**NO_REASON, "retried": "it has no retries"},
    ),
    javascript(
        "mocha", "mocha", ".spec.cjs", "mocha --parallel --jobs 2 --timeout 30000 *.spec.cjs", "assert.strictEqual(value, 3)", breaks_all=True,
    ),
    javascript(
        "playwright", "playwright", ".spec.ts", "playwright test --workers=2", "expect(value).toBe(3)", breaks_all=True, slow=True,
        cannot={**NO_REASON, "late": "its workers are ended after their tests", "after": "its hooks have the test's limit, and are told as its failure"},
    ),
    javascript(
        "bun test", "bun", ".test.ts", "bun test --parallel=2", "expect(value).toBe(3)", brings=functools.partial(npm.program, "bun"),
        cannot={**NO_REASON, "hooks": "it tells nothing of hooks: the run hangs with no test"},
    ),
    javascript(
        "deno test", "deno", "_test.ts", "deno test --no-check -A --parallel", "throw new Error(`${value} is not 3`)", settings="deno.json", breaks_all=True,
        dies_by="SIGKILL", brings=functools.partial(npm.program, "deno"),
        cannot={
            **NO_REASON, "retried": "it has no retries", "apart": "its workers are threads", "late": "it ends, or fails a test that leaves a timer",
            "after": "it has no hooks of files",
        },
    ),
)  # fmt: skip
