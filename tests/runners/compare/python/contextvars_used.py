import contextvars

v = contextvars.ContextVar("v", default=0)
print(len(contextvars.copy_context()), v.get())
v.set(1)
print(contextvars.copy_context().run(lambda: (v.set(2), v.get())[1]), v.get())
