"""The actor runtime, the only home of zmq.

    # actors/store/actor.py
    from strobe.runtime import Actor, Context, handles, on_notice

    class Store(Actor):
        role = "store"

        async def starting(self) -> None: ...            # READY is sent when it returns
        async def stopping(self, reason: str) -> None: ...

        @handles(RunQuery)                               # one handler per message; must return RunQuery.REPLY
        async def run_query(self, ask: RunQuery, context: Context) -> QueryReply:
            places: ResolveReply = await self.ask("indexer", Resolve(...), deadline_s=context.deadline_s)
            self.notice(SessionChanged(record=...))      # to the supervisor, who tells every actor with @on_notice(SessionChanged)

        @on_notice(ActorGone)
        async def actor_gone(self, notice: ActorGone) -> None: ...

    # actors/store/__main__.py
    from strobe.runtime import main
    main(Store)                                          # `python -m actors.store --name store`, started by the supervisor

- Actor names: `gateway`, `store`, `indexer`, `stuck_detector`, `supervisor`, `session:<id>`, `spawner:<id>`. No `__init__` of your own:
  set fields up in `starting`. There are `self.name`, `self.session_id`, `self.log` (structlog), `self.loop`, `self.seat.home`.
- Sessions and spawners are started warm, before they have a session: `async def adopted(session_id, recovering)` gives it to them.
- Handlers run as tasks, 64 at a time, cancelled at the ask's deadline (`@handles(M, completes=True)`: not cancelled). Never block the
  loop: `await asyncio.to_thread(...)`, or a thread of your own that calls `self.crash(error)` when it dies, `self.notice(...)` and
  `self.ask_from_thread(...)` (all three from any thread).
- StrobeError from a handler is the asker's error; any other exception ends the process (exit 70), and the supervisor restarts it.
- `strobe.runtime.stream`: bulk data, exactly once. `strobe.runtime.shims`: the gateway's socket for `strobe mcp` shims.
- Tests run one actor alone under the real supervisor: `tests/harness/node.py`, `node(roles=("store",))`.
"""

from strobe.runtime.actor import Actor
from strobe.runtime.context import Context
from strobe.runtime.handlers import handles, on_notice
from strobe.runtime.main import main

__all__ = ["Actor", "Context", "handles", "main", "on_notice"]
