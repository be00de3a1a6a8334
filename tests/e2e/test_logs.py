"""What is in no log (H-10). run.py looks at the logs of each module's servers with logs.py."""
import re
import secrets

import logs
import sites
from harness import check, test


@test("H-10: tokens, code, environment values, input, output and file URLs are in no log", core=True)
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
    for path, text in logs.texts():
        for word in words:
            check(word not in text, f"{word} is in {path}")
