"""`main(ActorClass)`: the whole of an actor's __main__."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import faulthandler
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Final

from strobe import paths
from strobe.runtime.actor import EX_SOFTWARE, OUTLIVE_SUPERVISOR, Actor, Seat
from strobe.runtime.log import log_name, open_log

PR_SET_PDEATHSIG: Final = 1
STARTS_PROGRAMS: Final = frozenset({"session", "spawner"})  # whose limits targets inherit: theirs must be the user's


def main(actor: type[Actor]) -> None:
    """Runs `actor` until it ends; never returns."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)  # all stacks to stderr, which the supervisor put into logs/<actor>.stderr
    seat = _seat(actor.role)
    die_with_supervisor(actor.role, seat.supervisor_pid)
    if actor.role not in STARTS_PROGRAMS:
        leave_no_core()
    status = asyncio.run(_live(actor, seat))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # the interpreter's own teardown takes 160 ms and adds nothing: stopping() has closed what must be closed


def _seat(role: str) -> Seat:
    parser = argparse.ArgumentParser(prog=f"python -m actors.{role}")
    parser.add_argument("--name", default=role)
    name = parser.parse_args().name
    generation = int(os.environ.get("STROBE_GENERATION", "0"))
    home = paths.home()
    return Seat(
        name=name, identity=os.environ.get("STROBE_IDENTITY", f"{name}~{generation}"), generation=generation, home=home,
        bus=os.environ.get("STROBE_BUS") or paths.bus_endpoint(home), supervisor_pid=int(os.environ.get("STROBE_SUPERVISOR", "0")),
        fell="STROBE_FELL" in os.environ,
    )  # fmt: skip


def leave_no_core() -> None:
    """What users' programs said and were given is in this process's memory. Not 0 but 1 byte: that stops core_pattern's programs too, core(5)."""
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (1 if most == resource.RLIM_INFINITY else min(1, most), most))


def die_with_supervisor(role: str, supervisor_pid: int) -> None:
    """The kernel kills stateless actors with the supervisor. Store and session watch it instead (Actor._watch_supervisor): they wait
    10 s for a successor. Whoever finds the supervisor already gone here ends: the signal would never come."""
    if role not in OUTLIVE_SUPERVISOR:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if supervisor_pid and os.getppid() != supervisor_pid:
        print("supervisor is gone", file=sys.stderr)  # noqa: T201
        os._exit(EX_SOFTWARE)


async def _live(actor: type[Actor], seat: Seat) -> int:
    path: Path = paths.logs_folder() / f"{log_name(seat.name)}.jsonl"
    log, log_file = open_log(path, actor=seat.identity)
    try:
        return await actor(seat, log, log_file).live()
    except TimeoutError:
        log.error("no supervisor answers", bus=seat.bus)
        return EX_SOFTWARE
    except Exception:
        log.exception("actor failed")
        return EX_SOFTWARE
