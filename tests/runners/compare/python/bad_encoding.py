# -*- coding: no-such-encoding -*-
print("never")
