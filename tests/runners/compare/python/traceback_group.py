def fail(n):
    raise ValueError(n)


errors = []
for n in range(3):
    try:
        fail(n)
    except ValueError as e:
        e.add_note(f"note {n}")
        errors.append(e)
raise ExceptionGroup("several", errors)
