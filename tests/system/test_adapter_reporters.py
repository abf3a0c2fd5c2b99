"""The reporters of a JavaScript project's configuration work beside ours, and what an event may hold reaches us whole."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from strobe.model.testing import TestStatus
from tests.harness.all_suites import PYTEST, SUITES
from tests.harness.suites import Bench, Suite, bench

JAVASCRIPT = {one.framework: one for one in SUITES if "node" in one.needs}
OWN = {
    "vitest": {
        "vitest.config.mjs": "export default { test: { reporters: ['default', ['junit', { outputFile: 'own.xml' }], ['./own.ts', { to: 'own.log' }]] } }",
        "own.ts": "import { appendFileSync } from 'node:fs'\nexport default class {\n  constructor(private options: { to: string }) {}\n"
        "  onInit() { appendFileSync(this.options.to, 'began\\n') }\n  onTestRunEnd() { appendFileSync(this.options.to, 'ended\\n') }\n}\n",
    },
    "jest": {
        "jest.config.js": "module.exports = { reporters: ['default', ['<rootDir>/own.js', { to: 'own.log' }]] }",
        "own.js": "const fs = require('node:fs')\nmodule.exports = class {\n  constructor(config, options) { this.to = options.to }\n"
        "  onRunStart() { fs.appendFileSync(this.to, 'began\\n') }\n  onTestFileResult(test, result) { this.tests = result.testResults.length }\n"
        "  onRunComplete() { fs.appendFileSync(this.to, 'ended\\n'); fs.writeFileSync('own.xml', `<testsuites tests='${this.tests}'/>`) }\n}\n",
    },
    "playwright": {
        "playwright.config.mjs": "export default { reporter: [['junit', { outputFile: 'own.xml' }], ['./own.mjs', { to: 'own.log' }]] }",
        "own.mjs": "import { appendFileSync } from 'node:fs'\nexport default class {\n  constructor(options) { this.to = options.to }\n"
        "  onBegin() { appendFileSync(this.to, 'began\\n') }\n  onEnd() { appendFileSync(this.to, 'ended\\n') }\n}\n",
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def node_there() -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.full if name == "playwright" else []) for name in OWN])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    made = bench(JAVASCRIPT[request.param], tmp_path, "suite")
    for name, text in OWN[request.param].items():
        (made.root / name).write_text(text)
    return made


def test_reporters_of_the_configuration_work_beside_ours(at: Bench) -> None:
    book = at.run().book
    assert book.count(TestStatus.PASSED) == 4 and book.count(TestStatus.FAILED) == 1 and not book.errors, book
    assert (at.root / "own.log").read_text() == "began\nended\n"
    assert "<testsuites" in (at.root / "own.xml").read_text()


def test_a_reporter_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    at = bench(JAVASCRIPT["vitest"], tmp_path, "suite")
    (at.root / "vitest.config.mjs").write_text("export default { test: { reporters: ['./is-not-there.mjs'] } }")
    book = at.run().book
    assert book.count(TestStatus.PASSED) == 4
    (error,) = book.errors
    assert "./is-not-there.mjs" in error


HALF = {
    "vitest": "import { test } from 'vitest'\ntest('half \\ud83d', () => { throw new Error('bad \\udcff' + 'x'.repeat(2e6)) })\n",
    "jest": "test('half \\ud83d', () => { throw new Error('bad \\udcff' + 'x'.repeat(2e6)) })\n",
    "mocha": "it('half \\ud83d', () => { throw new Error('bad \\udcff' + 'x'.repeat(2e6)) })\n",
    "node:test": "import test from 'node:test'\ntest('half \\ud83d', () => { throw new Error('bad \\udcff' + 'x'.repeat(2e6)) })\n",
    "playwright": "import { test } from '@playwright/test'\ntest('half \\ud83d', () => { throw new Error('bad \\udcff' + 'x'.repeat(2e6)) })\n",
}


@pytest.mark.parametrize("suite", [pytest.param(JAVASCRIPT[name], id=name, marks=[pytest.mark.full] if JAVASCRIPT[name].slow else []) for name in HALF])
def test_half_of_a_character_and_a_large_message(suite: Suite, tmp_path: Path) -> None:
    """Half of a surrogate pair is no text that JSON's readers take: the whole event would be lost, and with it the failure."""
    at = bench(suite, tmp_path, "empty")
    (at.root / suite.sets["suite"][0]).write_text(HALF[suite.framework])
    outcome = at.run()
    (failure,) = outcome.book.failures()
    assert failure.name == "half \ufffd" and failure.message.startswith("bad \ufffdxxx") and not outcome.book.errors
    assert max(len(str(event)) for event in outcome.events) < 300_000
    alone = at.run(at.adapter.rerun(at.project, at.request(), failure.name)).book
    assert [case.status.value for case in alone.tests.values()] == ["failed"]


def test_half_of_a_character_in_python(tmp_path: Path) -> None:
    at = bench(PYTEST, tmp_path, "empty")
    (at.root / "test_half.py").write_text("def test_half():\n    raise ValueError('bad \\udcff ☃')\n")
    (failure,) = at.run().book.failures()
    assert failure.message == "ValueError: bad ? ☃" and failure.line == 2


def test_a_session_that_the_project_ends(tmp_path: Path) -> None:
    """No project without tests: pytest says by its status that somebody stopped it."""
    at = bench(PYTEST, tmp_path, "suite")
    (at.root / "conftest.py").write_text("import pytest\ndef pytest_collection_modifyitems():\n    pytest.exit('no data base here')\n")
    book = at.run().book
    assert book.no_tests is None and not book.tests
    assert any("status 2" in error and "no data base here" in error for error in book.errors), book


def test_a_runner_that_ends_as_if_all_were_well(tmp_path: Path) -> None:
    """Tests behind it never ran, though the status says that all is well."""
    at = bench(JAVASCRIPT["mocha"], tmp_path, "suite")
    (at.root / "a.spec.cjs").write_text("it('quick', () => {})\nafterEach(() => process.exit(0))\n")
    book = at.run(at.request(command="mocha *.spec.cjs")).book
    assert any("before it said that its tests were through" in error for error in book.errors) or book.crash is not None, book


def test_rerun_commands_keep_what_the_script_needs(tmp_path: Path) -> None:
    """Its options and variables; not its reporters, which may serve pages."""
    at = bench(JAVASCRIPT["mocha"], tmp_path, "suite")
    (at.root / "needed file.cjs").write_text("global.needed = process.env.NEEDED\n")
    script = "NEEDED='a b' mocha -R dot -r './needed file.cjs' *.spec.cjs"
    (at.root / "package.json").write_text(json.dumps({"scripts": {"test": script}, "devDependencies": {"mocha": "*"}}))
    (failure,) = at.run().book.failures()
    assert failure.rerun_command == "NEEDED='a b' npx mocha -r './needed file.cjs' suite.spec.cjs -g '^math fails here$'"
