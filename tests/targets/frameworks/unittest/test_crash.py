import os
import signal
import unittest


class Wait(unittest.TestCase):
    def test_a_quick(self):
        pass

    def test_dies(self):
        os.kill(os.getpid(), signal.SIGSEGV)
        signal.pause()
