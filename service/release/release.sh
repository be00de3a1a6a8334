#!/usr/bin/env bash
# make release: what a release consists of, in BUILD/release/VERSION, which is there whole or not at all.
#   service/release/release.sh BUILD [PART…]
# Parts: tarball packages images (default: all; the others are made from the tarball). Always: the list of what is inside
# (CycloneDX), SHA256SUMS. packages needs dpkg-buildpackage and what debian/control names, images docker or podman and registries.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly top
# Target of the Dockerfile, name of the image.
readonly images='
sandcgi sandcgi
nginx   sandcgi-nginx
runners sandcgi-runners
edge    sandcgi-edge
'
step=arguments

die() {
    echo "release: $*" >&2
    exit 1
}

# begin STEP: its commands write to the log.
begin() {
    step=$1
    echo "  $step"
}

finish() {
    local status=$?
    if ((status)) && [[ $step != arguments ]]; then
        [[ ! -s $work/log ]] || tail -n 40 "$work/log" >&2
        echo "release: $step failed; nothing of this release is kept" >&2
    fi
    rm -rf "${work:-}"
    exit "$status"
}

make_tarball() {
    begin "tarball"
    make -C "$build" dist "VERSION=$version" >>"$work/log" 2>&1
    mv "$build/sandcgi-$version.tar.xz" "$work/files/"
    mkdir "$work/source"
    tar -xf "$work/files/sandcgi-$version.tar.xz" -C "$work/source" --strip-components=1
    [[ -f $work/source/nginx/page/made/index.html ]] || die "the tarball has no page: node, npm and npm's registry are needed"
    [[ $("$work/source/service/release/version.sh") == "$version" ]] || die "the tarball has another version than $version"
}

make_packages() {
    local deb program
    begin "packages"
    mkdir "$work/packages"
    cp -R "$work/source" "$work/packages/sandcgi"
    (cd "$work/packages/sandcgi" && DEB_BUILD_OPTIONS="parallel=$(nproc)" dpkg-buildpackage -us -uc -b) >>"$work/log" 2>&1
    mv "$work"/packages/*.deb "$work/files/"
    deb=$(echo "$work/files/"sandcgi_*.deb)
    dpkg-deb -x "$deb" "$work/packages/root"
    program=$work/packages/root/usr/bin/sandcgi
    [[ $("$program" version) == "sandcgi $version" ]] || die "the program in $(basename "$deb") has another version than $version"
    linked_packages "$program" >"$work/inside/$(basename "$deb")"
}

# linked_packages PROGRAM: "NAME VERSION ARCHITECTURE" of each package with a library that it is linked with.
linked_packages() {
    local library owner
    ldd "$1" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | while read -r library; do
        owner=$({ dpkg-query -S "$library" "/usr$library" 2>/dev/null || true; } | sed -n '1s/: .*//p')
        [[ $owner ]] || die "no package has $library"
        # shellcheck disable=SC2016 # dpkg-query expands it
        dpkg-query -W -f '${Package} ${Version} ${Architecture}\n' "$owner"
    done | LC_ALL=C sort -u
}

make_images() {
    local target name
    engine=docker
    command -v docker >/dev/null || engine=podman
    while read -r target name; do
        [[ $target ]] || continue
        begin "image $name"
        "$engine" build --target "$target" --label "org.opencontainers.image.version=$version" -t "$name:$tag" "$work/source" >>"$work/log" 2>&1 </dev/null
        save_image "$name:$tag" "$name"
    done <<<"$images"
    begin "image sandcgi-runner-workbench"
    RUNNER_EXTRAS='' "$work/source/runners/build.sh" workbench >>"$work/log" 2>&1 </dev/null
    save_image sandcgi-runner-workbench:latest sandcgi-runner-workbench
}

# save_image IMAGE NAME
save_image() {
    "$engine" save "$1" </dev/null | gzip -n >"$work/files/$2-$tag.tar.gz"
    # shellcheck disable=SC2016 # dpkg-query expands it
    "$engine" run --rm --network none --entrypoint dpkg-query "$1" -W -f '${Package} ${Version} ${Architecture}\n' </dev/null >"$work/inside/$2-$tag.tar.gz"
}

main() {
    local build=$1 version tag engine part parts=("${@:2}")
    ((${#parts[@]})) || parts=(tarball packages images)
    for part in "${parts[@]}"; do
        [[ $part =~ ^(tarball|packages|images)$ ]] || die "there is no part '$part'; there are: tarball packages images"
    done
    version=$("$top/service/release/version.sh")
    [[ $version != *.dirty ]] || die "the tree has changes: commit them first"
    tag=${version//+/-}
    [[ ! -e $build/release/$version ]] || die "$build/release/$version is there already"
    mkdir -p "$build/release"
    work=$(mktemp -d "$build/release/new.XXXXXX")
    trap finish EXIT
    mkdir "$work/files" "$work/inside"
    make_tarball
    for part in "${parts[@]}"; do
        [[ $part == tarball ]] || "make_$part"
    done
    begin "list of parts, checksums"
    "$top/service/release/sbom.sh" "$version" "$work/inside" >"$work/files/sandcgi-$version.cdx.json"
    (cd "$work/files" && sha256sum -- * >"$work/SHA256SUMS")
    mv "$work/SHA256SUMS" "$work/files/"
    mv "$work/files" "$build/release/$version"
    echo "$build/release/$version:"
    ls "$build/release/$version"
}

(($#)) || die "usage: service/release/release.sh BUILD [PART…]"
main "$@"
