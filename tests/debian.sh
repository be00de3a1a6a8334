#!/usr/bin/env bash
# The Debian package in a root of another Debian: builds there, lintian is silent, installs, answers, upgrades, is purged.
#   tests/debian.sh [SUITE]     trixie unless another one is named; root, mmdebstrap and a mirror are needed, some 10 minutes and 1.5 GB
# What a server does with an engine is tests/e2e/test_debian.py's, in a root of this Debian; CI does not run this one.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=${1:-trixie}
readonly top suite

step()
{
    printf '%4d s  %s\n' "$SECONDS" "$*"
}

# The words of Build-Depends without versions; of alternatives the first.
build_depends()
{
    sed -n '/^Build-Depends:/,/^[A-Z]/p' "$top/debian/control" | sed -n 's/^ \([a-z0-9.+-]*\).*/\1/p' |
        sed 's/^debhelper-compat$/debhelper/' | paste -sd,
}

inside()
{
    unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

# One client of sandcgi stdio: what the server calls itself.
ask()
{
    printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"debian","version":"1"}}}' |
        inside sandcgi stdio 2>>"$work/stdio.log" | grep -q '"serverInfo"'
}

main()
{
    local changes deb
    [[ $EUID == 0 ]] || { echo "needs root" >&2; exit 1; }
    work=$(mktemp -d /var/tmp/sandcgi-debian-XXXXXX)
    root=$work/root
    trap 'rm -rf "$work"' EXIT
    mmdebstrap --quiet --variant=buildd --include="$(build_depends),lintian,adduser,procps,systemd-standalone-tmpfiles" "$suite" "$root"
    step "a root of $suite"
    git -C "$top" archive --prefix=build/sandcgi/ HEAD | tar -x -C "$root"
    inside sh -c 'cd /build/sandcgi && DEB_BUILD_OPTIONS=noautodbgsym exec dpkg-buildpackage -us -uc -b' >"$work/build.log" 2>&1 ||
        { tail -40 "$work/build.log"; exit 1; }
    changes=$(cd "$root" && ls build/*.changes)
    deb=$(cd "$root" && ls build/sandcgi_*.deb)
    step "built: $(inside dpkg-deb -f "/$deb" Package Version Depends | paste -sd' ')"
    inside lintian --allow-root --fail-on error,warning "/$changes"
    step "lintian is silent"
    inside apt-get install -qq --no-install-recommends -y "/$deb" >"$work/install.log" 2>&1 || { tail -40 "$work/install.log"; exit 1; }
    inside sandcgi --version
    inside sandcgi check --config /etc/sandcgi/sandcgi.conf >"$work/check.log" 2>&1 || { cat "$work/check.log"; exit 1; }
    ask
    step "installed; check finds nothing, stdio answers"
    inside dpkg -i "/$deb" >/dev/null
    ask
    inside dpkg --purge sandcgi >/dev/null 2>&1
    [[ ! -e $root/etc/sandcgi && ! -e $root/usr/bin/sandcgi ]]
    step "installed again, and purged: nothing is left in /etc and /usr"
    echo "1 passed, 0 failed, 0 skipped"
}

main "$@" </dev/null
