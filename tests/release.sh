#!/usr/bin/env bash
# Builds, checks and packages sandcgi in a root of another release, whose compiler and libraries are other ones.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly top
readonly packages=build-essential,debhelper,autoconf,automake,pkgconf,libarchive-dev,libargon2-dev,libcjose-dev,libcmocka-dev,libcurl4-openssl-dev,libfcgi-dev,libjansson-dev,libseccomp-dev,libssl-dev,systemd-dev,python3,procps,openssl,ca-certificates,file,git

usage() {
    cat <<'END'
usage: tests/release.sh SUITE

SUITE is a release of Debian (trixie). mmdebstrap makes its root in a temporary folder. In it sandcgi is configured with --enable-werror, built, its C tests run, and its package is built.
Needs root and ten minutes. The last line says that all of it went well.
END
}

# What runs inside; $1 is the folder of the sources.
inside() {
    export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
    cd "$1"
    gcc --version | head -n 1
    autoreconf -fi
    mkdir -p build-release
    cd build-release
    ../configure --enable-werror
    make -j"$(nproc)" all
    # shellcheck disable=SC2016 # make expands it
    make -j"$(nproc)" check VERBOSE=1 'TESTS=$(check_PROGRAMS)'
    cd "$1"
    rm -rf build-release
    dpkg-buildpackage -us -uc -b
}

main() {
    local suite=${1:-} root
    [[ $# -eq 1 && $suite != -* ]] || { usage >&2 && exit 2; }
    ((EUID == 0)) || { echo "tests/release.sh needs root" >&2 && exit 1; }
    root=$(mktemp -d)
    # shellcheck disable=SC2064 # as it is now
    trap "rm -rf '$root'" EXIT
    chmod 0755 "$root"
    mmdebstrap --quiet --variant=apt --include="$packages" "$suite" "$root"
    printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
    mkdir -p "$root/root/sandcgi"
    (cd "$top" && git ls-files -z -co --exclude-standard | tar c --null -T - --ignore-failed-read) | tar x -C "$root/root/sandcgi" --no-same-owner
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare --mount --pid --fork --kill-child bash -c 'mount --make-rprivate / && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" bash -c "$1"' \
        "$root" "set -euo pipefail; $(declare -f inside); inside /root/sandcgi"
    printf 'ok: %s\n' "$suite"
}

main "$@"
