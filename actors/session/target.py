"""All that one session holds of its target: the keeper, the pool, what is wanted and installed, and how it lives."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from actors.session.collector import Collector
from actors.session.journal import Journal
from actors.session.lifecycle import Life, Stimulus, step
from actors.session.probes import Installed
from strobe.core import Core
from strobe.errors import Code, StrobeError
from strobe.lanes.layout import HookFlag
from strobe.lanes.pool import Pool
from strobe.launch.keeper import Keeper
from strobe.model.probe import Module
from strobe.model.sampling import SampledFunction, SamplingLimits, by_function
from strobe.model.session import Capabilities
from strobe.modules import mapped_modules, parse_maps
from strobe.protocol.base import Ask

TYPES_PREFIX: Final = "types-"
SAMPLED_SHOWN: Final = 50


class Asker(Protocol):
    """What the session's parts need of the actor: to ask others."""

    async def ask(self, to: str, message: Ask, *, deadline_s: float = 5.0, cause: str | None = None) -> Any: ...


@dataclass
class Target:
    session_id: str
    folder: Path
    journal: Journal
    keeper: Keeper
    pool: Pool
    collector: Collector
    capabilities: Capabilities
    life: Life = field(default_factory=Life)
    crash: dict[str, Any] | None = None
    types_told: set[str] = field(default_factory=set)
    core: Core | None = None  # it is a core dump, not a process

    @property
    def pid(self) -> int:
        if self.life.pid is None:
            raise StrobeError(Code.PROCESS_EXITED, "The target has not started.", "Launch it first.")
        return self.life.pid

    @property
    def injected(self) -> bool:
        return self.journal.recorder != "none"

    def took(self, stimulus: Stimulus) -> Life:
        self.life = step(self.life, stimulus)
        return self.life

    def output_bytes(self) -> dict[str, int]:
        copied = int(self.pool.header["copy_output"])
        out, err = self.pool.header["stream_bytes"].tolist() if copied else self.keeper.status().stream_bytes
        return {"stdout": out, "stderr": err}

    def set_hook(self, hook_id: int, flags: HookFlag) -> None:
        """Takes effect at the next call: writers read the flags each time."""
        self.pool.hooks[hook_id]["flags"] = int(flags)

    def set_hooks(self, item: Installed, flags: HookFlag) -> None:
        for hook_id in (item.hook.id, *item.earlier):
            self.set_hook(hook_id, flags)

    def copy_flags(self, from_id: int, to_id: int) -> None:
        """Before the second hook takes the first one's place."""
        for name in ("flags", "sample_period"):
            self.pool.hooks[to_id][name] = self.pool.hooks[from_id][name]

    def announce_types(self, types: dict[str, bytes]) -> None:
        """To the store before hooks that name them; kept in the folder for a successor of this process."""
        fresh = {key: body for key, body in types.items() if key not in self.types_told}
        for key, body in fresh.items():
            (self.folder / f"{TYPES_PREFIX}{key}").write_bytes(body)
        self.types_told |= fresh.keys()
        if fresh:
            self.collector.announce_types(fresh)

    def limits(self) -> SamplingLimits:
        return self.journal.sampling.within(self.journal.budget)

    def sampled(self) -> list[SampledFunction]:
        """The functions of which not all calls are recorded, or were not."""
        hooks = ((hook_id, item.hook.place.function) for item in self.journal.probes.installed.values() for hook_id in (item.hook.id, *item.earlier))
        rows = ((name, self.pool.hooks[hook_id]) for hook_id, name in hooks)
        return by_function((name, 1 / max(int(row["sample_period"]), 1), int(row["left_out"])) for name, row in rows)[:SAMPLED_SHOWN]

    def modules(self) -> list[Module]:
        """What is mapped. Errors: PROCESS_EXITED."""
        return mapped_modules(self.require_running()) if self.core is None else parse_maps(self.core.maps())

    def require_running(self) -> int:
        """The pid. Errors: PROCESS_EXITED with how it ended."""
        if self.life.target_gone or not self.keeper.target_alive():
            how = f"signal {self.life.signal}" if self.life.signal else f"exit code {self.life.exit_code}" if self.life.exit_code is not None else "just now"
            what = f"The target of {self.session_id} has ended ({how})."
            raise StrobeError(Code.PROCESS_EXITED, what, "Query what it did, or set patterns without sessionId and launch it again.", value=self.session_id)
        return self.pid
