"""Why a target never ran, in words."""

from __future__ import annotations

import errno
import os

from strobe.errors import Code, StrobeError
from strobe.launch.page import KeeperStatus
from strobe.launch.request import Launch, Watch
from strobe.launch.status import LaunchStage

_EXEC: dict[int, tuple[str, str]] = {
    errno.ENOENT: ("{path} is missing, or the interpreter or loader that it names is", "Check the path, and its first line if it is a script."),
    errno.EACCES: ("{path} may not be executed", "Make it executable (chmod +x), or choose a file that is."),
    errno.ENOEXEC: ("{path} is not a program this machine can run", "Launch its interpreter with the file as argument, or build it for this machine."),
    errno.E2BIG: ("The arguments and environment are too long for the system", "Pass less."),
    errno.ETXTBSY: ("{path} is being written", "Launch it once the build is done."),
    errno.EISDIR: ("{path} is a directory", "Choose the program in it."),
    errno.ELOOP: ("{path} is a loop of links", "Give the program's real path."),
}
_STAGES = {
    LaunchStage.READ_LAUNCH: "reading what to launch",
    LaunchStage.PIPES: "making pipes",
    LaunchStage.FORK: "starting a process",
    LaunchStage.TRACE: "holding the new process at its first instruction",
    LaunchStage.EXEC: "starting the program",
    LaunchStage.WATCH: "looking at the process",
}


def launch_error(launch: Launch, status: KeeperStatus) -> StrobeError:
    """For a status of state FAILED."""
    if status.stage is LaunchStage.CHDIR:
        what = f"The working directory {launch.cwd} cannot be entered: {os.strerror(status.errno)}."
        return StrobeError(Code.VALIDATION_ERROR, what, "Choose a directory that exists.", value=launch.cwd)
    if status.stage is LaunchStage.EXEC and status.errno in _EXEC:
        what, step = _EXEC[status.errno]
        return StrobeError(Code.VALIDATION_ERROR, f"{what.format(path=launch.path)}.", step, value=launch.path)
    doing = _STAGES.get(status.stage, "launching")
    return StrobeError(
        Code.VALIDATION_ERROR, f"{launch.path}: {doing} failed: {os.strerror(status.errno)}.", "Correct the cause and launch again.", value=launch.path
    )


def watch_error(watch: Watch, status: KeeperStatus) -> StrobeError:
    """For a status of state FAILED of a keeper that was to watch a process."""
    if status.errno == errno.ESRCH:
        return StrobeError(Code.PROCESS_EXITED, f"Process {watch.pid} has ended.", "Find the pid of the one that runs now.", value=watch.pid)
    doing = _STAGES.get(status.stage, "watching")
    what = f"Process {watch.pid} cannot be watched: {doing} failed: {os.strerror(status.errno)}."
    return StrobeError(Code.VALIDATION_ERROR, what, "Correct the cause and attach again.", value=watch.pid)
