"""When the target itself becomes another program: what is known of its code is of no use any more, and what would be called in it is not there."""

from __future__ import annotations

from collections.abc import Sequence

from actors.session.libraries import Libraries
from actors.session.probes import Installed
from actors.session.tracing import Tracing
from strobe.model.probe import Hook
from strobe.modules import Mapped
from strobe.protocol.spawner import PrepareReply

LOST = "The target became another program by exec ({path}), which is not traced: {why}."


def lost(tracing: Tracing, path: str, why: str) -> None:
    """Its functions cannot be traced any more. The caller holds the lock."""
    target = tracing.target
    journal = target.journal
    journal.probes.installed, journal.internal, journal.remote, journal.recorder = {}, [], None, "none"
    limitations = [*target.capabilities.limitations, LOST.format(path=path, why=why)]
    target.capabilities = journal.capabilities = target.capabilities.model_copy(update={"function_tracing": "none", "limitations": limitations})
    journal.save(target.folder)


def entered(tracing: Tracing, mapped: Sequence[Mapped], hooks: Sequence[Hook], reply: PrepareReply, remote: int) -> None:
    """The recorder is in the new program. The caller holds the lock."""
    target = tracing.target
    journal = target.journal
    patches = {patch.hook: patch for patch in reply.patches if patch.hook}
    journal.probes.refused = {hook.address: told for told, id_ in zip(reply.refused, reply.refused_ids, strict=True) for hook in hooks if hook.id == id_}
    journal.probes.installed = {hook.address: Installed(hook, patches[hook.id]) for hook in hooks if hook.id in patches}
    journal.internal = [patch for patch in reply.patches if not patch.hook]
    journal.internals, journal.remote, journal.recorder, journal.sees_loading = reply.internals, remote, "native", reply.sees_loading
    tracing.libraries = Libraries(journal)
    tracing.libraries.look(mapped)
    target.collector.announce_modules({one.module.path: one.module.bias for one in mapped})
    journal.save(target.folder)
