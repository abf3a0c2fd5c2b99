import unittest


class Parts(unittest.TestCase):
    def test_subtests(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertEqual(number, 1)

    @unittest.expectedFailure
    def test_expected(self):
        self.fail()


class NoSetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise RuntimeError("would not come")

    def test_never(self):
        pass
