# ways: light full
import contextvars

print(list(contextvars.copy_context()))
