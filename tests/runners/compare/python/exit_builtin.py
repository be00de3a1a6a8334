print("site's exit", exit, quit)
exit(4)
