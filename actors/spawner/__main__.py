from __future__ import annotations

from actors.spawner.actor import Spawner
from strobe.runtime import main

if __name__ == "__main__":
    main(Spawner)
