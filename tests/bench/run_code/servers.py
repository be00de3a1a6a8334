"""The servers that are measured: our own ones behind nginx, each with the settings that its part needs."""
import pool
import rest
import sites
from harness import Failed, new_folder
from stack import Caller, Target
from work import LeftOut

COLD = {"SANDBOX_WARM": ""}
WARM = {"SANDBOX_WARM": None}  # as it comes
READY = 16  # warm containers on the server of the burst
MANY = {"SANDBOX_WARM": f"python={READY}", "SANDBOX_WARM_MEMORY": "75%"}
PATIENCE_S = 90


class Server:
    """A site with the defaults that a user gets, and what is on top of them."""

    def __init__(self, settings, **build):
        defaults = dict.fromkeys(("SANDCGI_WORKERS", "SANDCGI_LOG_LEVEL", "SANDBOX_MEMORY", "SANDBOX_CPUS", "SANDBOX_TIMEOUT"))
        self.site = sites.own_of_suite(defaults | settings, **build)
        self.target = Target.of_site(self.site, sites.certificate()[0])
        self.never_came = set()

    def caller(self):
        return Caller(self.target).warm_up()

    def wait_for(self, work, n=1, sandbox="", seconds=PATIENCE_S):
        """Until n containers wait in the tier that the work needs, for new conversations or for that of this directory. Libraries are loaded on an idle machine only: after
        one wait without them, the next waits last a second."""
        wanted = {"language": work.language, "tier": work.tier, "sandbox": sandbox}
        if work.tier in self.never_came:
            seconds = 1
        try:
            return pool.wait_for(self.site, n, seconds, **wanted)
        except Failed as late:
            self.never_came.add(work.tier)
            raise LeftOut(str(late)) from late

    def stock(self, work):
        """How many wait for new conversations, in whichever tier, when those that are wanted are there."""
        self.wait_for(work)
        return len(pool.waiting(self.site, language=work.language, sandbox=""))


class World:
    """What all parts share: one server of each kind and one bare client, made when they are first asked for."""

    def __init__(self, peer=None):
        self.peer = peer
        self.folder = new_folder("bench")
        self._servers = {}
        self._client = None

    def _server(self, name, settings):
        if name not in self._servers:
            self._servers[name] = Server(settings)
        return self._servers[name]

    @property
    def cold(self):
        return self._server("cold", COLD)

    @property
    def warm(self):
        return self._server("warm", WARM)

    @property
    def many(self):
        return self._server("many", MANY)

    @property
    def client(self):
        if not self._client:
            self._client = self.new_client()
        return self._client

    def new_client(self):
        return rest.Client(self.folder)
