"""Whether the kernel lets us trace a process: tried, without the process noticing."""

from __future__ import annotations

from actors.session.ptrace.threads import is_dead
from strobe import ptrace as calls
from strobe.errors import Code, StrobeError
from strobe.ptrace import run_as_tracer


def may_trace(pid: int) -> bool:
    """A seizure alone stops nobody, and the end of the thread that made it undoes it. Errors: PROCESS_EXITED."""

    def seize() -> bool:
        try:
            calls.ptrace(calls.SEIZE, pid)
        except PermissionError:
            return False
        except ProcessLookupError:
            raise StrobeError(Code.PROCESS_EXITED, f"Process {pid} has ended.", "Find the pid of the one that runs now.", value=pid) from None
        return True

    return run_as_tracer(seize) or is_dead(pid, pid)
