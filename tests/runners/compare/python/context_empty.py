# ways: started preloaded
import contextvars

print(list(contextvars.copy_context()))
