"""What all the tests before left in the logs: no secret, no code, no output, no sanitizer's complaint (H-10)."""
import os
import re
import secrets

import clone
import sites
from harness import check, equal, test


def _texts():
    """(path, text) of every log of every server of this suite."""
    paths = []
    for site in sites.all_sites:
        paths += [os.path.join(where, name) for where, _folders, names in os.walk(f"{site.folder}/log") for name in names]
    if clone.made.cache_info().currsize:
        paths += clone.made().logs()
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            yield path, file.read()


@test("H-10: tokens, code, environment values, input, output and file URLs are in no log")
def _():
    site = sites.own()
    client = sites.new_conversation(site.client())
    canary = {name: f"canary{name}{secrets.token_hex(8)}" for name in ("code", "env", "stdin", "arg", "out", "err", "file", "content")}
    client.run(f"# {canary['code']}\necho {canary['out'][:6]}''{canary['out'][6:]}; echo {canary['err'][:6]}''{canary['err'][6:]} >&2; "
               f"touch {canary['file']}", "bash", environment={"V": canary["env"]}, stdin=canary["stdin"], args=[canary["arg"]])
    url = client.upload(canary["content"][:8], canary["content"].encode())["file"]["url"]
    client.download(url)
    client.run_error("x", environment={"LD_PRELOAD": canary["env"]})
    client.with_token(site.token + "x").request("ping")
    client.http("POST", f"/mcp?token={site.token}", b"{}", {})
    client.post(f'{{"jsonrpc":"2.0","id":1,"method":"{canary["code"]}"}}'.encode())
    client.post(canary["content"].encode())
    secret_parts = re.search(r"/files/([0-9a-f]{64})/([\w-]{22})/", url).groups()
    words = list(canary.values()) + [site.token, site.secret, site.settings["FILE_SECRET"], *secret_parts]
    for path, text in _texts():
        for word in words:
            check(word not in text, f"{word} is in {path}")


@test("no token, secret or whole file URL of any server of this suite is in its logs")
def _():
    words = [word for site in sites.all_sites for word in (site.token, site.secret, site.settings.get("FILE_SECRET")) if word]
    if clone.made.cache_info().currsize and os.path.exists(clone.made().env_file):
        words += [clone.made().setting("MCP_API_TOKEN"), clone.made().setting("FILE_SECRET")]
    for path, text in _texts():
        for word in words:
            check(len(word) < 16 or word not in text, f"a secret is in {path}")
        urls = re.findall(r"/files/[0-9a-f]{64}", text)
        equal(urls, [], f"whole file URLs in {path}")


@test("no sanitizer complained, nothing crashed by itself, in any server of this suite")
def _():
    for path, text in _texts():
        for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "Assertion", "SEGV", "signal 11", "signal 6;"):
            check(word not in text, f"{word} in {path}: {text[max(0, text.find(word) - 300):text.find(word) + 1500]}")
