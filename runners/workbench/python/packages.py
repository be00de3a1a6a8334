"""Which package has what people type or import: the tables beside this file, for the installer and for pip (pip.py)."""

import importlib.machinery
import os
import re

HERE = os.path.dirname(os.path.realpath(__file__))
IMAGE = ["/usr/local/lib/python3.13/dist-packages", "/usr/lib/python3/dist-packages"]
NAME = re.compile(r"[A-Za-z0-9._-]+")


def same(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def rows(path):
    """Pairs of a list of names: what is imported, and the package that has it."""
    with open(path) as lines:
        words = [line.split("#", 1)[0].split() for line in lines]
    return [(one[0], one[-1]) for one in words if one]


def in_image(module):
    found = importlib.machinery.PathFinder.find_spec(module, IMAGE)
    return found is not None and found.loader is not None


def resolve(name):
    """The package that is meant, and what of it is imported."""
    table = rows(HERE + "/libraries") + rows(HERE + "/names")
    package = {same(module): package for module, package in table}.get(same(name), name)
    modules = {same(package): module for module, package in reversed(table)}
    return package, modules.get(same(package), package)
