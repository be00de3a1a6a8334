#!/usr/bin/env bash
# What an operator does after the installation: nginx, settings. Called by the machine that run.sh boots, with its name.
set -euo pipefail

name=$1
rm -f /etc/nginx/sites-enabled/default
lines=$(sandcgi setup nginx --server-name "$name" | grep -o 'include .*;')
cat >/etc/nginx/conf.d/site.conf <<END
$(head -n 1 <<<"$lines")
server { listen 80; server_name $name; $(tail -n 1 <<<"$lines") }
END
cat >>/etc/sandcgi/sandcgi.conf <<END
PUBLIC_BASE_URL=http://$name
SANDBOX_NETWORK=none
SANDCGI_WORKERS=8
SANDCGI_METRICS=127.0.0.1:9500
TOOLS=core,sandboxes
END
nginx -t
systemctl reload nginx
systemctl restart sandcgi
