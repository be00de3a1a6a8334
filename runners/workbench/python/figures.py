"""Pictures that a program leaves open are saved into its files, so that its caller sees them: every open figure of
matplotlib's pyplot, at `plt.show()` and when the program ends, however it does; and PIL's `Image.show()`.

In the image this is the module `_sandbox_figures`; matplotlib's pyplot and PIL's ImageShow import it at their end, so it costs
nothing where they are not used. SANDBOX_FIGURES=0 in the program's environment turns it off. What it does is bounded, and
whatever goes wrong here is one line on standard error, never the program's failure.
"""

import atexit
import functools
import io
import math
import os
import sys
import warnings

FOLDER = "/data"
NAME = "figure-{}.png"
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


def write(content):
    """Puts a picture under the first free name; what is there stays as it is."""
    for number in range(1, NUMBER_MAX):
        path = os.path.join(FOLDER, NAME.format(number))
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
        return
    raise OSError("there are too many figures")


def keep(draw, thing):
    """Saves what draw(thing) makes of it, unless that is one too many."""
    global count
    count += 1
    if count > COUNT_MAX:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write(draw(thing))
    except Exception as problem:
        tell(f"a picture could not be saved: {type(problem).__name__}: {problem}")


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


def draw_figure(figure):
    width, height = figure.get_size_inches()
    dpi = min(figure.dpi, math.sqrt(PIXELS_MAX / max(width * height, 1e-9)))
    while True:
        target = io.BytesIO()
        figure.savefig(target, format="png", dpi=dpi)
        if target.tell() <= BYTES_MAX or dpi < 40:
            return target.getvalue()
        dpi /= 2


class Pyplot:
    """What is added to pyplot's own functions."""

    def __init__(self, pyplot):
        self.pyplot = pyplot
        self.shown = None  # the figure that was current when all were shown

    def open_figures(self):
        return [manager.canvas.figure for manager in self.pyplot._pylab_helpers.Gcf.get_all_fig_managers()]

    def keep_all(self):
        for figure in self.open_figures():
            if len(figure.get_children()) > 1 and getattr(figure, "_sandbox_saved", None) != content_of(figure):
                keep(draw_figure, figure)

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


def attach_viewer(show):
    class Viewer(show.Viewer):
        """The caller's eyes."""

        def show(self, image, **_options):
            if not is_on():
                return 0
            keep(draw_image, image)
            return 1

    show.register(Viewer)
