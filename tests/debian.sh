#!/usr/bin/env bash
# Another Debian, whose compiler and libraries are other ones: the C tests pass in its root, the package builds there, lintian is
# silent, it installs, answers, upgrades, is purged.
#   tests/debian.sh [SUITE]     trixie unless another one is named; root, mmdebstrap and a mirror are needed, and 2 GB
# What a server does with an engine is tests/e2e/test_debian.py's, in a root of this Debian; CI does not run this one.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=${1:-trixie}
readonly top suite
# shellcheck source=tests/lib/debian_root.sh
source "$top/tests/lib/debian_root.sh"

# step SENTENCE COMMAND…: what the command says is shown when it fails.
step()
{
    local sentence=$1 start=$SECONDS
    shift
    if "$@" >"$work/log" 2>&1; then
        printf 'ok %s (%d s)\n' "$sentence" "$((SECONDS - start))"
    else
        printf 'FAILED %s (%d s)\n' "$sentence" "$((SECONDS - start))"
        tail -n 60 "$work/log" | sed 's/^/    /'
        exit 1
    fi
}

# The words of Build-Depends without versions; of alternatives the first.
build_depends()
{
    sed -n '/^Build-Depends:/,/^[A-Z]/p' "$top/debian/control" | sed -n 's/^ \([a-z0-9.+-]*\).*/\1/p' |
        sed 's/^debhelper-compat$/debhelper/' | paste -sd,
}

inside()
{
    debian_inside "$root" "$@"
}

c_tests()
{
    # shellcheck disable=SC2016 # make expands it
    inside sh -ec 'cp -r /build/sandcgi /build/tests; cd /build/tests; autoreconf -fi; ./configure --enable-werror
        make -j"$(nproc)" all; make -j"$(nproc)" check VERBOSE=1 "TESTS=\$(check_PROGRAMS)"; rm -r /build/tests'
}

# One client of sandcgi stdio: what the server calls itself.
answers()
{
    printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"debian","version":"1"}}}' |
        inside sandcgi stdio | grep '"serverInfo"'
}

upgraded_and_purged()
{
    inside dpkg -i /build/sandcgi.deb && answers && inside dpkg --purge sandcgi && [[ ! -e $root/etc/sandcgi && ! -e $root/usr/bin/sandcgi ]]
}

main()
{
    ((EUID == 0)) || { echo "tests/debian.sh needs root" >&2 && exit 1; }
    work=$(mktemp -d /var/tmp/sandcgi-debian-XXXXXX)
    root=$work/root
    trap 'rm -rf "$work"' EXIT
    chmod 0755 "$work"
    step "a root of $suite" debian_root "$suite" "$root" \
        "$(build_depends),lintian,adduser,procps,systemd-standalone-tmpfiles,autoconf,automake,libcmocka-dev,python3,openssl,ca-certificates,file,git" --variant=buildd
    echo "127.0.0.1 localhost" >"$root/etc/hosts"
    debian_sources "$top" "$root/build/sandcgi"
    step "the C tests pass, and the compiler warns of nothing" c_tests
    step "the package builds" inside env -C /build/sandcgi DEB_BUILD_OPTIONS=noautodbgsym dpkg-buildpackage -us -uc -b
    step "lintian is silent" inside sh -c 'exec lintian --allow-root --fail-on error,warning /build/*.changes'
    mv "$root"/build/sandcgi_*.deb "$root/build/sandcgi.deb"
    step "it installs" inside apt-get install -qq --no-install-recommends -y /build/sandcgi.deb
    step "check finds nothing" inside sandcgi check --config /etc/sandcgi/sandcgi.conf
    step "stdio answers" answers
    step "installed again it answers; purged, nothing is left in /etc and /usr" upgraded_and_purged
    echo "8 passed, 0 failed, 0 skipped"
}

main "$@" </dev/null
