"""Which files with secrets an account can read."""
import re

from harness import check, equal

AS = 'account=$1; shift; exec setpriv --reuid "$account" --regid "$(id -g "$account")" --init-groups "$@"'
HELD = 'id -un; grep "$@" || true'


def as_account(account, *words):
    """What root executes to have that account execute words."""
    return ["sh", "-c", AS, "sh", account, *words]


def _held(run, account, secrets, folders):
    """The files below the folders that hold a secret and that the account can read."""
    options = [word for secret in secrets for word in ("-e", secret)]
    who, *files = run(as_account(account, "sh", "-c", HELD, "sh", "-rlFs", "-D", "skip", *options, *folders)).splitlines()
    equal(who, account, "who has looked")
    return files


def key_of(text):
    """The key of files' URLs, in the file that nginx includes."""
    return re.search(r'\$sandcgi_file_key "([^"]+)"', text).group(1)


def check_closed(run, accounts, secrets, folders, at_least):
    """run(words): the output of a command of root's. at_least: so many files hold a secret."""
    check(all(len(secret) >= 16 for secret in secrets), "an empty secret is in every file")
    held = _held(run, "root", secrets, folders)
    check(len(held) >= at_least, f"{len(held)} files: {held}")
    equal({account: _held(run, account, secrets, folders) for account in accounts}, dict.fromkeys(accounts, []), "files with secrets that an account can read")
