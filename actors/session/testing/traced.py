"""A test run that is a session as well: the programs of its steps come in like children of the session's target, which does nothing but hold it open.

Each step has its keeper, as in a plain run, so that all that holds for one (output, exit status, limits, ends) holds here too. One step runs after the
other: the pool knows the output of one at a time.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path
from typing import Final

from actors.session.target import Target
from actors.session.testing.steps import LiveStep
from actors.session.tracing import Follower, Tracing
from strobe.errors import Code, StrobeError
from strobe.modules import maps_text, parse_mapped
from strobe.protocol.session import Launch, StdinOpen
from strobe.protocol.testing import RunTests

HOLDER: Final = "cat"  # waits for the end of its input
FLUSH_S: Final = 5.0
LOOK_AHEAD_S: Final = 10.0
OUTPUT: Final = "A test run: of its output, what traced programs write by libc's write, writev and pwrite is here; all of it goes to the run's result."


def holder(ask: RunTests) -> Launch:
    """Errors: VALIDATION_ERROR where the machine has no such program."""
    assert ask.traced is not None  # who calls has looked
    path = shutil.which(HOLDER, path=os.defpath)
    if path is None:
        raise StrobeError(Code.VALIDATION_ERROR, f"There is no `{HOLDER}` in {os.defpath}, which holds a traced run open.", "Run without tracePatterns.")
    return Launch(
        session_id=ask.run_id, command=path, args=[], cwd="/", project_root=ask.project_root, env={}, stdin=StdinOpen(open=True), pty=False,
        symbols_path=None, patterns=[], sampling=ask.traced.sampling, children=ask.traced.children.model_copy(update={"follow": True}), copy_output=True,
    )  # fmt: skip


class TracedSteps:
    """Of one run."""

    def __init__(self, target: Target, tracing: Tracing, follower: Follower | None) -> None:
        """`follower`: None after a takeover of a session that was being stopped."""
        self._target = target
        self._tracing = tracing
        self._follower = follower

    def want(self, ask: RunTests) -> None:
        """Before the first step. Errors: FRIDA_ATTACH_FAILED where nothing can be traced."""
        assert ask.traced is not None  # who calls has looked
        if not self._target.injected:
            what = f"Nothing can be traced here: {' '.join(self._target.capabilities.limitations)}"
            raise StrobeError(Code.FRIDA_ATTACH_FAILED, what, "Run without tracePatterns and watches, or ask `strobe-ctl doctor`.")
        journal = self._target.journal
        journal.probes.patterns = journal.probes.changed_patterns(ask.traced.patterns, [])
        journal.watches = list(ask.traced.watches)
        can = self._target.capabilities
        told = {"output_capture": "partial", "limitations": [*can.limitations, OUTPUT]}
        self._target.capabilities = journal.capabilities = can.model_copy(update=told)
        journal.save(self._target.folder)

    async def bring_in(self, live: LiveStep) -> None:
        """It runs on when this returns, traced where that can be."""
        try:
            if self._follower is not None:
                self._target.pool.set_streams(*live.streams)
                await self._look_ahead(live.pid)
                await asyncio.to_thread(self._follower.take_in, live.pid)
        finally:
            await asyncio.to_thread(live.go)

    async def _look_ahead(self, pid: int) -> None:
        """Its symbols, while it is held: at its gate it waits for 2 s only, which a large program takes when it is seen for the first time."""
        try:
            async with asyncio.timeout(LOOK_AHEAD_S):
                mapped = parse_mapped(maps_text(pid))
                program = str(Path(f"/proc/{pid}/exe").readlink())
                await self._tracing.resolving.in_new(self._target.journal.probes.patterns, mapped, program)
        except (StrobeError, OSError, TimeoutError):  # whether it can be traced is told by what comes after
            return

    async def settle(self) -> None:
        """What was recorded so far can be queried. A store that is away gets it later."""
        try:
            await asyncio.to_thread(self._target.collector.flush, FLUSH_S)
        except StrobeError as error:
            if error.code not in (Code.TIMEOUT, Code.ACTOR_UNAVAILABLE):
                raise

    def told(self, *, over: bool) -> list[str]:
        """About what was not traced."""
        if self._follower is None:
            return []
        hooks = [one["hooks"] for one in self._follower.shown() if "hooks" in one]
        patterns = self._target.journal.probes.patterns
        if over and patterns and not any(hooks):
            why = "matched a function of the programs that ran" if hooks else "could be tried: no program that ran was traced"
            return [*self._follower.told(), f"No pattern of {', '.join(patterns[:5])} {why}."]
        return self._follower.told()

    async def end(self) -> None:
        """The session ends with its target."""
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        keeper = self._target.keeper
        try:
            keeper.control.close_stdin()
        except StrobeError:  # its keeper is gone or does not answer
            if keeper.target_alive():
                os.kill(keeper.status().pid, signal.SIGKILL)
