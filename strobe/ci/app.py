"""The command's options, and the exit status: 0 all passed, 1 failures, 2 stuck, 3 could not run, 130 interrupted."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from strobe.ci.job import Job, Options, run_job
from strobe.errors import StrobeError

COULD_NOT_RUN = 3
INTERRUPTED = 130
app = typer.Typer(name="strobe-ci", add_completion=False, pretty_exceptions_enable=False)
LEVELS = ("unit", "integration", "e2e")


@app.command()
def run(
    project: Annotated[Path, typer.Argument(help="The project's folder.")] = Path(),
    framework: Annotated[str | None, typer.Option(help="Instead of the one that is recognised: pytest, cargo test, vitest …")] = None,
    level: Annotated[str | None, typer.Option(help="unit, integration or e2e.")] = None,
    test: Annotated[str | None, typer.Option(help="Only tests whose name contains this.")] = None,
    command: Annotated[str | None, typer.Option(help="The suite's own command line.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds that one test may take before it counts as stuck.", min=0.1, max=3600)] = None,
    repeat: Annotated[int, typer.Option(help="Run it so often, traced, and say what differs between runs that pass and runs that fail.", min=1, max=1000)] = 1,
    trace: Annotated[list[str] | None, typer.Option(help="Pattern to trace with --repeat; @usercode without one.")] = None,
    no_trace: Annotated[bool, typer.Option("--no-trace", help="No traced reruns of failures, and repeats without tracing.")] = False,
    rerun_max: Annotated[int, typer.Option(help="Failures that are run again, traced.", min=0, max=1000)] = 5,
    rerun_seconds: Annotated[float, typer.Option(help="Time for all of these.", min=1)] = 180,
    junit: Annotated[Path | None, typer.Option(help="JUnit XML goes to this file.")] = None,
    evidence: Annotated[Path | None, typer.Option(help="The evidence bundle goes to this file (zip).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only what came of it.")] = False,
) -> None:
    """Run a project's tests without a model, report them, and trace what fails.

    Exit status: 0 all passed, 1 failures, 2 stuck, 3 could not run; 130 interrupted.
    """
    if level is not None and level not in LEVELS:
        _fail(f"--level is {level!r}. It takes {', '.join(LEVELS)}.")
    if not project.is_dir():
        _fail(f"{project} is no folder. Give the project's.")
    options = Options(
        project=project.resolve(), framework=framework, level=cast(Literal["unit", "integration", "e2e"] | None, level), test=test, command=command,
        timeout_ms=None if timeout is None else round(timeout * 1000), repeat=repeat, patterns=tuple(trace or ()), traced=not no_trace, rerun_max=rerun_max,
        rerun_s=rerun_seconds, junit=junit, evidence=evidence, quiet=quiet, argv=["strobe-ci", *sys.argv[1:]],
    )  # fmt: skip
    sys.exit(_run(options))


def _run(options: Options) -> int:
    job = Job(options)
    try:
        return asyncio.run(_interruptible(job))
    except (StrobeError, KeyboardInterrupt, asyncio.CancelledError, BaseExceptionGroup) as raised:
        causes = list(_leaves(raised))
        error = next((one for one in causes if isinstance(one, StrobeError)), None)
        if error is not None:
            print(f"strobe-ci: {error.code}: {error.what}\n{error.next_step}", file=sys.stderr)
            return COULD_NOT_RUN
        if not all(isinstance(one, KeyboardInterrupt | asyncio.CancelledError) for one in causes):
            raise
        print("strobe-ci: interrupted; what it had started was ended.", file=sys.stderr)
        return INTERRUPTED


async def _interruptible(job: Job) -> int:
    """SIGTERM (a CI system gives up) ends it in order, as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None  # it is this coroutine
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    return await run_job(job)


def _leaves(raised: BaseException) -> Iterator[BaseException]:
    """The exceptions that a task group has put together."""
    if isinstance(raised, BaseExceptionGroup):
        for one in raised.exceptions:
            yield from _leaves(one)
    else:
        yield raised


def _fail(text: str) -> None:
    print(f"strobe-ci: {text}", file=sys.stderr)
    sys.exit(COULD_NOT_RUN)
