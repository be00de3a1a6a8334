"""Samples and the tables made of them."""


def quantile(values, share):
    """Between neighbours interpolated; None without values."""
    if not values:
        return None
    values = sorted(values)
    at = (len(values) - 1) * share
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def median(values):
    return quantile(values, 0.5)


def number(value, digits=1):
    return "–" if value is None else f"{value:.{digits}f}"


class Table:
    """Rows of cells below a title, as aligned text or as Markdown."""

    def __init__(self, title, *head):
        self.title = title
        self.rows = [head]
        self.notes = []

    def add(self, *cells):
        self.rows.append([str(cell) for cell in cells])

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def _text(self):
        widths = [max(len(row[i]) for row in self.rows) for i in range(len(self.rows[0]))]
        yield self.title
        for row in self.rows:
            cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
            yield "  " + "  ".join(cells).rstrip()
        for note in self.notes:
            yield f"  ({note})"

    def _markdown(self):
        yield f"**{self.title}**"
        yield ""
        for n, row in enumerate(self.rows):
            yield "| " + " | ".join(row) + " |"
            if n == 0:
                yield "|" + "---|" + "---:|" * (len(row) - 1)
        if self.notes:
            yield ""
        for note in self.notes:
            yield f"({note})"

    def print(self, markdown):
        print("\n".join(self._markdown() if markdown else self._text()), end="\n\n", flush=True)
