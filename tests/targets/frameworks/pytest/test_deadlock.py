import threading
import time

accounts, journal = threading.Lock(), threading.Lock()


def transfer(first, second):
    with first:
        time.sleep(0.1)  # stands for work: both threads hold their first lock before either wants its second
        with second:
            pass


def test_quick():
    assert True


def test_transfers_both_ways():
    away = threading.Thread(target=transfer, args=(accounts, journal), name="away", daemon=True)
    away.start()
    transfer(journal, accounts)
