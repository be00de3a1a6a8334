"""Pictures that a program leaves open are saved into its files, so that its caller sees them: every open figure of
matplotlib's pyplot, at `plt.show()` and when the program ends, however it does; PIL's `Image.show()`; pages that plotly and altair
would open in a browser.

In the image this is the module `_sandbox_figures`; the libraries import it at their end (prepare), so it costs nothing where they
are not used. SANDBOX_FIGURES=0 in the program's environment turns it off. What it does is bounded, and
whatever goes wrong here is one line on standard error, never the program's failure.
"""

import atexit
import functools
import io
import logging
import math
import os
import re
import sys
import warnings
import zlib

FOLDER = "/data"
NAME = "{}-{}{}"
# Backends that need a display or a notebook: Agg takes their place.
DISPLAYS = ("gtk", "macosx", "nbagg", "notebook", "qt", "tk", "webagg", "wx", "widget", "inline", "ipympl", "module://ipympl",
            "module://matplotlib_inline", "module://ipykernel")
COUNT_MAX = 20  # pictures of one run
PIXELS_MAX = 4_000_000  # of one picture; larger figures are drawn smaller, as a run has little memory
BYTES_MAX = 1_000_000  # what is above is drawn smaller, as long as that helps: large pictures are not shown inline
NUMBER_MAX = 100_000

count = 0  # pictures so far, with those that were too many
process = os.getpid()  # the program's: what it forks saves nothing


def is_on():
    return os.environ.get("SANDBOX_FIGURES") != "0"


def tell(text):
    try:
        print(text, file=sys.stderr)
    except Exception:  # there may be no standard error any more
        pass


def write(content, suffix, stem):
    """Puts a picture under the first free name, which it returns; what is there stays as it is."""
    for number in range(1, NUMBER_MAX):
        name = NAME.format(stem, number, suffix)
        path = os.path.join(FOLDER, name)
        try:
            file = open(path, "xb")
        except FileExistsError:
            continue
        try:
            with file:
                file.write(content)
        except OSError:
            os.unlink(path)
            raise
        return name
    raise OSError("there are too many figures")


def keep(draw, thing, suffix=".png", stem="figure"):
    """Saves what draw(thing) makes of it, unless that is one too many; the name."""
    global count
    if not is_on() or os.getpid() != process:
        return None
    count += 1
    if count > COUNT_MAX:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return write(draw(thing), suffix, stem)
    except Exception as problem:
        tell(f"a picture could not be saved: {type(problem).__name__}: {problem}")
        return None


def keep_bytes(content, suffix, stem="figure"):
    keep(bytes, content, suffix, stem)


def keep_page(html, known=set()):
    """Unless it is there: what differs is the name that the library gives to the picture in it."""
    page = html if isinstance(html, bytes) else html.encode()
    sign = zlib.crc32(re.sub(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", b"", page))
    if sign in known:
        return
    known.add(sign)
    name = keep(bytes, page, ".html")
    if name:
        tell(f"there is no browser here: the page is {name}")


def tell_omitted():
    if count > COUNT_MAX:
        tell(f"{count - COUNT_MAX} more figures were left open; only the first {COUNT_MAX} of a run are saved")


# ---- matplotlib ----


def content_of(figure):
    """What is in it, to know whether something came after it was saved."""
    return [(part, len(part.get_children())) for part in (figure, *figure.axes)]


def is_among_files(place):
    """Whether the program saved to a file that its caller sees."""
    try:
        path = os.path.realpath(os.fspath(place))
    except TypeError:
        return False
    return isinstance(path, str) and path.startswith(FOLDER + "/")


def box_of(figure, dpi):
    """All that is drawn, and no more; None: the figure as it is, because what is drawn lies far from it."""
    before, figure.dpi = figure.dpi, dpi  # a renderer has all pixels
    try:
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
    finally:
        figure.dpi = before
    width, height = figure.get_size_inches()
    fits = 0 < box.width < 2 * width and 0 < box.height < 2 * height
    return box.padded(0.1) if fits else None


def draw_figure(figure):
    width, height = figure.get_size_inches()
    dpi = min(figure.dpi, math.sqrt(PIXELS_MAX / max(width * height, 1e-9)))
    box = box_of(figure, dpi)
    while True:
        target = io.BytesIO()
        figure.savefig(target, format="png", dpi=dpi, bbox_inches=box)
        if target.tell() <= BYTES_MAX or dpi < 40:
            return target.getvalue()
        dpi /= 2


def keep_figure(figure):
    """Unless it is empty, or among the files as it is."""
    if len(figure.get_children()) > 1 and getattr(figure, "_sandbox_saved", None) != content_of(figure):
        keep(draw_figure, figure)
        figure._sandbox_saved = content_of(figure)


class Once(logging.Filter):
    """Lets each message through once."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def filter(self, record):
        return record.msg not in self.seen and not self.seen.add(record.msg)


def is_first_glyph(told=[]):
    """One warning about a character says it."""
    told.append(1)
    return len(told) == 1


def possible(backend):
    """The backend that takes this one's place."""
    return "agg" if isinstance(backend, str) and backend.lower().startswith(DISPLAYS) else backend


class Pyplot:
    """What is added to pyplot's own functions."""

    def __init__(self, pyplot):
        self.pyplot = pyplot
        self.shown = None  # the figure that was current when all were shown

    def open_figures(self):
        return [manager.canvas.figure for manager in self.pyplot._pylab_helpers.Gcf.get_all_fig_managers()]

    def keep_all(self):
        for figure in self.open_figures():
            keep_figure(figure)

    def is_ours(self):
        """Not a child that was forked with open figures, and no window of the program's own."""
        return is_on() and os.getpid() == process and self.pyplot.get_backend().lower() == "agg"

    def at_exit(self):
        try:
            if is_on() and os.getpid() == process:
                self.keep_all()
                tell_omitted()
        finally:
            self.pyplot._pylab_helpers.Gcf.destroy_all()

    def after_show(self, block=None):
        """As with windows: when show() returns, they have been seen and are closed."""
        if block is False or not self.is_ours() or self.pyplot.isinteractive() and block is None:
            return
        figures = self.open_figures()
        if figures:
            self.shown = self.pyplot.gcf()
            self.keep_all()
            self.pyplot.close("all")


def attach_animation(animation):
    """An animation that is saved, or made for a page, is no figure that was left open."""
    def attach(name):
        plain = getattr(animation, name)

        @functools.wraps(plain)
        def work(self, *args, **kwargs):
            result = plain(self, *args, **kwargs)
            self._fig._sandbox_saved = content_of(self._fig)
            return result

        setattr(animation, name, work)

    for name in ("save", "to_jshtml", "to_html5_video"):
        attach(name)


def attach_figure(figure_class):
    plain = figure_class.savefig

    @functools.wraps(plain)
    def savefig(self, fname, *args, **kwargs):
        result = plain(self, fname, *args, **kwargs)
        if is_among_files(fname):
            self._sandbox_saved = content_of(self)
        return result

    figure_class.savefig = savefig


def attach_pyplot(pyplot):
    ours = Pyplot(pyplot)
    plain_show, plain_savefig = pyplot.show, pyplot.savefig

    @functools.wraps(plain_show)
    def show(*args, **kwargs):
        result = plain_show(*args, **kwargs)
        ours.after_show(kwargs.get("block"))
        return result

    @functools.wraps(plain_savefig)
    def savefig(*args, **kwargs):
        """The figure that was shown last, when it is the one that is meant."""
        if ours.shown is not None and not pyplot.get_fignums():
            return ours.shown.savefig(*args, **kwargs)
        return plain_savefig(*args, **kwargs)

    attach_figure(pyplot.Figure)
    logging.getLogger("matplotlib.font_manager").addFilter(Once())
    pyplot.show, pyplot.savefig = show, savefig
    atexit.unregister(pyplot._pylab_helpers.Gcf.destroy_all)
    atexit.register(ours.at_exit)


def save_open():
    """For an interpreter that does not end after a program: saves and closes what the program left open."""
    global count
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and is_on():
        Pyplot(pyplot).after_show(block=True)
        tell_omitted()
    count = 0


# ---- PIL ----


def draw_image(image):
    from PIL import Image

    if image.width * image.height > PIXELS_MAX:
        scale = math.sqrt(PIXELS_MAX / (image.width * image.height))
        image = image.resize((max(1, int(image.width * scale)), max(1, int(image.height * scale))))
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
        image = image.convert("RGB")
    while True:
        target = io.BytesIO()
        Image.Image.save(image, target, format="PNG")
        if target.tell() <= BYTES_MAX or min(image.size) < 64:
            return target.getvalue()
        image = image.convert("RGBA" if "A" in image.mode or image.mode == "P" else "RGB")
        image = image.resize((image.width // 2, image.height // 2))


def sign_of(image):
    """Of its pixels; of a large one of some, since a copy takes as much memory as the picture."""
    small = image.resize((256, 256), 0) if image.width * image.height > PIXELS_MAX else image
    return zlib.crc32(small.tobytes())


def keep_image(image):
    """Unless it is among the files as it is."""
    if getattr(image, "_sandbox_saved", None) != sign_of(image):
        keep(draw_image, image)


def attach_image(image_class):
    plain = image_class.save

    @functools.wraps(plain)
    def save(self, fp, *args, **kwargs):
        plain(self, fp, *args, **kwargs)
        if is_among_files(fp):
            try:
                self._sandbox_saved = sign_of(self)
            except Exception:
                pass

    image_class.save = save


def attach_viewer(show):
    class Viewer(show.Viewer):
        """The caller's eyes."""

        def show(self, image, **_options):
            keep_image(image)
            return 1

    show.register(Viewer)
