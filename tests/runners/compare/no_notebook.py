"""In the place of runners/workbench/python/program.py: Python does all by itself."""


def ready(_path, _add_packages):
    pass
