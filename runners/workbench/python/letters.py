"""A text whose font lacks characters of it is drawn in one that has more of them: for CairoSVG, which looks at one font only.

In the image this is the module `_sandbox_letters`.
"""

FALLBACK = ("DejaVu Sans", "WenQuanYi Micro Hei", "Lohit Devanagari", "Symbola")


def select_face(context, family, style, weight, text):
    def lacking(name):
        context.select_font_face(name, style, weight)
        return sum(glyph[0] == 0 for glyph in context.get_scaled_font().text_to_glyphs(0, 0, text or "", False))

    if lacking(family):
        context.select_font_face(min((family, *FALLBACK), key=lacking), style, weight)
