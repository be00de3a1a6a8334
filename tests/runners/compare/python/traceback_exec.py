code = "def f():\n    return undefined_name\n\nf()\n"
exec(compile(code, "<made>", "exec"))
