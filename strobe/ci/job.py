"""One call of strobe-ci: run, look closer at what failed, report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from strobe.ci import github
from strobe.ci.flakes import Flaky, first_divergence, flaky_tests, merged, tally
from strobe.ci.gathered import Gathered
from strobe.ci.junit import junit_xml
from strobe.ci.link import Link, linked
from strobe.ci.progress import shown
from strobe.ci.report import outcome_lines, rerun_lines
from strobe.ci.suite import Outcome, Wanted, exit_status, run_suite
from strobe.ci.traced import PATTERNS, Rerun, TracingRefused, let_go, rerun_failures, run_traced
from strobe.errors import Code, StrobeError
from strobe.model.testing import Level
from strobe.render.plain import visible

FLAKES_COMPARED: Final = 5


@dataclass(frozen=True, slots=True)
class Options:
    project: Path
    framework: str | None
    level: Level | None
    test: str | None
    command: str | None
    timeout_ms: int | None
    repeat: int
    patterns: tuple[str, ...]
    traced: bool
    rerun_max: int
    rerun_s: float
    junit: Path | None
    evidence: Path | None
    quiet: bool
    argv: list[str]

    def wanted(self) -> Wanted:
        return Wanted(str(self.project), self.framework, self.level, self.test, self.command, self.timeout_ms)


class Job:
    """`on_github`: this log is read by GitHub Actions."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.on_github = os.environ.get("GITHUB_ACTIONS") == "true"
        self.reruns: list[Rerun] = []
        self.flaky: list[Flaky] = []
        self.outcomes: list[Outcome] = []

    def say(self, *lines: str) -> None:
        """Lines of the suite's making are no workflow commands."""
        with github.Guarded(on=self.on_github):
            for line in lines:
                print(visible(line), flush=True)


async def run_job(job: Job) -> int:
    """The exit status. Raises StrobeError: it could not be run."""
    options = job.options
    _check_writable(options)
    with Gathered(options.project) as gathered:
        async with linked(str(options.project), gathered.redactor) as link:
            await _repeat(job, link) if options.repeat > 1 else await _once(job, link)
            outcome = merged(job.outcomes)
            job.say(*outcome_lines(outcome))
            try:
                await _look_closer(job, link, outcome, gathered)
            finally:
                for session in [one.session_id for one in job.outcomes if one.session_id]:
                    await let_go(link, session)
        _report(job, outcome, gathered)
    return exit_status(outcome)


async def _once(job: Job, link: Link) -> None:
    with shown("tests", quiet=job.options.quiet) as watcher:
        job.outcomes.append(await run_suite(link, job.options.wanted(), watcher))


async def _repeat(job: Job, link: Link) -> None:
    options = job.options
    plain = options.wanted()
    wanted = replace(plain, traces=options.patterns or PATTERNS) if options.traced else plain
    for number in range(1, options.repeat + 1):
        with shown(f"run {number}/{options.repeat}", quiet=options.quiet) as watcher:
            try:
                outcome = await run_traced(link, wanted, watcher)
            except TracingRefused as refused:
                job.say(f"The runs are not traced: {refused}")
                wanted = plain
                outcome = await run_suite(link, wanted, watcher)
        job.outcomes.append(outcome)
        if outcome.result is None:
            break  # it cannot be run: not once, not often
    job.say(tally(job.outcomes))


async def _look_closer(job: Job, link: Link, outcome: Outcome, gathered: Gathered) -> None:
    options = job.options
    if len(job.outcomes) > 1:
        job.flaky = flaky_tests(job.outcomes)
        for flaky in job.flaky[:FLAKES_COMPARED]:
            await first_divergence(link, flaky, job.outcomes)
        for flaky in job.flaky:
            job.say(*flaky.lines())
        if options.evidence is not None:
            await _keep_runs(job, link, gathered)
        return

    async def keep(session_id: str) -> None:
        if options.evidence is not None:
            await gathered.keep(link, session_id)
        await let_go(link, session_id)

    if options.traced and options.rerun_max and (outcome.failed or outcome.stuck):
        job.reruns = await rerun_failures(link, options.wanted(), outcome, options.rerun_max, options.rerun_s, keep, job.say)
        job.say(*rerun_lines(job.reruns))


async def _keep_runs(job: Job, link: Link, gathered: Gathered) -> None:
    """The traces that say most: those that were compared."""
    for flaky in job.flaky:
        if flaky.divergence is not None:
            for name in ("failing", "passing"):
                await gathered.keep(link, flaky.divergence[name])


def _check_writable(options: Options) -> None:
    """Before an hour of tests, not after it."""
    for path in (options.junit, options.evidence):
        if path is not None and (path.is_dir() or not os.access(path.absolute().parent, os.W_OK)):
            what = f"{path} cannot be written."
            raise StrobeError(Code.VALIDATION_ERROR, what, "Name a file in a folder that exists and that you may write to.", value=str(path))


def _report(job: Job, outcome: Outcome, gathered: Gathered) -> None:
    options = job.options
    if options.junit is not None:
        options.junit.write_bytes(junit_xml(outcome))
    if options.evidence is not None:
        more = _more(job)
        digest, redacted = gathered.write(options.evidence.absolute(), outcome, options.argv, more)
        secrets = f", {redacted} secrets redacted" if redacted else ""
        job.say(f"Evidence: {options.evidence}{secrets}; its manifest's SHA-256 is {digest}.")
    if job.on_github:
        workspace = Path(os.environ.get("GITHUB_WORKSPACE", str(options.project))).resolve()
        for line in github.error_commands(outcome, options.project, workspace):
            print(line, flush=True)
    if (file := os.environ.get("GITHUB_STEP_SUMMARY")) is not None:
        github.append_summary(Path(file), github.summary(outcome, _closer(job.reruns, job.flaky)))


def _more(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if job.reruns:
        found["reruns.json"] = [
            {"test": one.test, "verdict": one.verdict, "tracePatterns": list(one.patterns), "sessionId": one.session_id, "message": one.message}
            for one in job.reruns
        ]
    if len(job.outcomes) > 1:
        runs = [{"testRunId": one.run_id, "sessionId": one.session_id, "exitStatus": exit_status(one)} for one in job.outcomes]
        found["flakes.json"] = {"runs": runs, "flaky": [one.told() for one in job.flaky]}
    return found


def _closer(reruns: Sequence[Rerun], flaky: Sequence[Flaky]) -> list[str]:
    lines = [f"- {github.inline(one.test)} {github.escaped_markdown(one.verdict)}" for one in reruns]
    if lines:
        lines = ["", "#### Run again, traced", "", *lines]
    return [*lines, *(line for one in flaky for line in (github.fenced(visible("\n".join(one.lines()))),))]
