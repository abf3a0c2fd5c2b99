import threading
import unittest


class Wait(unittest.TestCase):
    def test_a_quick(self):
        pass

    def test_never_ends(self):
        threading.Event().wait()
