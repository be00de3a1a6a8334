"""nginx/cluster.md's way from one machine to an edge, command by command: in namespaces where node n1 and the edge are one machine with
the page's addresses, and n2 and n3 are away. Both nginx, the program and its settings are real; there is no engine."""
import os
import pathlib
import shutil

from front import BINARY, leftovers
from groups_walk import MACHINE, TOP, documented_commands, in_machine
import pages

ADDRESSES = r"""
ip link set lo up
for end in 1 2 3 9; do ip address add "10.0.0.$end/32" dev lo; done
"""
STORY = r"""
mount -t tmpfs tmpfs /usr/libexec
ln -s "$TOP" /usr/libexec/sandcgi
printf '#!/bin/sh\ncp "${2#root@10.0.0.1:}" "$3"\n' >"$W/bin/scp"
chmod 0755 "$W/bin/scp"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=sandbox.example.org -keyout /etc/ssl/sandbox.key -out /etc/ssl/sandbox.pem 2>/dev/null

# Step 1: the settings and the block of the page, at n1.
walk_in
sed -i '/^PUBLIC_BASE_URL=/d' /etc/sandcgi/sandcgi.conf
sed "s/=…/=$(openssl rand -hex 32)/" "$W/settings" >>/etc/sandcgi/sandcgi.conf
sed -i '/listen 127/a listen 10.0.0.1:8080;' /etc/nginx/site.conf
sandcgi setup nginx --server-name sandbox.example.org >"$W/again"
reloaded nginx -s reload
kill -HUP "$server"

# Steps 2 and 3.
for part in files nginx; do
    bash -e "$W/edge-$part" || { echo "FAILED ($?): $part"; exit 1; }
done
echo "secrets $(stat -c %a /etc/sandcgi/edge/secret.conf /etc/sandcgi/edge/tokens.map | xargs) $(ls /etc/sandcgi/edge/n1.conf 2>/dev/null | wc -l)"

# through TOKEN: the status of a call that goes through the edge.
through()
{
    curl -s -k -o "$W/answer" -w '%{http_code}' --max-time 20 --resolve sandbox.example.org:443:10.0.0.9 https://sandbox.example.org/mcp \
        -H "Authorization: Bearer $1" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
        -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_files","arguments":{"conversationId":"c"}}}'
}

for ((i = 0; i < 60; i++)); do
    [[ $(through "$token") != 200 ]] || break
    sleep 0.5
done
echo "through the edge $(through "$token") $(grep -c '"result"' "$W/answer")"
echo "wrong $(through "${token%?}x")"
sed -i '/^n2 /d' /etc/sandcgi/nodes
bash -e "$W/edge-goes-on" && echo "goes on $(grep -c 10.0.0.2 /etc/sandcgi/edge/nodes.conf) $(through "$token")"
bash -e "$W/silent-nodes" >"$W/said" && echo "silent nodes $(cat /proc/sys/net/ipv4/tcp_keepalive_time)"
kill "$(cat /var/lib/sandcgi-edge/nginx.pid)"
"""


def an_edge_as_the_page_says(checks):
    if os.geteuid() != 0 or not BINARY.exists():
        return checks.skip("the way to an edge", "needs root and a build")
    folder = leftovers.make_folder("sandcgi-cluster-")
    walked = pages.walked("nginx/cluster.md")
    settings = next(block.text for block in pages.page_blocks("nginx/cluster.md") if block.language == "ini")
    for name, text in (("commands", documented_commands("existing nginx")), ("edge-files", walked["files of an edge"]),
                       ("edge-nginx", walked["nginx of an edge"]), ("edge-goes-on", walked["an edge goes on"]),
                       ("silent-nodes", walked["silent nodes"]), ("settings", settings)):
        pathlib.Path(folder, name).write_text(text, encoding="utf-8")
    try:
        done = in_machine(folder, ADDRESSES + MACHINE + STORY, {"TOP": str(TOP), "DOCKER_HOST": "unix:///run/no-engine.sock"}, "--net")
        log = pathlib.Path(folder, "serve.log")
        story = done.stdout + done.stderr + (log.read_text(encoding="utf-8") if log.exists() else "")
        for line in ("secrets 600 600 0", "through the edge 200 1", "wrong 401", "goes on 0 200", "silent nodes 3"):
            checks.check(f"the documented way to an edge: {line}", line in done.stdout.splitlines(), story)
    finally:
        shutil.rmtree(folder)
    return None


GROUPS = [an_edge_as_the_page_says]
