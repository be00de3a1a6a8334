#!/usr/bin/env python3
"""The page in a browser: starts servers with the page and hands their places to page.mjs. A stage of tests/run.sh.

SANDCGI_TEST_SHOTS names a folder for screenshots."""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
import oauth  # noqa: E402  pylint: disable=wrong-import-position
import sites  # noqa: E402  pylint: disable=wrong-import-position

PREFIX = "/some/path"
SETTINGS = {"SANDBOX_WARM": "python=1", "SANDBOX_BACKGROUND_MAX": "20"}


def build_page():
    """The folder that nginx serves, where nginx's account can read it."""
    folder = harness.new_folder("page")
    os.chmod(folder, 0o755)
    subprocess.run([os.environ["NODE"], f"{harness.TOP}/nginx/page/build.mjs", f"{folder}/site", f"{os.environ['PAGE_MODULES']}/node_modules"], check=True)
    return f"{folder}/site"


def expired_token(site):
    """A token whose time has passed in nginx's file; the next token that is set has nginx read it."""
    path = f"{site.folder}/conf/tokens.map"
    token = subprocess.run([site.binary, "token", "add", "--expires", "1h", "--no-reload", "--file", path], check=True, capture_output=True, text=True).stdout.strip()
    with open(path, "r+", encoding="ascii") as file:
        text = re.sub(r",[0-9]+ default", ",1700000000 default", file.read())
        file.seek(0)
        file.truncate()
        file.write(text)
    site.set_token("other", "0123456789abcdef" * 2)
    return token


def place(site, prefix=""):
    return {"url": f"http://localhost:{site.http_port}{prefix}/", "token": site.token, "expired": expired_token(site)}


def below_a_path(page):
    """A server under PREFIX, with one place for runs; its public name is another than the one that the browser calls."""
    site = sites.Site(SETTINGS | {"SANDBOX_MAX_RUNS": "1"}, start_values(page) | {"PREFIX": PREFIX})
    site.settings["PUBLIC_BASE_URL"] = site.base_url + PREFIX
    site.write_config()
    site.start(until_healthy=False)
    return site


def with_oauth(page):
    """A server whose operator has a passphrase; its public name is the one that the browser calls."""
    site = sites.Site({"SANDCGI_OAUTH": "builtin"}, start_values(page))
    site.settings["PUBLIC_BASE_URL"] = f"http://localhost:{site.http_port}"
    site.write_config()
    if oauth.set_passphrase(site).returncode:
        raise harness.Failed("sandcgi oauth passphrase")
    site.start()
    return place(site) | {"passphrase": oauth.PASSPHRASE, "elsewhere": f"http://127.0.0.1:{sites.free_port()}"}


def start_values(page):
    return {"PAGE_DIR": page}


def main():
    status = 1
    try:
        page = build_page()
        plain, below = sites.Site(SETTINGS, start_values(page)), below_a_path(page)
        plain.start()
        scratch = harness.new_folder("shots")
        environment = os.environ | {"SITES": json.dumps({"plain": place(plain), "below": place(below, PREFIX), "oauth": with_oauth(page)}), "PAGE_DIR": page, "SHOTS": scratch}
        status = subprocess.run([os.environ["NODE"], f"{HERE}/page.mjs", *sys.argv[1:]], env=environment, check=False).returncode
        if os.environ.get("SANDCGI_TEST_SHOTS"):
            shutil.copytree(scratch, os.environ["SANDCGI_TEST_SHOTS"], dirs_exist_ok=True)
    finally:
        for site in sites.all_sites:
            site.stop()
        harness.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
