"""`python -m actors.indexer --name indexer`."""

from actors.indexer.actor import Indexer
from strobe.runtime import main

if __name__ == "__main__":
    main(Indexer)
