"""What a value looks like to those who read a program's output: a text of bounded size, or a picture among the files.

In the image this is the module `_sandbox_show`. It does no harm to the program, whatever the value does.
"""

import _signal as signal
import sys

TEXT_MAX = 4000  # characters of one value
ITEMS_MAX = 100  # of a list
SHOW_S = 5  # a value's own code
SIMPLE = (int, float, bool, complex, bytes, str)
# What these have as a value is in the picture.
DRAWN = ("matplotlib", "mpl_toolkits", "seaborn")
# Their charts are pages for a browser.
SHOWN = ("plotly", "altair")


class TooLong(BaseException):
    """A value takes for ever to show itself."""


def root_of(value):
    return str(getattr(type(value), "__module__", "")).partition(".")[0]


def is_drawn(value):
    """An artist, or a list of them, as many of pyplot's functions return."""
    if type(value) in (list, tuple) and value and len(value) < 100:
        return any(is_drawn(one) for one in value)
    if root_of(value) == "numpy" and getattr(value, "dtype", None) == object and value.size:
        return is_drawn(value.flat[0])
    return root_of(value) in DRAWN


def shorten(text):
    if len(text) <= TEXT_MAX:
        return text
    return f"{text[:TEXT_MAX * 3 // 4]} … {text[-TEXT_MAX // 4:]} ({len(text):,} characters)"


def list_text(value):
    """A list, tuple, set or dictionary that is too long, in its first items."""
    some = []
    for one in value.items() if type(value) is dict else value:
        some.append(one)
        if len(some) == ITEMS_MAX:
            break
    text = repr(type(value)(some))
    return f"{text[:-1]}, …{text[-1]} ({len(value):,} items)"


def text_of(value):
    if type(value) in (str, bytes) and len(value) > TEXT_MAX:
        return f"{value[:TEXT_MAX]!r} … ({len(value):,} {'characters' if type(value) is str else 'bytes'})"
    if type(value) in (list, tuple, set, frozenset, dict) and len(value) > ITEMS_MAX:
        return list_text(value)
    if root_of(value) == "pandas" and type(value).__name__ == "Styler":
        return value.to_string(max_rows=60, max_columns=20).rstrip()
    text = repr(value)
    if type(text) is str and text[:1] == "<" and " at 0x" in text[-30:] and type(value).__str__ is not object.__str__:
        text = str(value)
    return text


def figures():
    import _sandbox_figures

    return _sandbox_figures


def keep_picture(value):
    """Whether it is one of the things that are for the eyes, and is among the files now."""
    root, name = root_of(value), type(value).__name__
    if root == "PIL" and hasattr(value, "getbands"):
        figures().keep_image(value)
    elif root in DRAWN and name == "Figure":
        figures().keep_figure(value)
    elif root in SHOWN and hasattr(value, "show"):
        value.show()
    elif root == "folium" and hasattr(value, "get_root"):
        figures().keep_page(value.get_root().render())
    elif root == "graphviz" and hasattr(value, "pipe"):
        figures().keep_bytes(value.pipe("png"), ".png")
    else:
        return False
    return True


# ---- IPython's own objects ----


def plain_text(html):
    """What a browser would show of it, roughly."""
    import html as entities
    import re

    html = re.sub(r"(?is)<(style|script|head)\b.*?</\1>|<!--.*?-->", "", html)
    html = re.sub(r"(?i)</t[dh]>\s*<t[dh][^>]*>", "\t", re.sub(r"\s+", " ", html))
    html = re.sub(r"(?i)<(br|/?p|/?div|/?h\d|/?li|/?tr|/?table|/?ul|/?ol|hr|/?pre)\b[^>]*>", "\n", html)
    text = entities.unescape(re.sub(r"<[^>]*>", "", html))
    return "\n".join(line for line in (line.strip() for line in text.split("\n")) if line)


def display_text(kind, text):
    if kind == "SVG":
        figures().keep_bytes(text.encode(), ".svg")
    elif kind == "HTML" and "<script" in text:
        figures().keep_page(text)
    elif text:
        print(shorten(plain_text(text) if kind == "HTML" else text.strip()))


def show_notebook_object(value):
    """One of IPython.display: its text, or its file's; else one short line."""
    kinds = [one.__name__ for one in type(value).__mro__]
    data = getattr(value, "data", None)
    name = getattr(value, "filename", None) or getattr(value, "url", None) or getattr(value, "src", None) or getattr(value, "path", None)
    if type(data) is str and not {"Javascript", "Audio", "Image", "Video"} & {*kinds}:
        display_text(kinds[0], data)
    elif "JSON" in kinds or "Code" in kinds or "Pretty" in kinds:
        print(shorten(str(data)))
    elif type(data) is bytes and not name and "Audio" in kinds:
        figures().keep_bytes(data, ".wav" if "wav" in str(getattr(value, "mimetype", "wav")) else ".mp3", "audio")
    elif type(data) is bytes and not name and "Image" in kinds:
        figures().keep_bytes(data, "." + str(getattr(value, "format", "png")))
    else:
        print(f"<{kinds[0]}{f' {name}' if name else ''}>")


# ---- what is called ----


def show(value):
    if root_of(value) == "IPython":
        show_notebook_object(value)
    elif not keep_picture(value):
        print(shorten(text_of(value)))


def interrupt(_signal, _frame):
    raise TooLong


def set_alarm():
    """Whether there is one: the program's own stays, and threads have none."""
    if any(signal.getitimer(signal.ITIMER_REAL)) or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        return False
    try:
        signal.signal(signal.SIGALRM, interrupt)
    except ValueError:
        return False
    signal.setitimer(signal.ITIMER_REAL, SHOW_S)
    return True


def tell(text):
    try:
        print(text, file=sys.stderr)
    except Exception:
        pass


def bounded(work, value):
    """A value's own code may raise, and is not waited for."""
    alarm = type(value) not in SIMPLE and set_alarm()
    try:
        work(value)
    except BaseException as problem:
        why = f"more than {SHOW_S} s" if type(problem) is TooLong else type(problem).__name__
        tell(f"the value of type {type(value).__name__} could not be shown: {why}")
    finally:
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


def is_silent(value):
    """A value that says nothing: what it drew is in the picture, what it ran has printed."""
    if type(value).__name__ == "CompletedProcess":
        return not (value.returncode or value.stdout or value.stderr)
    return is_drawn(value) and type(value).__name__ != "Figure"


def show_last(value):
    """The value of the last expression."""
    bounded(lambda value: is_silent(value) or show(value), value)


class Handle:
    """What display(…, display_id=True) returns."""

    display_id = "1"

    @staticmethod
    def display(*values, **_options):
        display(*values)

    update = display


def show_bundle(bundle):
    """What a library has made for notebooks: {kind: text}."""
    if "text/html" in bundle:
        display_text("HTML", bundle["text/html"])
    else:
        print(shorten(str(bundle.get("text/plain", ", ".join(bundle)))))


def display(*values, display_id=None, raw=False, **_options):
    for value in values:
        bounded(show_bundle if raw and type(value) is dict else show, value)
    return Handle() if display_id else None
