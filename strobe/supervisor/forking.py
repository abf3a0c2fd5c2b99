"""The supervisor's side of the template (template.py)."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import BinaryIO, Final

from strobe import paths
from strobe.runtime.child import Child
from strobe.runtime.log import Logger
from strobe.supervisor.private import open_private
from strobe.supervisor.template import READY, REQUEST_BYTES_MAX
from strobe.supervisor.topology import Role

READY_S: Final = 10.0
FORK_S: Final = 2.0  # it takes milliseconds
REST_S: Final = 30.0  # after one that failed
POLL_S: Final = 0.01
PADDING: Final = "-" * 1024  # what it forks is to have room for a title
# Threads of numpy's would not be there after a fork.
ENVIRONMENT: Final = {"OPENBLAS_NUM_THREADS": "1"}


class Template:
    """For those of `roles` that it imports something for. Where it is not there, or not yet, processes are started the long way."""

    def __init__(self, roles: Sequence[Role], environment: Mapping[str, str], log: Logger) -> None:
        self._modules = [name for role in roles if not role.imported_late for name in role.imports]
        self._late = [name for role in roles if role.imported_late for name in role.imports]
        self._environment = environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._ready = False
        self._has_late = False
        self._rests_until = 0.0

    def start(self) -> None:
        """Unless it runs, or has just failed."""
        if self._process is not None or not self._modules or time.monotonic() < self._rests_until:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-P", "-m", "strobe.supervisor.template", str(theirs.fileno()), PADDING, *self._modules]
        with theirs, open_private(paths.logs_folder() / "template.stderr") as output:
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=[theirs.fileno()], start_new_session=True,
                    cwd=paths.home(), env={**self._environment, **ENVIRONMENT},
                )  # fmt: skip
            except OSError as error:
                ours.close()
                self._fails(f"cannot be started: {error}")
                return
        self._link = ours
        self._ready = self._has_late = False

    def has(self, role: Role) -> bool:
        return bool(role.imports) and (self._has_late or not role.imported_late)

    def import_late(self) -> None:
        """For when nobody waits for anything: it forks nothing for two seconds."""
        if self._has_late or not self._late or not self._is_ready():
            return
        assert self._link is not None
        try:
            self._link.settimeout(FORK_S)
            self._link.send(json.dumps({"modules": self._late}).encode())
        except OSError as error:
            self._fails(f"imports no more: {error!r}")
            return
        self._ready, self._has_late = False, True

    async def wait_ready(self) -> bool:
        """Whether it can fork: at once where none was started."""
        until = time.monotonic() + READY_S
        while not self._is_ready() and self._link is not None:
            if time.monotonic() > until:
                self._fails(f"not ready in {READY_S:g} s")
            await asyncio.sleep(POLL_S)
        return self._link is not None

    def _is_ready(self) -> bool:
        if self._link is None or self._ready:
            return self._ready
        try:
            said = self._link.recv(len(READY), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            said = str(error).encode()
        if said == READY:
            self._ready = True
        else:
            self._fails("ended while it started; see template.stderr")
        return self._ready

    def fork(self, module: str, arguments: Sequence[str], environment: Mapping[str, str], output: BinaryIO) -> Child | None:
        """A child of this process that runs `python -m module arguments`; None: it has to be started in another way."""
        if not self._is_ready():
            return None
        assert self._link is not None
        changes: dict[str, str | None] = {name: value for name, value in environment.items() if os.environ.get(name) != value}
        changes |= {name: environment.get(name) for name in ENVIRONMENT}
        request = json.dumps({"module": module, "arguments": list(arguments), "environment": changes}).encode()
        if len(request) > REQUEST_BYTES_MAX:
            return None
        try:
            self._link.settimeout(FORK_S)
            socket.send_fds(self._link, [request], [output.fileno()])
            answer = self._link.recv(32)
            return Child(int(answer))
        except (OSError, ValueError) as error:
            self._fails(f"forks no more: {error!r}")
            return None

    def _fails(self, why: str) -> None:
        self._log.error("template failed", why=why)
        self._rests_until = time.monotonic() + REST_S
        self.close()

    def close(self) -> None:
        """Ends it. What it has forked lives on."""
        if self._link is not None:
            self._link.close()
            self._link = None
        self._ready = False
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
