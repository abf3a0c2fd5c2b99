"""What a spawner answers. It injects the recorder and prepares code; the session writes that code and owns ptrace."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from strobe.model.base import Noun
from strobe.model.probe import Refused
from strobe.protocol.base import Ask, Done, Reply


class Write(Noun):
    """Bytes to put at an address of the target. `expected` is what is there now (for patches, also what to restore)."""

    address: int
    data: bytes
    expected: bytes | None = None


class Patch(Noun):
    """The 5-byte jump (or other window) at a function's first bytes. No thread may be inside (address, address+len) when written.

    A thread that is goes on in the thunk: the instruction at address + n is, relocated, at thunk + entries[n] (0: none starts there).
    """

    hook: int  # hook id; 0: the recorder's own (unwinder, write, sigaction)
    address: int
    data: bytes
    original: bytes
    thunk: int = 0
    entries: bytes = b""


class HookSpec(Noun):
    """`hook` and `entry`: the words of its thunk, of a hook that the recorder has registered already (`Prepare.slabs`)."""

    id: int
    address: int
    size: int
    function: str
    module: str
    plan: bytes
    hook: int = 0
    entry: int = 0


class Slab(Noun):
    """Executable memory in the target for thunks of functions near it."""

    address: int
    bytes: int


class Internal(Noun):
    """A function that the recorder must see: `every_module`: wherever it is defined, else in libc alone. `hook`, `entry`: words of its thunks."""

    symbol: str
    every_module: bool
    hook: int
    entry: int


class PrepareReply(Reply):
    """`writes` go in first (fresh memory, nobody runs it), then `patches` under stop-the-world."""

    writes: list[Write]
    patches: list[Patch]
    refused: list[Refused]
    refused_ids: list[int]
    recorder: str  # "native", "fallback" (Interceptor + CModule: already installed, no patches), "none"
    arm_address: int | None  # strobe_arm in the target
    remote_address: int | None = None  # strobe_remote in the target
    internals: list[Internal] = []
    sees_loading: bool = False  # the recorder sees libraries come and go (recorder_loading.c): one of `patches` is its hook for that
    detail: str | None = None

    @classmethod
    def nothing(cls, recorder: str) -> PrepareReply:
        """There was nothing to prepare."""
        return cls(writes=[], patches=[], refused=[], refused_ids=[], recorder=recorder, arm_address=None)


class RecorderReply(Reply):
    """`state`: none; ours, which another session may use; other, which nobody may (of another version of Strobe). Addresses are the target's."""

    state: Literal["none", "ours", "other"]
    arm_address: int | None = None
    remote_address: int | None = None
    internals: list[Internal] = []
    sees_loading: bool = False
    start: int = 0  # the recorder's mappings
    end: int = 0
    pool_path: str = ""  # as mapped: ends with " (deleted)" once its session has let go of it
    pool_bytes: int = 0  # what another pool may have at most


class FindRecorder(Ask):
    """The recorder that an earlier session left in a process. Nothing is entered or stopped. Errors: PROCESS_EXITED."""

    TYPE: ClassVar = "spawner.find_recorder"
    REPLY: ClassVar[type[Reply]] = RecorderReply
    pid: int


class Enter(Ask):
    """Attach to a target stopped at its first instruction, run it to its entry point, hold it there and load the recorder, while its symbols are
    looked up elsewhere. The next Prepare for this pid goes on from there; when none comes in time, the target is left as Prepare leaves it.

    Errors: FRIDA_ATTACH_FAILED, PROCESS_EXITED."""

    TYPE: ClassVar = "spawner.enter"
    REPLY: ClassVar[type[Reply]] = Done
    pid: int
    pool_path: str


class Prepare(Ask):
    """Attach, load the recorder once, prepare thunks for `hooks`, leave. A target that is stopped at its first instruction is left held
    at its entry point: the session continues it. Errors: FRIDA_ATTACH_FAILED, PROCESS_EXITED.

    With `slabs` (memory that the recorder has given; `internals` as an earlier reply had them) thunks are worked out apart: the target is read, not
    entered, and may be in any state."""

    TYPE: ClassVar = "spawner.prepare"
    REPLY: ClassVar[type[Reply]] = PrepareReply
    pid: int
    pool_path: str
    hooks: list[HookSpec]
    slabs: list[Slab] = []
    internals: list[Internal] = []


THUNK_BYTES_MAX: Final = 128  # of one hook (agent/frida/src/prepare.c, THUNK_MAX)
GROUP_SPAN: Final = 0x4000000  # hooks this close to the first of them share a slab
OWN_BYTES: Final = 4096  # of each slab beyond its hooks': for hooks of the recorder's own
