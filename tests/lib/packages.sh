#!/usr/bin/env bash
# shellcheck disable=SC2034 # packages_ensure puts the names of the lists together
# What the tests need from the distribution. Sourced; as a program: packages.sh SET…

# package, a file or command that shows it is there, what for
readonly packages_build='
gcc             gcc                                     compiler
make            make                                    build
ccache          ccache                                  what has been built before
autoconf        autoreconf                              build
automake        automake                                build
pkg-config      pkg-config                              build
libc6-dev       /usr/include/stdio.h                    build
libfcgi-dev     /usr/include/fcgiapp.h                  FastCGI
libcurl4-openssl-dev pc:libcurl                         engine client
libssl-dev      pc:libcrypto                            HMAC, random
libjansson-dev  pc:jansson                              JSON
libarchive-dev  pc:libarchive                           archives
libargon2-dev   pc:libargon2                            hash of the passphrase
libcjose-dev    pc:cjose                                access tokens of OAuth
libseccomp-dev  pc:libseccomp                           system calls of the archive reader
libcmocka-dev   pc:cmocka                               unit tests
openssl         openssl                                 certificates
python3         /usr/bin/python3                        test scripts
git             git                                     fresh clones
xz-utils        xz                                      lock files and schemas, make distcheck
file            file                                    README examples
shellcheck      shellcheck                              lint
clang-format    clang-format                            lint
groff-base      groff                                   lint
man-db          man                                     lint
'
# The engine, the web server, the README's examples.
readonly packages_server='
nginx-light     /usr/sbin/nginx                         the web server
curl            curl                                    README examples
jq              jq                                      README examples
ca-certificates /etc/ssl/certs/ca-certificates.crt      image builds
docker.io       dockerd                                 the engine
iptables        /usr/sbin/iptables                      network of image builds
nftables        /usr/sbin/nft                           firewall rules of containers
iproute2        /usr/sbin/ip                            a bridge of the tests
mmdebstrap      mmdebstrap                              base image without a registry
'
readonly packages_browser='
chromium        chromium                                the page
'
# What only a run of everything needs.
readonly packages_rest='
spawn-fcgi      spawn-fcgi                              one of the front ends
apache2-bin     apache2                                 another web server
lighttpd        lighttpd                                another web server
podman          podman                                  the other engine
uidmap          newuidmap                               the other engine without root
prometheus      promtool                                metrics and alert rules
logrotate       logrotate                               the example for logs
catatonit       catatonit                               init for Podman
python3-h2      /usr/lib/python3/dist-packages/h2       HTTP/2 of a tunnel
build-essential /usr/share/doc/build-essential          the Debian package
debhelper       dh                                      the Debian package
lintian         lintian                                 the Debian package
systemd         systemd-analyze                         the units
docker-compose  docker-compose                          the Compose files
'

is_root() {
    ((EUID == 0))
}

# as_root COMMAND…
as_root() {
    if is_root; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -n "$@"
    else
        return 1
    fi
}

test_python() {
    if [[ -x /usr/bin/python3 ]]; then
        echo /usr/bin/python3
    else
        command -v python3
    fi
}

package_is_there() {
    local sign=$1
    case $sign in
    /*) [[ -e $sign ]] ;;
    pc:*) command -v pkg-config >/dev/null && pkg-config --exists "${sign#pc:}" ;;
    *) PATH=$PATH:/usr/sbin:/sbin command -v "$sign" >/dev/null ;;
    esac
}

packages_missing() {
    local package sign why
    while read -r package sign why; do
        if [[ $package ]] && ! package_is_there "$sign"; then
            printf '%s %s\n' "$package" "$why"
        fi
    done <<<"$1"
}

# Services that come with packages (nginx, dockerd) are not started: the tests start their own.
apt_install_quietly() (
    policy=/usr/sbin/policy-rc.d log=$(mktemp) made=no
    # shellcheck disable=SC2064 # the name as it is now
    trap "rm -f '$log'; [[ \$made == no ]] || as_root rm -f '$policy'" EXIT
    trap 'exit 130' INT TERM
    if [[ ! -e $policy ]]; then
        made=yes
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod 0755 "$policy"
    fi
    {
        as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq -o DPkg::Lock::Timeout=300 &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
                -o DPkg::Lock::Timeout=300 "$@"
    } >"$log" 2>&1 </dev/null || {
        tail -n 20 "$log" >&2
        return 1
    }
)

# packages_ensure SET…: of build, server, browser, rest; installs what is missing. Ends with 1 when the build cannot do without.
packages_ensure() {
    local missing names set
    missing=$(for set in "$@"; do
        set=packages_$set
        packages_missing "${!set}"
    done)
    [[ $missing ]] || return 0
    printf '\n== packages\nmissing: %s\n' "${missing//$'\n'/$'\n'         }"
    mapfile -t names < <(cut -d ' ' -f 1 <<<"$missing")
    if ! command -v apt-get >/dev/null; then
        echo "tests: there is no apt-get here: install what is listed above, then try again" >&2
    elif ! as_root true 2>/dev/null; then
        echo "tests: installing needs root, or sudo without a password; do it by hand: apt-get install ${names[*]}" >&2
    elif apt_install_quietly "${names[@]}"; then
        return
    elif (($? == 130)); then
        return 130
    else
        echo "tests: apt-get could not install them (see above; is there a network?); do it by hand: apt-get install ${names[*]}" >&2
    fi
    [[ ! $(packages_missing "$packages_build") ]] || return 1
    echo "what needs them is skipped"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    set -euo pipefail
    packages_ensure "$@"
fi
