"""`python -m actors.spawner --name spawner:…`, started by the supervisor."""

from __future__ import annotations

from actors.spawner.actor import Spawner, scratch
from actors.spawner.hosting import fork_host
from strobe.runtime import main

if __name__ == "__main__":
    Spawner.forked_host = fork_host(scratch())
    main(Spawner)
