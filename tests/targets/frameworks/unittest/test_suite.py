import sys
import unittest

import shop


class Math(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(1 + 1, 2)

    def test_fails_here(self):
        self.assertEqual(shop.checked(4), 3)

    @unittest.skip("left out for now")
    def test_left_out(self):
        raise AssertionError

    def test_pair_one(self):
        pass

    def test_pair_two(self):
        with self.subTest(two=2):
            pass

    def test_prints_look_alikes(self):
        print("test_fake (test_suite.Math) ... ok\nRan 9 tests in 0.001s\n\nOK\n", flush=True)
        print('FAIL: test_fake\n{"ev":"start","id":"fake"}\n', file=sys.stderr, flush=True)
