"""Makes the fonts of the image known under the names of the table beside this file: to fontconfig, to programs that open a file
by its name (PIL, reportlab), and to matplotlib, whose list of fonts is made here, too. Runs once, while the image is built."""

import dataclasses
import os
import pathlib
import subprocess
import xml.sax.saxutils

import matplotlib
from matplotlib import font_manager

TABLE = pathlib.Path(__file__).with_name("fonts")
LINKS = pathlib.Path("/usr/share/fonts/truetype/names")  # where PIL looks and reportlab, too; fontconfig is told not to
ALIASES = pathlib.Path("/etc/fonts/local.conf")
FACES = ["regular", "bold", "italic", "bold:italic"]


def ask(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def rows():
    """Name, family, names of files; only of families that are there."""
    for line in TABLE.read_text().splitlines():
        if not line.startswith("#"):
            name, family, files = (part.strip() for part in line.split("|"))
            if ask("fc-list", family):
                yield name, family, files.split()


def link(family, names):
    for name, face in zip(names, FACES):
        file = ask("fc-match", "-f", "%{file}", f"{family}:{face}")
        for spelling in {name, name.lower(), name.capitalize()}:
            for suffix in {".ttf", pathlib.Path(file).suffix}:
                (LINKS / (spelling + suffix)).symlink_to(file)


def alias_of(name, family):
    name, family = (xml.sax.saxutils.escape(text) for text in (name, family))
    return f'<alias binding="same"><family>{name}</family><prefer><family>{family}</family></prefer></alias>\n'


def tell_fontconfig(table):
    head = '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">\n<fontconfig>\n'
    links = f"<selectfont><rejectfont><glob>{LINKS}/*</glob></rejectfont></selectfont>\n"
    ALIASES.write_text(head + links + "".join(alias_of(name, family) for name, family, _ in table) + "</fontconfig>\n")


def tell_matplotlib(table):
    fonts = font_manager.fontManager
    for name, family, _ in table:
        fonts.ttflist += [dataclasses.replace(font, name=name) for font in fonts.ttflist if font.name == family]
    path = os.path.join(matplotlib.get_cachedir(), f"fontlist-v{fonts.__version__}.json")
    font_manager.json_dump(fonts, path)


def main():
    table = list(rows())
    tell_matplotlib(table)
    LINKS.mkdir()
    for _, family, files in table:
        link(family, files)
    tell_fontconfig(table)


main()
