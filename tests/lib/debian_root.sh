# shellcheck shell=bash
# A root of a Debian suite, and what is done in it. Sourced by debian.sh, machine/run.sh and e2e/debian_root.py.

# What the package depends on, so that it can be installed without a mirror.
# shellcheck disable=SC2034 # others use it
readonly debian_libraries=libarchive13,libargon2-1,libcjose0,libcurl4,libfcgi0ldbl,libjansson4,libseccomp2

# debian_root SUITE TARGET PACKAGES [OPTION…]: TARGET is a folder, or an archive whose name ends in .tar. Without an initrd, which takes minutes.
debian_root() {
    local suite=$1 target=$2 packages=$3
    shift 3
    INITRD=No mmdebstrap --quiet --include="$packages" "$@" "$suite" "$target"
}

# debian_inside ROOT COMMAND…
debian_inside() {
    local root=$1
    shift
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare --mount --pid --fork --kill-child bash -c 'mount --make-rprivate / && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"' \
        "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

# debian_sources TOP FOLDER: what git has and what is new, as they are.
debian_sources() {
    mkdir -p "$2"
    (cd "$1" && git ls-files -z -co --exclude-standard | tar -c --null -T - --ignore-failed-read) | tar -x -C "$2" --no-same-owner
}
