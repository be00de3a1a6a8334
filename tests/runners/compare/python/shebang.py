#!/usr/bin/env python2
print("a first line that is not obeyed", __file__)
