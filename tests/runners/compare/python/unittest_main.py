# differs: in \d\.\d+s
import unittest


class Case(unittest.TestCase):
    def test_good(self):
        self.assertEqual(1, 1)

    def test_bad(self):
        self.assertEqual([1, 2], [1, 3])


unittest.main()
