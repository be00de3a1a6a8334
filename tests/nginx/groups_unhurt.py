"""An nginx that is there is never hurt: whatever fails, whatever is away, it starts. Each story is told in a machine of its own (groups_walk)."""
import os
import shutil

from front import BINARY, TOP, free_port, leftovers
from groups_walk import MACHINE, in_machine

BEGIN = r"""
S="sandcgi setup nginx"
FILES=/etc/nginx/sandcgi
# said COMMAND…: its last line, and its status.
said() { local out status=0; out=$("$@" 2>&1) || status=$?; echo "$status $(tail -n 1 <<<"$out")"; }
green() { nginx -t -q 2>"$W/problem" && echo "$1: green" || { echo "$1: refused: $(cat "$W/problem")"; }; }
# all_bytes: of what nginx and the server read.
all_bytes() { find /etc/nginx $(ls -d /etc/sandcgi 2>/dev/null) -type f -printf '%p %m %u %g ' -exec sha256sum {} \; | sort; }
"""
STORY = BEGIN + r"""
mode() { stat -c %a "$1"; }
# An option is remembered, and a server block is found or there is none.
before=$(all_bytes)
echo "no name: $(said $S)"
echo "other name: $(said $S --server-name nowhere.test)"
[[ $before == "$(all_bytes)" && ! -e $FILES && ! -e /etc/sandcgi ]] && echo "nothing was made"
sed -i "s|listen 127.0.0.1:$PORT;|& listen 127.0.0.1:$TLS ssl; ssl_certificate $CERT; ssl_certificate_key $KEY;|" /etc/nginx/site.conf
cp -r /etc/nginx "$W/own"
$S --server-name sandbox.example.org --nginx-conf /etc/nginx/../nginx/nginx.conf --path /sand >"$W/out"
grep -o 'PUBLIC_BASE_URL=.*' /etc/sandcgi/sandcgi.conf | sed "s/:$TLS/:TLS/"
echo "log $(mode /var/log/nginx/sandcgi.log)"

# One of two lines.
add_lines "$W/out"
sed -i '\|include /etc/nginx/sandcgi/server.conf|d' /etc/nginx/site.conf
green "http.conf alone"
$S >"$W/out" && echo "half: $(grep -c 'http.conf;' "$W/out" || true) $(grep -c 'include /etc/nginx/sandcgi/server.conf;' "$W/out")"
add_lines "$W/out"
sed -i '\|include /etc/nginx/sandcgi/http.conf|d' /etc/nginx/nginx.conf
$S >"$W/out" && echo "other half: $(grep -c 'include /etc/nginx/sandcgi/http.conf;' "$W/out") $(grep -c 'server.conf;' "$W/out" || true)"
add_lines "$W/out"
green both
$S >"$W/out" && grep -o "nginx includes both files already" "$W/out"
grep -h nginx-conf $FILES/setup

# Away: the disk, the sockets, the tokens, the server.
mv /var/lib/sandcgi "$W/away" && rm -rf /run/sandcgi && mv $FILES/tokens.map "$W/tokens.map"
green "without disk, sockets and tokens"
kill "$(cat /run/nginx.pid)" && while [[ -e /run/nginx.pid ]]; do sleep 0.1; done
nginx && echo "it starts, $(call /sand x)"
mv "$W/away" /var/lib/sandcgi && mv "$W/tokens.map" $FILES/tokens.map

# Access tokens of our own.
echo SANDCGI_OAUTH=builtin >>/etc/sandcgi/sandcgi.conf
echo "oauth: $(said $S | grep -o '^0 Another token')"
green oauth
echo "settings: $(grep -c SANDCGI_OAUTH_AUDIENCE /etc/sandcgi/sandcgi.conf || true), key $(grep -c 'set $sandcgi_file_key "' $FILES/file-key.conf), oauth $(ls $FILES | grep -c oauth.conf)"

# Where mount namespaces are not allowed, as in many containers.
mkdir "$W/none" && printf '#!/bin/sh\necho not permitted >&2; exit 1\n' >"$W/none/unshare" && chmod +x "$W/none/unshare"
echo SANDBOX_URL_TTL=2h >>/etc/sandcgi/sandcgi.conf
echo "no namespaces: $(PATH=$W/none:$PATH said $S | grep -o '^0 Another token') $(grep -c SIGNED_URLS=1 $FILES/values)"
green "no namespaces"
sed -i /SANDBOX_URL_TTL/d /etc/sandcgi/sandcgi.conf

# What nginx refuses changes nothing; nor what was refused before us.
before=$(all_bytes)
echo "SANDBOX_URL_TTL=1h" >>/etc/sandcgi/sandcgi.conf
sed -i 's|^http {|http { limit_conn_zone $uri zone=sandcgi_conns:32k;|' /etc/nginx/nginx.conf
now=$(all_bytes)
echo "conflict: $(said $S)"
[[ $now == "$(all_bytes)" ]] && echo "a conflict changes nothing"
sed -i 's|limit_conn_zone.*|nonsense;|' /etc/nginx/nginx.conf
echo "nonsense: $(said $S)"
sed -i 's|nonsense;||' /etc/nginx/nginx.conf
sed -i /SANDBOX_URL_TTL/d /etc/sandcgi/sandcgi.conf

# Purged: where nginx includes our files, 503 and no token; then the new tokens alone.
token=$(sed -n s/^MCP_API_TOKEN=//p /etc/sandcgi/sandcgi.conf)
sandcgi token add --tenant alice --no-reload >"$W/alice" 2>/dev/null
sh "$TOP/debian/postrm" remove && [[ -e $FILES/tokens.map ]] && echo "removed, it has its tokens"
sh "$TOP/debian/postrm" purge >"$W/purged"
green purged
reloaded nginx -s reload
echo "purged: $(ls $FILES | xargs), $(call /sand "$token"), $(ask "http://127.0.0.1:$PORT/sand/files/x"), site $(ask "http://127.0.0.1:$PORT/index.html")"
grep -c "include $FILES/\|rm -r $FILES" "$W/purged"
$S --server-name sandbox.example.org --path /sand >"$W/out"
echo "again: $(grep -c "^[^#]" $FILES/tokens.map) token, not $(grep -c "$(cut -c5-12 "$W/alice")" $FILES/tokens.map || true)"
sed -i '\|include /etc/nginx/sandcgi/|d' /etc/nginx/nginx.conf /etc/nginx/site.conf
sh "$TOP/debian/postrm" purge >"$W/purged"
[[ ! -e $FILES && ! -s $W/purged ]] && echo "purged, nothing is left"
green "after the purge"

# A machine without a site.
printf 'events { }\npid /run/nginx.pid;\nuser www-data;\nhttp {\n    include /etc/nginx/conf.d/*.conf;\n    server { listen 127.0.0.1:%s; server_name _; }\n}\n' "$PORT" >/etc/nginx/nginx.conf
rm -rf /etc/nginx/conf.d && mkdir /etc/nginx/conf.d
$S --server-name first.test >"$W/out"
echo "text: $(grep -c "server_name first.test;\|certbot\|openssl req" "$W/out")"
echo "no certificate: $(said $S --server-name first.test --create-site --certificate "$CERT")"
$S --server-name first.test --create-site --certificate "$CERT" --key "$KEY" >"$W/out"
green created
echo "created: $(nginx -T 2>/dev/null | grep -c 'server_name first.test;\|# configuration file /etc/nginx/sandcgi/server.conf:')"
echo "another: $(said $S --server-name second.test --path / --create-site --certificate "$CERT" --key "$KEY")"
before=$(all_bytes)
$S --create-site --certificate "$CERT" --key "$KEY" >"$W/out" && [[ $before == "$(all_bytes)" ]] && echo "created once"
"""
WANTED = (
    ("setup without a name says which server blocks there are", "no name: 1 sandcgi setup: --server-name must be the host name of a server block; nginx has these: other.test sandbox.example.org"),
    ("a name without a server block is refused with the names that there are", "other name: 1 sandcgi setup: nginx has no server block for nowhere.test; nginx has these: other.test "
     "sandbox.example.org. Name one of them by --server-name, or have one made by --create-site"),
    ("a refusal makes nothing", "nothing was made"),
    ("links have the port of the server block's TLS", "PUBLIC_BASE_URL=https://sandbox.example.org:TLS/sand"),
    ("the log is not readable for all", "log 640"),
    ("nginx starts with http.conf alone, as when the site is switched off", "http.conf alone: green"),
    ("with http.conf alone the other line is told", "half: 0 1"),
    ("with server.conf alone the other line is told", "other half: 1 0"),
    ("both lines make nginx green", "both: green"),
    ("a call without options remembers those of before", "nginx includes both files already"),
    ("the path of nginx's configuration is remembered", "nginx-conf=/etc/nginx/../nginx/nginx.conf"),
    ("nginx -t is green without SANDBOX_ROOT, sockets and tokens", "without disk, sockets and tokens: green"),
    ("nginx starts without them, and no token counts then", "it starts, 401"),
    ("SANDCGI_OAUTH=builtin can be set up", "oauth: 0 Another token"),
    ("with it nginx is green", "oauth: green"),
    ("no value that follows from others becomes a setting, and the key of files is there", "settings: 0, key 1, oauth 1"),
    ("where no mount namespace can be made, setup does its work", "no namespaces: 0 Another token 1"),
    ("and nginx is green", "no namespaces: green"),
    ("a conflict with the operator's configuration is told", "conflict: 1 sandcgi setup: nginx refuses its configuration with the new files: "),
    ("and changes nothing", "a conflict changes nothing"),
    ("a configuration that nginx refused before is told as such", "nonsense: 1 sandcgi setup: nginx refuses its configuration as it is, without the files of sandcgi: "),
    ("a package that is removed keeps its tokens", "removed, it has its tokens"),
    ("after a purge nginx is green", "purged: green"),
    ("the files that nginx includes answer 503, and hold no secret", "purged: http.conf server.conf, 503, 503, site 200"),
    ("a purge names the two lines and the folder", "3"),
    ("tokens of before a purge are not valid after a new setup", "again: 1 token, not 0"),
    ("a purge leaves nothing where nginx includes nothing", "purged, nothing is left"),
    ("and nginx is green", "after the purge: green"),
    ("without a site the text of one is printed, with ways to a certificate", "text: 2"),
    ("--create-site needs certificate and key", "no certificate: 1 sandcgi setup: --create-site needs --certificate FILE and --key FILE, which are there. "),
    ("a site that was made is green", "created: green"),
    ("it includes the files", "created: 2"),
    ("a site is not made over another", "another: 1 sandcgi setup: "),
    ("nor twice", "created once"))
STEPS = BEGIN + r"""
$S --server-name sandbox.example.org >"$W/out"
add_lines "$W/out"
# Each of these programs counts its calls, and fails at one: as it would on a full disk, or by the user's ^C.
mkdir "$W/wrapped"
for name in mv cp ln nginx chown chgrp; do
    cat >"$W/wrapped/$name" <<END
#!/bin/sh
n=\$((\$(cat $W/count) + 1))
echo \$n >$W/count
if [ \$n = "\$(cat $W/at)" ]; then
    echo "$name \$*" >$W/step
    [ \$(cat $W/how) != break ] || exit 1
    kill -INT 0
fi
exec $(PATH=$PATH:/usr/sbin type -P $name) "\$@"
END
    chmod +x "$W/wrapped/$name"
done
# Settings that change several files.
printf 'SANDBOX_URL_TTL=1h\n' >>/etc/sandcgi/sandcgi.conf
sed -i -e 's/^FILE_SECRET=.*/FILE_SECRET=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/' -e /^SANDCGI_HUB=/d /etc/sandcgi/sandcgi.conf
cp -a /etc/nginx "$W/nginx-before" && cp -a /etc/sandcgi "$W/sandcgi-before"
before=$(all_bytes)
back() { rm -rf /etc/nginx/* /etc/sandcgi/* && cp -a "$W/nginx-before/." /etc/nginx/ && cp -a "$W/sandcgi-before/." /etc/sandcgi/; }
# fail_at N HOW: says what is wrong then; fails when no step was left.
fail_at()
{
    local status=0
    echo 0 >"$W/count"; echo "$1" >"$W/at"; echo "$2" >"$W/how"; rm -f "$W/step"
    PATH=$W/wrapped:$PATH setsid -w $S >"$W/out" 2>&1 || status=$?
    [[ -e $W/step ]] || return 1
    nginx -t -q 2>/dev/null || echo "HURT: nginx is refused after $2 at $1: $(cat "$W/step")"
    [[ ! -e $FILES/.new && -z $(find /etc/nginx /etc/sandcgi -name '*.setup-*' -o -name '*.??????' -type f) ]] || echo "HURT: something is left after $2 at $1: $(cat "$W/step")"
    if ((status)); then
        [[ $before == "$(all_bytes)" ]] || echo "HURT: changed after $2 at $1 (status $status): $(cat "$W/step"): $(diff <(echo "$before") <(all_bytes))"
        unchanged=$((unchanged + 1))
    else
        [[ $2 == interrupt || $(cat "$W/step") == ch* || $(cat "$W/step") == *before* || $(cat "$W/step") == "nginx -t"* ]] || echo "HURT: not told: $2 at $1: $(cat "$W/step")"
        [[ $complete == "$(all_bytes)" ]] || echo "HURT: incomplete after $2 at $1: $(cat "$W/step"): $(diff <(echo "$complete") <(all_bytes))"
        back
        completed=$((completed + 1))
    fi
}
$S >"$W/out" && complete=$(all_bytes) && back
[[ $before == "$(all_bytes)" && $before != "$complete" ]] && echo "the story begins"
# Those of render.sh are alike, so one in five is enough; at the end, where files are replaced, each in both ways.
echo 0 >"$W/count"; echo none >"$W/at"
PATH=$W/wrapped:$PATH $S >"$W/out" && back
steps=$(cat "$W/count") unchanged=0 completed=0
for ((n = 1; n <= steps; n += n < steps - 22 ? 5 : 1)); do
    how=(break) && ((n % 2)) || how=(interrupt)
    ((n <= steps - 16)) || how=(break interrupt)
    for one in "${how[@]}"; do fail_at "$n" "$one" || { echo "no step $n: $(cat "$W/out")"; break 2; }; done
done
echo "steps $((steps > 30)) unchanged $((unchanged > 10)) completed $((completed > 2))"
# A full disk: as many blocks are free as the number says.
mount -t tmpfs -o size=600k tmpfs "$FILES" && cp -a "$W/nginx-before/sandcgi/." "$FILES/"
full=0
for free in 0 2 8 16 24 32 40 48; do
    rm -f "$FILES/filler"; cat /dev/zero >"$FILES/filler" 2>/dev/null || true
    truncate -s -$((free * 4096)) "$FILES/filler"
    before=$(all_bytes) status=0
    $S >"$W/out" 2>&1 || status=$?
    ((status == 0)) && break
    [[ $before == "$(all_bytes)" ]] || echo "HURT: changed by a full disk, $free blocks: $(diff <(echo "$before") <(all_bytes))"
    [[ ! -e $FILES/.new ]] || echo "HURT: something is left, $free blocks"
    full=$((full + 1))
done
rm -f "$FILES/filler"
green "full disk"
echo "full disk $((full > 2))"
"""
# Killed at each rename of one file, where nginx is told less than before: what was said of a cache would be used, but not there.
KILLED = BEGIN + r"""
$S --server-name sandbox.example.org >"$W/out"
add_lines "$W/out"
echo SANDCGI_OAUTH=builtin >>/etc/sandcgi/sandcgi.conf
$S >"$W/out"
sed -i /SANDCGI_OAUTH/d /etc/sandcgi/sandcgi.conf
mkdir "$W/wrapped"
cat >"$W/wrapped/mv" <<END
#!/bin/sh
case \$2 in *.setup-new | */nothing.conf) ;; *) exec $(type -P mv) "\$@" ;; esac
n=\$((\$(cat $W/count) + 1))
echo \$n >$W/count
[ \$n != "\$(cat $W/at)" ] || kill -KILL 0
exec $(type -P mv) "\$@"
END
chmod +x "$W/wrapped/mv"
cp -a /etc/nginx "$W/nginx-before" && cp -a /etc/sandcgi "$W/sandcgi-before"
for ((n = 1; n < 20; n++)); do
    rm -rf /etc/nginx /etc/sandcgi 2>/dev/null; cp -a "$W/nginx-before/." /etc/nginx/ && cp -a "$W/sandcgi-before/." /etc/sandcgi/
    echo 0 >"$W/count"; echo "$n" >"$W/at"
    PATH=$W/wrapped:$PATH setsid -w $S >"$W/out" 2>&1 && break
    nginx -t -q 2>"$W/problem" || echo "HURT: nginx is refused after a kill at $n: $(cat "$W/problem")"
    ((n == 4)) || continue
    $S >"$W/out" || echo "HURT: after a kill at $n: $(cat "$W/out")"
    [[ -z $(find /etc/nginx /etc/sandcgi -name '*.setup-*' -o -name .new) ]] || echo "HURT: something is left after a kill at $n"
    grep -q SANDCGI_SECRET $FILES/front-secret.conf && grep -q 'location = /mcp {' $FILES/server.conf || echo "HURT: incomplete after a kill at $n"
done
echo "killed $((n > 5 && n < 20))"
"""
# Machines as operators have them.
ODD = BEGIN + r"""
green_after() { echo "$1 $(nginx -t -q 2>&1 && echo green)"; }
# An include by a path that nginx completes, and one in a folder outside of nginx's.
$S --server-name sandbox.example.org >"$W/out"
cp -a /etc/nginx "$W/nginx-before" && cp -a /etc/sandcgi "$W/sandcgi-before"
back() { rm -rf /etc/nginx/* /etc/sandcgi && cp -a "$W/nginx-before/." /etc/nginx/ && cp -a "$W/sandcgi-before" /etc/sandcgi; }
sed -i 's|^http {|http { include sandcgi/http.conf;|' /etc/nginx/nginx.conf
sed -i 's|^server {|server { include sandcgi/server.conf;|' /etc/nginx/site.conf
sh "$TOP/debian/postrm" purge >"$W/purged"
green_after "relative include, purged: $(ls $FILES | xargs)"
back
mkdir "$W/sites" && mv /etc/nginx/site.conf "$W/sites/"
sed -i "s|include .*|include $W/sites/*.conf;|" /etc/nginx/nginx.conf
sed -i -e '1i include /etc/nginx/sandcgi/http.conf;' -e 's|^server {|server { include /etc/nginx/../nginx/sandcgi/server.conf;|' "$W/sites/site.conf"
$S >"$W/out" && echo "found: $(grep -c "nginx includes both files already" "$W/out")"
sh "$TOP/debian/postrm" purge >"$W/purged"
green_after "include elsewhere, purged: $(ls $FILES | xargs)"
back

# A settings file and nginx's main file that are links.
mv /etc/nginx/nginx.conf /etc/sandcgi/sandcgi.conf "$W/" && ln -s "$W/nginx.conf" /etc/nginx/ && ln -s "$W/sandcgi.conf" /etc/sandcgi/
echo SANDBOX_URL_TTL=2h >>"$W/sandcgi.conf" && sed -i /SANDCGI_HUB=/d "$W/sandcgi.conf"
$S >"$W/out" && echo "links stay: $(readlink /etc/sandcgi/sandcgi.conf /etc/nginx/nginx.conf | grep -c "^$W/") $(grep -c SANDCGI_HUB= "$W/sandcgi.conf")"
rm "$W/nginx.conf" "$W/sandcgi.conf" && back

# The account of nginx in another file, with signs of a directory service.
echo 'we.b+x@corp:x:4242:4242::/nonexistent:/bin/false' >>/etc/passwd && echo 'grp.b+x@corp:x:4242:' >>/etc/group
echo 'user we.b+x@corp grp.b+x@corp;' >/etc/nginx/main.inc && sed -i 's|^user.*|include /etc/nginx/main.inc;|' /etc/nginx/nginx.conf
rm -rf $FILES /etc/sandcgi /var/lib/sandcgi
$S --server-name sandbox.example.org >"$W/out" && echo "account: $(grep LISTEN_GROUP /etc/sandcgi/sandcgi.conf) $(stat -c %G /var/lib/sandcgi/sandboxes)"
rm -rf /var/lib/sandcgi && back

# A folder that others use.
mkdir /etc/nginx/snippets.d && echo "# theirs" >/etc/nginx/snippets.d/theirs.conf
echo "others' folder: $(said $S --output /etc/nginx/snippets.d) $(ls -A /etc/nginx/snippets.d | xargs)"

# An upgrade of the package: a server that is stopped is no complaint, one that refuses is; nginx's files of before are told.
mkdir "$W/fake" && mkdir -p /run/systemd/system
printf '#!/bin/sh\n[ "$*" = "--quiet is-active sandcgi.service" ] || exit 1\nexit $(cat %s)\n' "$W/active" >"$W/fake/systemctl"
printf '#!/bin/sh\nexit 1\n' | tee "$W/fake/deb-systemd-invoke" >"$W/fake/invoke-rc.d"
chmod +x "$W/fake/"*
sed "s|/usr/libexec/sandcgi|$TOP|" "$TOP/debian/postinst" >"$W/postinst"
upgrade() { PATH=$W/fake:$PATH sh "$W/postinst" configure 0.2.0 2>&1; }
echo 3 >"$W/active"; echo "upgrade, stopped: $(upgrade)."
echo 0 >"$W/active"; echo "upgrade, refused: $(upgrade | grep -c "the new program is not taken up")"
echo 3 >"$W/active"; echo "# of before" >>$FILES/mcp.conf; echo "upgrade, other files: $(upgrade | grep -c "sandcgi setup nginx")"
back

# What cannot be written.
mount --bind /etc /etc && mount -o remount,bind,ro /etc
echo "read-only: $(said $S)"
umount /etc

# Names for several hosts, in a folder with files that are called so; the exact name counts first.
rm -rf $FILES /etc/sandcgi
mkdir "$W/here" && cd "$W/here" && touch a.example.org
for name in '*.example.org' .example.org '"~^[a-z]+\.example\.org$"'; do
    printf 'server { listen 127.0.0.1:%s ssl; ssl_certificate %s; ssl_certificate_key %s; server_name %s; }\n' "$TLS" "$CERT" "$KEY" "$name" >/etc/nginx/site.conf
    $S --server-name sandbox.example.org >"$W/out"; echo "$name: $(grep -c 'server of sandbox.example.org (/etc/nginx/site.conf)' "$W/out") $(grep -c org:$TLS /etc/sandcgi/sandcgi.conf)"
    rm -rf $FILES /etc/sandcgi
done
printf 'server { listen 127.0.0.1:%s ssl; ssl_certificate %s; ssl_certificate_key %s; server_name sandbox.example.org; }\n' "$((TLS + 1))" "$CERT" "$KEY" >>/etc/nginx/site.conf
$S --server-name sandbox.example.org >"$W/out"; echo "exact: $(grep -c org:$((TLS + 1)) /etc/sandcgi/sandcgi.conf)"
rm -rf $FILES /etc/sandcgi

# nginx's folder of sites is a link, and what is made there is refused.
mkdir "$W/conf.d" && rm -rf /etc/nginx/conf.d && ln -s "$W/conf.d" /etc/nginx/conf.d
sed -i 's|^http {|http { include /etc/nginx/conf.d/*.conf; limit_conn_zone $uri zone=sandcgi_conns:32k;|' /etc/nginx/nginx.conf
echo "linked folder: $(said $S --server-name first.test --create-site --certificate "$CERT" --key "$KEY" | cut -c1-60), $(ls "$W/conf.d" | xargs)"
sed -i 's|limit_conn_zone $uri zone=sandcgi_conns:32k;||' /etc/nginx/nginx.conf
$S --server-name first.test --create-site --certificate "$CERT" --key "$KEY" >"$W/out"
green_after "linked folder: $(ls "$W/conf.d" | xargs) $(readlink /etc/nginx/conf.d | grep -c "^$W/")"
"""
ODD_WANTED = (
    ("an include by a short path is found by a purge", "relative include, purged: http.conf server.conf green"),
    ("an include of another path is found", "found: 1"),
    ("an include in a folder elsewhere is found by a purge", "include elsewhere, purged: http.conf server.conf green"),
    ("a settings file that is a link stays one, and what it leads to is changed", "links stay: 2 1"),
    ("nginx's account is found in another file", "account: SANDCGI_LISTEN_GROUP=grp.b+x@corp grp.b+x@corp"),
    ("a folder with files of others is refused", "others' folder: 1 sandcgi setup: /etc/nginx/snippets.d has other files; --output must be a folder for these alone, "
     "such as /etc/nginx/snippets.d/sandcgi theirs.conf"),
    ("an upgrade says nothing of a server that is stopped", "upgrade, stopped: ."),
    ("it says when the server refuses the new program", "upgrade, refused: 1"),
    ("and when nginx's files are those of before", "upgrade, other files: 1"),
    ("a folder that cannot be written is told", "read-only: 1 sandcgi setup: cannot write into /etc/nginx/sandcgi; check its permissions and the disk"),
    ("a block of *.example.org is found", "*.example.org: 1 1"),
    ("a block of .example.org is found", ".example.org: 1 1"),
    ("a block of a regular expression is found", '"~^[a-z]+\\.example\\.org$": 1 1'),
    ("the block of the exact name counts first", "exact: 1"),
    ("what is refused makes nothing in a linked folder", "linked folder: 1 sandcgi setup: nginx refuses its configuration with the ne, "),
    ("and what is not is made there", "linked folder: sandcgi.conf 1 green"))


def machine(checks, what, script, **environment):
    """The output of a script in a machine; None where there can be none."""
    if os.geteuid() != 0 or not BINARY.exists():
        return checks.skip(what, "needs root and a build")
    folder = leftovers.make_folder("sandcgi-unhurt-")
    try:
        done = in_machine(folder, MACHINE + script, {"BELOW": "", "DOCKER_HOST": "unix:///run/no-engine.sock", "TOP": str(TOP), "TLS": str(free_port()), **environment})
        return done.stdout + done.stderr
    finally:
        shutil.rmtree(folder)


CERTIFICATE = r"""
CERT=$W/cert.pem KEY=$W/key.pem
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=first.test -keyout "$KEY" -out "$CERT" 2>/dev/null
"""


def check_lines(checks, told, wanted):
    """wanted: pairs of a sentence and a line, or its beginning, which ends with a blank."""
    lines = told.splitlines()
    for sentence, line in wanted:
        good = any(one == line or (line.endswith(" ") and one.startswith(line)) for one in lines)
        checks.check(sentence, good, f"wanted {line!r}\n{told}")
        told = told if good else "as above"


def never_hurt(checks):
    told = machine(checks, "nginx is never hurt", CERTIFICATE + STORY)
    if told is not None:
        check_lines(checks, told, WANTED)


def odd_machines(checks):
    told = machine(checks, "machines as operators have them", CERTIFICATE + ODD)
    if told is not None:
        check_lines(checks, told, ODD_WANTED)


def killed_anywhere(checks):
    told = machine(checks, "setup that is killed", KILLED)
    if told is not None:
        checks.check("wherever setup nginx is killed, nginx is green, and the next call mends all", "HURT" not in told and "killed 1" in told, told)


def each_step(checks):
    told = machine(checks, "whatever fails, each byte is as it was", STEPS)
    if told is None:
        return
    lines = told.splitlines()
    checks.check("whichever step of setup nginx fails or is interrupted, each byte is as it was or as it shall be", "HURT" not in told and "no step" not in told, told)
    for line in ("the story begins", "steps 1 unchanged 1 completed 1", "full disk: green", "full disk 1"):
        checks.check(f"steps that fail: {line}", line in lines, told)


GROUPS = [never_hurt, odd_machines, killed_anywhere, each_step]
