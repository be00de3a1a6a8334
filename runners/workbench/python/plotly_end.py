
# There is no notebook and no browser here: all that would need one is a page among the files, and so is an image without kaleido.
for _name in set(renderers) - (set() if __import__("importlib.util").util.find_spec("kaleido") is None else {"png", "jpeg", "jpg", "svg", "pdf"}):
    if _name != "json":
        renderers[_name] = renderers["browser"]
if not os.environ.get("PLOTLY_RENDERER"):
    renderers.default = "browser"
