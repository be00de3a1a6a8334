"""nginx/README.md's way into an existing nginx, command by command, in a machine of its own: namespaces with other
processes and other contents of /etc, /run, /var/lib and /var/log. The nginx, the program and its settings are real; there is no engine."""
import os
import pathlib
import shutil
import subprocess

from front import BINARY, NGINX_DIR, free_port, leftovers
import pages

TOP = NGINX_DIR.parent
MACHINE = r"""
set -euo pipefail
cp -a /etc "$W/etc" && rm -rf "$W/etc/sandcgi" "$W/etc/nginx/sandcgi" && mount --bind "$W/etc" /etc
for place in /run /var/lib /var/log; do mount -t tmpfs tmpfs "$place"; done
mkdir -p /var/lib/nginx /var/log/nginx "$W/bin" "$W/www"
ln -s "$BINARY" "$W/bin/sandcgi"
PATH=$W/bin:$PATH:/usr/sbin:/sbin
echo "their page" >"$W/www/index.html" && chmod 0755 "$W" "$W/www"
cat >/etc/nginx/nginx.conf <<END
user www-data;
pid /run/nginx.pid;
events { }
http {
    include /etc/nginx/site.conf;
}
END
cat >/etc/nginx/site.conf <<END
server {
    listen 127.0.0.1:$PORT;
    server_name other.test sandbox.example.org;
    root $W/www;
}
END
nginx
trap 'kill $(cat /run/nginx.pid) $(jobs -p) 2>/dev/null; wait' EXIT

# add_lines FILE: does what the output in FILE says.
add_lines()
{
    local where='' file line
    while IFS= read -r line; do
        if [[ $line =~ ^'  in the block '(http|server).*\((.*)\):$ ]]; then
            where=${BASH_REMATCH[1]} file=${BASH_REMATCH[2]}
        elif [[ -n $where && $line == *include* ]]; then
            sed -i "/^$where {/a $line" "$file"
            where=
        fi
    done <"$1"
}

# remove_lines: takes them out again.
remove_lines()
{
    sed -i '\|include /etc/nginx/sandcgi/|d' /etc/nginx/nginx.conf /etc/nginx/site.conf
}

ask()
{
    curl -s -o "$W/answer" -w '%{http_code}' --max-time 20 -H 'Host: sandbox.example.org' "$@"
}

call()
{
    ask "http://127.0.0.1:$PORT$1/mcp" -H "Authorization: Bearer $2" -H 'Content-Type: application/json' \
        -H 'Accept: application/json, text/event-stream' -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
}

# Of nginx's workers, those that still accept: one that shuts down has another title.
accepting()
{
    ps -o pid=,args= --ppid "$(cat /run/nginx.pid)" | awk '/nginx: worker process$/ { print $1 }'
}

# reloaded COMMAND…: runs it, and waits until none of the workers before it accepts.
reloaded()
{
    local before
    before=$(accepting)
    "$@" || return
    for ((i = 0; i < 100; i++)); do
        [[ -z $(accepting) || -n $(comm -12 <(sort <<<"$before") <(accepting | sort)) ]] || return 0
        sleep 0.1
    done
    echo "nginx did not reload"
}

# walk_in: the documented commands. Sets server, its process, and token; the server listens then.
walk_in()
{
    local command how i
    while IFS= read -r command; do
        [[ $command != *"# as said" ]] || { add_lines "$W/out"; continue; }
        [[ $command != "sandcgi serve"* ]] || command="$command >$W/serve.log 2>&1 &"
        [[ $command != "sandcgi setup"* ]] || command="$command >$W/out"
        how=
        [[ $command != *"-s reload"* ]] || how=reloaded
        $how eval "$command" || { echo "FAILED ($?): $command"; cat "$W/out"; exit 1; }
        [[ $command != "sandcgi serve"* ]] || server=$!
    done <"$W/commands"
    for ((i = 0; i < 100; i++)); do [[ ! -S /run/sandcgi/hub.sock ]] || break; sleep 0.1; done
    token=$(sed -n s/^MCP_API_TOKEN=//p /etc/sandcgi/sandcgi.conf)
}
"""
STORY = r"""
# The documented way out; what is left then.
leave()
{
    while IFS= read -r command; do
        [[ $command != *"# as said" ]] || { remove_lines; continue; }
        how=
        [[ $command != *"-s reload"* ]] || how=reloaded
        $how eval "$command" || { echo "FAILED ($?): $command"; exit 1; }
    done <"$W/way-out"
    echo "left $(ls -d /etc/nginx/sandcgi /etc/sandcgi /var/lib/sandcgi /run/sandcgi 2>/dev/null | wc -l) $(grep -hc '^sandcgi:' /etc/passwd /etc/group | xargs)"
    echo "their site $(ask "http://127.0.0.1:$PORT/index.html") $(cat "$W/answer"), $(call "" "$token")"
}

walk_in
echo "call $(call "$BELOW" "$token") $(grep -c run_code "$W/answer")"
echo "wrong $(call "$BELOW" "${token%?}x")"
reloaded sandcgi token add --config /etc/sandcgi/sandcgi.conf --tenant alice --expires 1h >"$W/another" && echo "told nginx"
echo "another $(call "$BELOW" "$(cat "$W/another")")"
echo "site $(ask "http://127.0.0.1:$PORT/index.html") $(cat "$W/answer")"
ask "http://127.0.0.1:$PORT$BELOW/mcp" -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' >/dev/null
echo "hub $(grep -c 'info hub: GET listen' "$W/serve.log")"
echo "upload $(ask -X PUT -d x "http://127.0.0.1:$PORT$BELOW/uploads/$(printf '0%.0s' {1..32})")"
echo "root $(stat -c '%a %G' /var/lib/sandcgi/sandboxes) secrets $(stat -c %a /etc/sandcgi/sandcgi.conf /etc/nginx/sandcgi/{front-secret.conf,file-key.conf,tokens.map} | xargs)"
# as ACCOUNT COMMAND…
as() { setpriv --reuid "$1" --regid "$(id -g "$1")" --init-groups "${@:2}"; }
# holders ACCOUNT: how many files with a secret it can read.
holders() { as "$1" grep -rlFs -D skip -f - /etc /run /var/lib /var/log <<<"$secrets" | wc -l; }
secrets=$(sed -n 's/^\(FILE_SECRET\|MCP_API_TOKEN\)=//p' /etc/sandcgi/sandcgi.conf; grep -hoE '[0-9a-f]{64}' /etc/nginx/sandcgi/front-secret.conf /etc/nginx/sandcgi/file-key.conf)
echo "secrets $(grep -c "^.\{16\}" <<<"$secrets")"
for account in root sandcgi www-data nobody; do echo "$(as "$account" id -un) reads $(holders "$account")"; done
echo "log $(grep "POST $BELOW/mcp" /var/log/nginx/sandcgi.log | grep -c '"default"')"
# Without --config: the settings of /etc/sandcgi.
echo "status $(sandcgi status --json | grep -c '"startedAt"')"
echo "list $(sandcgi token list | grep -c alice)"
reloaded bash -e "$W/tokens" >"$W/said" && echo "tokens as written"
(cd "$W" && bash -e "$W/backups" >"$W/said") && echo "backup as written"
# Another FILE_SECRET, as the page has it.
sed -i 's/^FILE_SECRET=/FILE_SECRET_OLD=/' /etc/sandcgi/sandcgi.conf
printf 'FILE_SECRET=%s\nFILE_SECRET_OLD_UNTIL=%s\n' "$(openssl rand -hex 32)" "$(date -u -d '30 days' +%F)" >>/etc/sandcgi/sandcgi.conf
reloaded bash -e "$W/secret" >"$W/said" && echo "another secret $(grep -c old_links /etc/nginx/sandcgi/file-key.conf) $(call "$BELOW" "$token")"
echo "check $(sandcgi check --values 2>/dev/null | grep -c "^MCP_API_TOKEN=")"
echo "doctor $(sandcgi doctor | grep -c "  /etc/sandcgi/sandcgi.conf: what they name is there")"
echo "backup $(sandcgi backup - 2>&1 >/dev/null | grep -c 'backed up: 0 conversations')"
echo "elsewhere $(SANDCGI_CONFIG=/nowhere sandcgi status 2>&1 | grep -c /nowhere) $(SANDBOX_ROOT=/nowhere sandcgi check 2>&1 | grep -c "FILE_SECRET must be set")"
echo "down $(SANDCGI_BROKER=/nowhere sandcgi status 2>&1 | grep -c "the server of /etc/sandcgi/sandcgi.conf is not running")"
before=$(sha256sum /etc/sandcgi/sandcgi.conf /etc/nginx/sandcgi/*)
sandcgi setup nginx --server-name sandbox.example.org ${BELOW:+--path $BELOW/} >"$W/again"
[[ $before == "$(sha256sum /etc/sandcgi/sandcgi.conf /etc/nginx/sandcgi/*)" ]] && echo "again unchanged"
grep -o "nginx includes both files already" "$W/again"
echo "reload $(grep -c "The server runs.*sandcgi reload" "$W/again") $(grep -c "Start the server" "$W/again" || true)"
ls -d /etc/nginx/sandcgi.* 2>/dev/null || true
# OAuth without a provider, as its page has it.
printf 'SANDCGI_OAUTH=builtin\n' >>/etc/sandcgi/sandcgi.conf
oauth()
{
    reloaded bash -e "$W/passphrase" <<<"a passphrase of an operator" >"$W/said"
}
[[ -n $BELOW ]] || { oauth && echo "oauth $(ask "http://127.0.0.1:$PORT/.well-known/oauth-authorization-server") $(call "" "$token")"; leave; exit; }
sed -i '/^SANDCGI_OAUTH=/d' /etc/sandcgi/sandcgi.conf
mkdir -p "$W/page/page" && echo "our page" >"$W/page/index.html" && chmod -R a+rX "$W/page"
sandcgi setup nginx --server-name sandbox.example.org --path $BELOW --page "$W/page" >"$W/again" && reloaded nginx -s reload
echo "page $(ask "http://127.0.0.1:$PORT$BELOW/" >/dev/null && cat "$W/answer")"
sandcgi setup nginx --server-name sandbox.example.org --path $BELOW >"$W/again"
echo "page stays $(grep -c "$W/page" /etc/nginx/sandcgi/page.conf)"
bad() { "$@" 2>&1 | tail -n 1; }
echo "bad $(bad sandcgi setup nginx --server-name other.test ${BELOW:+--path $BELOW})"
echo "bad $(bad sandcgi setup nginx --server-name sandbox.example.org --path /elsewhere)"
echo "bad $(bad sandcgi setup nginx --server-name sandbox.example.org --path $BELOW --page /nowhere)"
echo "SANDBOX_MEMORY=lots" >>/etc/sandcgi/sandcgi.conf
echo "bad $(bad sandcgi setup nginx --server-name sandbox.example.org)"
sed -i '/SANDBOX_MEMORY=lots/d' /etc/sandcgi/sandcgi.conf
sed -i "s|^http {|http { limit_conn_zone \$uri zone=sandcgi_conns:32k;|" /etc/nginx/nginx.conf
echo "bad $(bad sandcgi setup nginx --server-name sandbox.example.org ${BELOW:+--path $BELOW})"
"""


def documented_commands(walked, page="nginx/README.md"):
    return pages.walked(page)[walked]


NAMESPACES = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc")


def machine_environment(folder, port, environment):
    """Of a script that has MACHINE in it; folder is its W, port its nginx's."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SANDBOX_", "SANDCGI_", "DOCKER_"))}
    return clean | {"W": folder, "BINARY": str(BINARY), "PORT": str(port)} | environment


def in_machine(folder, script, environment, *namespaces):
    """Runs such a script to its end, in namespaces of its own."""
    return subprocess.run([*NAMESPACES, *namespaces, "bash", "-c", script], check=False, capture_output=True, text=True, timeout=600,
                          env=machine_environment(folder, free_port(), environment))


def walk(checks, below):
    if os.geteuid() != 0 or not BINARY.exists():
        return checks.skip("the way into an existing nginx", "needs root and a build")
    folder = leftovers.make_folder("sandcgi-walk-")
    commands = documented_commands("existing nginx")
    if below:
        commands = commands.replace("example.org", f"example.org --path {below}/", 1)
    pathlib.Path(folder, "commands").write_text(commands, encoding="utf-8")
    pathlib.Path(folder, "way-out").write_text(documented_commands("out of nginx"), encoding="utf-8")
    for name, text in (("tokens", documented_commands("tokens")), ("secret", documented_commands("another secret")),
                       ("backups", documented_commands("backup", "fcgi/operations.md")), ("passphrase", documented_commands("passphrase", "fcgi/oauth.md"))):
        pathlib.Path(folder, name).write_text(text, encoding="utf-8")
    try:
        done = in_machine(folder, MACHINE + STORY, {"BELOW": below, "DOCKER_HOST": "unix:///run/no-engine.sock"})
        said = done.stdout.splitlines()
        log = pathlib.Path(folder, "serve.log")
        story = done.stdout + done.stderr + (log.read_text(encoding="utf-8") if log.exists() else "")
        where = f"at {below or '/'}"
        for line in ("call 200 1", "wrong 401", "told nginx", "another 200", "site 200 their page", "upload 403", "hub 1", "root 710 www-data secrets 600 600 600 600", "log 1",
                     "secrets 4", "root reads 4", "sandcgi reads 0", "www-data reads 0", "nobody reads 0",
                     "status 1", "list 1", "tokens as written", "backup as written", "another secret 1 200", "check 1", "doctor 1", "backup 1", "elsewhere 1 1", "down 1", "again unchanged", "nginx includes both files already", "reload 1 0"):
            checks.check(f"the documented way, {where}: {line}", line in said, story)
        if not below:
            for line in ("oauth 200 200", "left 0 0 0", "their site 200 their page, 404"):
                checks.check(f"the documented way out: {line}", line in said, story)
            return None
        for line in ("page our page", "page stays 2"):
            checks.check(f"{where}: {line}", line in said, story)
        bad = [line for line in said if line.startswith("bad ")]
        for line, words in zip(bad, ("its host must be other.test", "its path must be /elsewhere", "make page", "SANDBOX_MEMORY", "nginx refuses")):
            checks.check(f"{where}: one line says what is wrong: {words}", words in line, line)
        checks.equal(f"{where}: five refusals", len(bad), 5)
    finally:
        shutil.rmtree(folder)
    return None


def at_the_root(checks):
    walk(checks, "")


def below_a_path(checks):
    walk(checks, "/sandbox")


GROUPS = [at_the_root, below_a_path]
