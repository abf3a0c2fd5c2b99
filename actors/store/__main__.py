"""`python -m actors.store --name store`, started by the supervisor."""

from __future__ import annotations

from actors.store.actor import Store
from strobe.runtime import main

if __name__ == "__main__":
    main(Store)
