"""What a session answers. Its actor name is `session:<session id>`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from strobe.model.base import Noun
from strobe.model.probe import Refused
from strobe.model.sampling import Budget, SampledFunction, SamplingLimits
from strobe.model.session import Capabilities, ChildrenPolicy
from strobe.model.watch import ActiveWatch, Watch
from strobe.protocol.base import Ask, Done, Reply


class StdinOpen(Reply):
    open: Literal[True]


class LaunchReply(Reply):
    pid: int
    capabilities: Capabilities
    pending_patterns_applied: int | None = None
    next_steps: list[str]
    warnings: list[str] = []


class Attach(Noun):
    """A process that runs already. Its start ticks tell it from another that gets its pid."""

    pid: int
    start_ticks: int


class Launch(Ask):
    """Starts the target, or attaches to it: then `command`, `args` and `cwd` are what it was started with. Answered once it runs (or has already
    ended). Errors: PROCESS_EXITED, VALIDATION_ERROR, FRIDA_ATTACH_FAILED, SESSION_EXISTS."""

    TYPE: ClassVar = "session.launch"
    REPLY: ClassVar[type[Reply]] = LaunchReply
    session_id: str
    command: str  # absolute path
    args: list[str]
    cwd: str
    project_root: str
    env: dict[str, str]  # whole environment of the target
    stdin: str | StdinOpen | None
    pty: bool
    copy_output: bool = False  # by the recorder, of all processes that have it: none of them is read by the session's keeper
    attach: Attach | None = None
    core_file: str | None = None  # absolute path: nothing is started, the dump is opened
    symbols_path: str | None
    patterns: list[str]  # pending ones
    watches: list[Watch] = []  # pending ones
    serialization_depth: int = 3
    sampling: SamplingLimits = SamplingLimits()  # of the settings
    budget: Budget | None = None
    children: ChildrenPolicy = ChildrenPolicy()  # of the settings


class TraceReply(Reply):
    mode: Literal["runtime"]
    active_patterns: list[str]
    hooked_functions: int
    typed_functions: int
    matched_functions: int | None
    active_watches: list[ActiveWatch]
    warnings: list[str]
    refused: list[Refused]
    event_limit: int
    sampling: list[SampledFunction] = []
    status: str


class Trace(Ask):
    """One difference to the set of patterns. With neither add nor remove: the present state."""

    TYPE: ClassVar = "session.trace"
    REPLY: ClassVar[type[Reply]] = TraceReply
    add: list[str]
    remove: list[str]
    add_watches: list[Watch] = []
    remove_watches: list[str] = []
    serialization_depth: int | None = None
    project_root: str | None = None
    event_limit: int
    sampling: SamplingLimits = SamplingLimits()  # of the settings
    budget: Budget | None = None


class StatusReply(Reply):
    """Live state; camelCase fields as debug_session status returns them."""

    status: str
    pid: int | None
    exit_code: int | None
    signal: int | None
    patterns: list[str]
    hooked_functions: int
    output_bytes: dict[str, int]
    losses: dict[str, int]
    sampling: list[SampledFunction] = []
    capabilities: Capabilities
    crash: dict[str, Any] | None = None
    processes: list[dict[str, Any]] = []  # children that became other programs: {pid, parent, command, followed, whyNot, hooks, alive, exit}
    warnings: list[str] = []


class SessionStatus(Ask):
    TYPE: ClassVar = "session.status"
    REPLY: ClassVar[type[Reply]] = StatusReply


class Flush(Ask):
    """Answered when everything recorded and printed before is committed by the store."""

    TYPE: ClassVar = "session.flush"
    REPLY: ClassVar[type[Reply]] = Done


class StopReply(Reply):
    status: str
    exit_code: int | None
    signal: int | None
    target_alive: bool


class Stop(Ask):
    """Detach cleanly (bytes restored), or kill the tree; drain; wait for the last acknowledgement."""

    TYPE: ClassVar = "session.stop"
    REPLY: ClassVar[type[Reply]] = StopReply
    kill: bool


class Input(Ask):
    """Bytes for a stdin that was opened with {"open": true}; `close` sends EOF after them."""

    TYPE: ClassVar = "session.input"
    REPLY: ClassVar[type[Reply]] = Done
    data: bytes
    close: bool = False


class MemoryTarget(Noun):
    """One place: `variable`, an expression of strobe.expression; or `address` with a `type` (or `size`, for bytes). `value`: what to write."""

    variable: str | None = None
    address: int | None = None
    type: str | None = None
    size: int | None = None
    thread_id: int | None = None  # whose thread-locals; the main thread's
    value: Any = None


class MemoryReply(Reply):
    """One result per target, in their order, as debug_memory shows it: {target, type, address, value, …} or {target, error, nextStep}."""

    results: list[dict[str, Any]]
    warnings: list[str] = []


class ReadMemory(Ask):
    """Without a pause or a hook. `tokens`: about so much may all values together take in a reply; they are shown shorter to fit. Errors: PROCESS_EXITED."""

    TYPE: ClassVar = "session.read_memory"
    REPLY: ClassVar[type[Reply]] = MemoryReply
    targets: list[MemoryTarget]
    depth: int = 1
    tokens: int = 4000


class WriteMemory(Ask):
    TYPE: ClassVar = "session.write_memory"
    REPLY: ClassVar[type[Reply]] = MemoryReply
    targets: list[MemoryTarget]
    tokens: int = 4000


class PollReply(MemoryReply):
    """`results`: the first sample's. The samples are `variable_snapshot` events whose data has this `poll`."""

    poll: str
    interval_ms: int  # as asked
    achieved_interval_ms: float  # what one sample takes bounds it from below
    expected_samples: int


class PollMemory(Ask):
    """Samples at even times until `duration_ms` have passed or the target has ended; a last event has the figures. Errors: LIMIT_EXCEEDED."""

    TYPE: ClassVar = "session.poll_memory"
    REPLY: ClassVar[type[Reply]] = PollReply
    targets: list[MemoryTarget]
    interval_ms: int
    duration_ms: int
    depth: int = 1
    on_change: bool = False
    tokens: int = 4000
