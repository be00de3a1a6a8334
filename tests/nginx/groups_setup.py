"""Rendering the templates, and the pieces inside an existing server block."""
import json
import os
import re

from front import NGINX_DIR, Site, find_nginx, token


def rendering(checks):
    site = Site()
    try:
        done = site.check_config()
        checks.check("nginx -t accepts the complete site", done.returncode == 0, done.stderr)
        checks.check("nothing is left over in a rendered file",
                     not any(re.search(r"@[A-Z_]+@", open(site.path("conf/" + name), encoding="utf-8").read())
                             for name in os.listdir(site.path("conf")) if name.endswith(".conf")))
        checks.equal("the token file is for its owner only", os.stat(site.path("conf/tokens.map")).st_mode & 0o777, 0o600)
        for extra, word in (("NO_SUCH=1", "unknown setting"), ("RATE=0", "positive"), ("RATE=1;}", "must not contain"),
                            ("LOG_DIR=var/log", "absolute"), ("BODY_MAX=much", "size"), ("BIND=", "at least one"),
                            ("LOG_DIR=/x\ny", "control"), ("HOSTS=a/b", "host names"), ("ORIGINS=a.test", "like https"),
                            ("STREAMS=0", "positive")):
            done = site.render_command(extra)
            checks.check(f"render.sh refuses {extra!r}", done.returncode == 1 and word in done.stderr, done.stderr)
        before = os.stat(site.path("conf/http.conf")).st_mtime_ns
        site.render()
        checks.equal("rendering again writes nothing", os.stat(site.path("conf/http.conf")).st_mtime_ns, before)
        name = ".".join(("sandbox", "x" * 60, "y" * 60, "example.org"))
        site.render(HOSTS=f"{name} [2001:db8::1] {name}:8443", ORIGINS=f"https://{name} https://[2001:db8::1]:8443", PREFIX="/" + "p" * 90, NEVER_REUSE="/mcp")
        done = site.check_config()
        checks.check("names may be as long as names are", done.returncode == 0, done.stderr)
    finally:
        site.stop()


FOREIGN = """
{user}
pid "{root}/run/nginx.pid";
error_log "{root}/log/nginx-error.log";
events {{ }}
http {{
    client_body_temp_path "{root}/tmp/body"; fastcgi_temp_path "{root}/tmp/fastcgi"; proxy_temp_path "{root}/tmp/proxy";
    scgi_temp_path "{root}/tmp/scgi"; uwsgi_temp_path "{root}/tmp/uwsgi";
    include "{root}/conf/http.conf";
    access_log off;
    underscores_in_headers on;
    fastcgi_param HTTP_EVIL yes;
    fastcgi_intercept_errors on;
    fastcgi_ignore_client_abort on;
    ssi on;
    gzip on;
    gzip_types *;
    autoindex on;
    open_file_cache max=100;
    recursive_error_pages on;
    error_page 404 /oops.html;
    server {{
        listen 127.0.0.1:{port};
        root "{root}/www";
        add_header X-Theirs yes;
        include "{root}/conf/server.conf";
        location ~ \\.php$ {{ return 200 "their php\\n"; }}
        location ~ \\.html$ {{ }}
    }}
}}
"""


def foreign_server(checks):
    """The snippet in a server whose own settings are as unfriendly as can be."""
    site = Site()
    try:
        os.mkdir(site.path("www"))
        for name, text in (("index.html", "their page"), ("oops.html", "their error page")):
            with open(site.path("www/" + name), "w", encoding="ascii") as out:
                out.write(text)
        with open(site.path("conf/theirs.conf"), "w", encoding="ascii") as out:
            out.write(FOREIGN.format(root=site.root, port=site.http, user="user www-data;" if site.as_root else ""))
        done = site.check_config("theirs.conf")
        checks.check("nginx -t accepts the snippet in a foreign server", done.returncode == 0, done.stderr)
        site.start("theirs.conf")
        checks.equal("their own pages still work", site.request("GET", "/index.html").body, b"their page")

        params = dict(json.loads(site.call(headers=[("Mcp_Method", "x")]).body)["params"])
        checks.check("their fastcgi_param does not reach the worker", "HTTP_EVIL" not in params, params)
        answer = site.call(b'{"do":"status","status":"404 Not Found","body":"worker says no"}')
        checks.equal("the worker's 404 arrives unchanged", (answer.status, answer.body), (404, b"worker says no"))
        checks.equal("401 is ours", site.request("POST", "/mcp").header("content-type"), "application/json")

        sandbox_dir = os.path.join(site.path("sandboxes"), "a" * 64)
        os.mkdir(sandbox_dir)
        for name, text in (("x.php", "<?php"), ("x.html", '<!--# include virtual="/index.html" -->'), ("index.html", "i")):
            with open(os.path.join(sandbox_dir, name), "w", encoding="ascii") as out:
                out.write(text)
        url = f"/files/{'a' * 64}/{token('a' * 64)}"
        checks.equal("a .php file is not run", site.request("GET", url + "/x.php").body, b"<?php")
        answer = site.request("GET", url + "/x.html", headers=[("Accept-Encoding", "gzip")])
        checks.equal("server side includes stay text", answer.body, b'<!--# include virtual="/index.html" -->')
        checks.equal("their headers are not mixed in", answer.header("x-theirs"), "")
        checks.equal("no index", site.request("GET", url + "/").status, 404)
        checks.equal("no listing", site.request("GET", "/files/").status, 404)
        checks.equal("a missing file is 404", site.request("GET", url + "/none").status, 404)
    finally:
        site.stop()


def helpers_present(checks):
    for name in ("render.sh",):
        checks.check(f"{name} can be executed", os.access(NGINX_DIR / name, os.X_OK))
    checks.check("nginx is there", find_nginx() is not None)


GROUPS = [helpers_present, rendering, foreign_server]
