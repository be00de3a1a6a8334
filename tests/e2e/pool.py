"""What a server says of its waiting containers: `sandcgi status --json`."""
import json
import subprocess

from harness import Failed, wait_until


def status(site):
    done = subprocess.run([site.binary, "status", "--json", "--config", site.config], capture_output=True, text=True,
                          env=site.tool_environment(), timeout=30, check=False)
    if done.returncode:
        raise Failed(f"sandcgi status: {done.returncode}: {done.stderr or done.stdout}")
    return json.loads(done.stdout)


def waiting(site, language=None, tier=None, known=None):
    """The containers that wait; each argument that is given narrows them."""
    return [one for one in status(site)["waiting"]
            if language in (None, one["language"]) and tier in (None, one["tier"]) and known in (None, one["known"])]


def wait_filled(site, n=1, seconds=60, **wanted):
    """Waits until n such containers wait; returns them."""
    def enough():
        found = waiting(site, **wanted)
        return found if len(found) >= n else None
    return wait_until(enough, seconds, f"{n} containers wait {wanted}", pause=0.1)


def claims(site):
    """(runs that found a waiting container, runs that did not) since the broker's start."""
    counts = status(site)["claims"]
    return counts["hit"], counts["miss"]
