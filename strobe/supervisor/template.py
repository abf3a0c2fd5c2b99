"""The process that sessions' processes are forked from: `python -P -m strobe.supervisor.template FD PADDING MODULE…`.

It has imported what they import, which costs an interpreter that starts anew a second of processor. It runs nothing: one thread, no event loop, no
socket but the one to its supervisor, with which it ends. What it forks is the supervisor's child: its own child leaves it to the next subreaper (prctl(2)).

A request: JSON {module, arguments, environment: {name: value or null}} with the file for stdout and stderr; the answer is the pid. Or {modules}, which
are imported too; the answer is "ready", as at the start.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import runpy
import socket
import sys
import time
import traceback
from typing import Any, Final

from strobe.runtime.title import set_title

READY: Final = b"ready"
REQUEST_BYTES_MAX: Final = 64 << 10
ADOPTED_S: Final = 5.0


def main(arguments: list[str]) -> None:
    link = socket.socket(fileno=int(arguments[0]))
    set_title("strobe: template of sessions")
    supervisor = os.getppid()
    _load(arguments[2:], link)
    while True:
        message, files, _, _ = socket.recv_fds(link, REQUEST_BYTES_MAX, 1)
        if not message:
            os._exit(0)
        request = json.loads(message)
        if "modules" in request:
            _load(request["modules"], link)
            continue
        link.send(str(_fork(request, files[0], link, supervisor)).encode())
        os.close(files[0])


def _load(modules: list[str], link: socket.socket) -> None:
    for name in modules:
        importlib.import_module(name)
    if len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208
        sys.exit(f"after {modules} there is a second thread: what it holds would stay held in what is forked")
    gc.collect()
    gc.freeze()  # what is never looked at is never copied
    link.send(READY)


def _fork(request: dict[str, Any], output: int, link: socket.socket, supervisor: int) -> int:
    told, tells = os.pipe()
    between = os.fork()
    if between == 0:
        if (pid := os.fork()) == 0:
            _become(request, output, (link.fileno(), told, tells), supervisor)
        os.write(tells, str(pid).encode())
        os._exit(0)
    os.close(tells)
    pid = int(os.read(told, 32))
    os.close(told)
    os.waitpid(between, 0)
    return pid


def _become(request: dict[str, Any], output: int, files: tuple[int, ...], supervisor: int) -> None:
    """The forked process's whole life, as if the interpreter had been started for it."""
    status = 1
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        for file in (output, *files):
            os.close(file)
        for name, value in request["environment"].items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        set_title(sys.executable, "-P", "-m", request["module"], *request["arguments"])
        until = time.monotonic() + ADOPTED_S
        while os.getppid() != supervisor and time.monotonic() < until:
            time.sleep(0.0002)
        sys.argv = [request["module"], *request["arguments"]]
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 (as the interpreter does)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    faulthandler.enable()
    main(sys.argv[1:])
