"""What a server says of its warm containers: `sandcgi status --json`."""
import json
import subprocess

from harness import Failed, wait_until


def text(site, *options):
    def asked():
        done = subprocess.run([site.binary, "status", *options, "--config", site.config], capture_output=True, text=True,
                              env=site.tool_environment(), timeout=30, check=False)
        return done if "did not answer in time" not in done.stderr else None
    done = wait_until(asked, 20, "the broker answers")
    if done.returncode not in (0, 3):  # 3: the engine does not answer (yet)
        raise Failed(f"sandcgi status: {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def status(site):
    return json.loads(text(site, "--json"))


def unclaimed(site):
    """One row for each container that no run has claimed, with its image's languages; tier "none" is still starting, sandbox "" is
    on a spare directory."""
    pool = status(site)["pool"]
    languages = {one["image"]: one["languages"] for one in pool["images"]}
    return [one | {"languages": languages.get(one["image"], [])} for one in pool["waiting"]]


def waiting(site, language=None, tier=None, sandbox=None):
    """The warm containers; each argument that is given narrows them. sandbox: "" for new conversations, or the name of the
    directory of one that exists."""
    return [one for one in unclaimed(site) if one["tier"] != "none" and (not language or language in one["languages"])
            and tier in (None, one["tier"]) and sandbox in (None, one["sandbox"])]


def wait_for_all(site, seconds, loaded=()):
    """Waits until all that are to wait for new conversations do; in the images of languages that are loaded, all but one with libraries."""
    def enough():
        pool = status(site)["pool"]
        for one in pool["images"]:
            tiers = [row["tier"] for row in pool["waiting"] if row["image"] == one["image"] and not row["sandbox"] and row["tier"] != "none"]
            places = one["places"]
            if len(tiers) < places or (set(one["languages"]) & set(loaded) and tiers.count("preloaded") < max(places - 1, 1)):
                return False
        return True
    wait_until(enough, seconds, f"all containers for new conversations wait; of {', '.join(loaded) or 'none'} with libraries", pause=0.2)


def wait_for(site, n=1, seconds=45, **wanted):
    """Waits until n such containers wait; returns them."""
    def enough():
        found = waiting(site, **wanted)
        return found if len(found) >= n else None
    return wait_until(enough, seconds, f"{n} containers wait {wanted}", pause=0.1)
