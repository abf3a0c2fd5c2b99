"""A session's life as a state machine: stimuli in, changes out, no I/O, no clock. Replayable from the stimuli it was given."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace

from strobe.model.session import SessionState

CRASH_SIGNALS = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS})


@dataclass(frozen=True)
class Started:
    """The target runs."""

    pid: int


@dataclass(frozen=True)
class Ended:
    """The root of the target tree is gone; `wait_status` as of wait(2), None where nobody knows it."""

    wait_status: int | None


@dataclass(frozen=True)
class StopAsked:
    """The caller ended the session. `alive`: the target goes on without us."""

    alive: bool


@dataclass(frozen=True)
class Drained:
    """Everything recorded and printed is committed."""


Stimulus = Started | Ended | StopAsked | Drained


@dataclass(frozen=True)
class Life:
    """What a session is at one moment. `over`: the session may be closed."""

    state: SessionState = SessionState.RUNNING
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    target_gone: bool = False
    stop_asked: bool = False
    drained: bool = False

    @property
    def over(self) -> bool:
        return self.drained and (self.target_gone or self.stop_asked)


def step(life: Life, stimulus: Stimulus) -> Life:
    """The next life. A stimulus that comes twice, or after the end, changes nothing."""
    match stimulus:
        case Started(pid):
            return replace(life, pid=pid) if life.pid is None else life
        case Ended(wait_status) if not life.target_gone:
            return _ended(life, wait_status)
        case StopAsked(alive) if not life.stop_asked:
            stopped = life.state in (SessionState.RUNNING, SessionState.PAUSED)
            return replace(life, stop_asked=True, state=SessionState.STOPPED if stopped and alive else life.state)
        case Drained():
            return replace(life, drained=True)
    return life


def _ended(life: Life, wait_status: int | None) -> Life:
    if wait_status is None:
        return replace(life, state=SessionState.EXITED, target_gone=True)
    if os.WIFSIGNALED(wait_status):
        number = os.WTERMSIG(wait_status)
        state = SessionState.CRASHED if number in CRASH_SIGNALS else SessionState.EXITED
        return replace(life, state=state, signal=number, target_gone=True)
    return replace(life, state=SessionState.EXITED, exit_code=os.WEXITSTATUS(wait_status), target_gone=True)
