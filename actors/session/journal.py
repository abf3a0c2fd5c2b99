"""What a session must still know after its process was killed: written whole, atomically, before each change takes effect.

One file `session` (msgpack) in the target folder. Everything else is elsewhere: output and status with the keeper, records in the
pool, positions in the store.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]

from actors.session.probes import Installed, Probes
from strobe.errors import Code, StrobeError
from strobe.model.probe import Hook, Plan, Refused
from strobe.model.sampling import Budget, SamplingLimits
from strobe.model.session import Capabilities
from strobe.model.watch import Watch
from strobe.protocol.session import Launch
from strobe.protocol.spawner import Internal, Patch

VERSION = 1
DEFAULT_DEPTH = 3
Dump = tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any] | None]  # of hook, patch and base


@dataclass
class Journal:
    """The session's memory. `internal` are the recorder's own patches (unwinder, write, sigaction)."""

    launch: Launch
    probes: Probes = field(default_factory=Probes)
    recorder: str = "none"  # none, native, fallback
    remote: int | None = None  # strobe_remote in the target
    depth: int = DEFAULT_DEPTH
    watches: list[Watch] = field(default_factory=list)
    internal: list[Patch] = field(default_factory=list)
    internals: list[Internal] = field(default_factory=list)  # what it wants to see, wherever that is defined
    sees_loading: bool = False  # it tells of libraries that come and go
    sampling: SamplingLimits = field(default_factory=SamplingLimits)  # of the settings
    budget: Budget | None = None
    project_root: str = ""
    stopped: bool = False
    running: bool = False  # it was continued: its launch came to the end
    capabilities: Capabilities | None = None
    _dumped: dict[int, tuple[Installed, Dump]] = field(default_factory=dict, repr=False)  # by address: as of the last save

    def save(self, folder: Path) -> None:
        content = msgpack.packb(self._to_wire())
        temporary = folder / "session.new"
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
        temporary.replace(folder / "session")

    @classmethod
    def load(cls, folder: Path) -> Journal:
        """Errors: SESSION_NOT_FOUND when there is none (the session died before it launched anything)."""
        try:
            wire = msgpack.unpackb((folder / "session").read_bytes(), strict_map_key=False)
        except FileNotFoundError:
            raise StrobeError(Code.SESSION_NOT_FOUND, f"Session {folder.name} has not launched anything.", "Launch it again.", value=folder.name) from None
        return cls._from_wire(wire)

    def _to_wire(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "launch": self.launch.model_dump(),
            "patterns": self.probes.patterns,
            "nextId": self.probes.next_id,
            "installed": self._installed(),
            "refused": [(address, item.model_dump()) for address, item in self.probes.refused.items()],
            "recorder": self.recorder,
            "remote": self.remote,
            "depth": self.depth,
            "watches": [watch.model_dump() for watch in self.watches],
            "internal": [patch.model_dump() for patch in self.internal],
            "seesLoading": self.sees_loading,
            "internals": [one.model_dump() for one in self.internals],
            "sampling": self.sampling.model_dump(),
            "budget": self.budget and self.budget.model_dump(),
            "projectRoot": self.project_root,
            "stopped": self.stopped,
            "running": self.running,
            "capabilities": self.capabilities.model_dump() if self.capabilities else None,
        }

    def _installed(self) -> list[tuple[Any, Any, bool, list[int], Any]]:
        """A change to a few of thousands costs what those few do: what was dumped is kept."""
        dumped: dict[int, tuple[Installed, Dump]] = {}
        for address, item in self.probes.installed.items():
            kept, dump = self._dumped.get(address, (None, None))
            if dump is None or kept is None or kept.hook is not item.hook or kept.patch is not item.patch or kept.base is not item.base:
                dump = (item.hook.model_dump(), item.patch.model_dump() if item.patch else None, item.base.model_dump() if item.base else None)
            dumped[address] = (replace(item), dump)
        self._dumped = dumped
        items = self.probes.installed
        return [(hook, patch, items[address].enabled, items[address].earlier, base) for address, (_, (hook, patch, base)) in dumped.items()]

    @classmethod
    def _from_wire(cls, wire: dict[str, Any]) -> Journal:
        probes = Probes(patterns=wire["patterns"], next_id=wire["nextId"])
        for hook_wire, patch_wire, enabled, earlier, base in wire["installed"]:
            hook = Hook.model_validate(hook_wire)
            patch = Patch.model_validate(patch_wire) if patch_wire else None
            probes.installed[hook.address] = Installed(hook, patch, enabled, earlier, Plan.model_validate(base) if base else None)
        probes.refused = {address: Refused.model_validate(item) for address, item in wire["refused"]}
        return cls(
            launch=Launch.model_validate(wire["launch"]),
            probes=probes,
            recorder=wire["recorder"],
            remote=wire["remote"],
            depth=wire["depth"],
            watches=[Watch.model_validate(watch) for watch in wire["watches"]],
            internal=[Patch.model_validate(item) for item in wire["internal"]],
            sees_loading=wire.get("seesLoading", False),
            internals=[Internal.model_validate(item) for item in wire.get("internals", ())],
            sampling=SamplingLimits.model_validate(wire.get("sampling", {})),
            budget=Budget.model_validate(wire["budget"]) if wire.get("budget") else None,
            project_root=wire["projectRoot"],
            stopped=wire["stopped"],
            running=wire["running"],
            capabilities=Capabilities.model_validate(wire["capabilities"]) if wire["capabilities"] else None,
        )
