def grüße():
    text = "日本語 — 😀"
    raise ValueError(text)


grüße()
