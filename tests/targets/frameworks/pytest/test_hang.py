import threading


def test_quick():
    pass


def test_never_ends():
    threading.Event().wait()
