#!/usr/bin/env bash
# Makes the list under "Unreleased" in CHANGELOG.md a release, and commits that: service/release/cut.sh VERSION
set -Eeuo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly files=(CHANGELOG.md configure.ac debian/changelog)

die() {
    echo "cut.sh: $*" >&2
    exit 1
}

# Is there an entry under the heading?
has_entries() {
    awk -v "heading=## $1" '/^## / { inside = $0 == heading } inside && /^- / { n++ } END { exit !n }' CHANGELOG.md
}

judge() {
    local version=$1 last
    [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "VERSION is three numbers, as 0.3.0: '$version'"
    [[ ! $(git status --porcelain) ]] || die "the tree has changes: commit them first"
    ! grep -F "## $version - " CHANGELOG.md >/dev/null || die "there is a release $version already"
    last=$(sed -n '/^## [0-9]/{s/^## \([0-9.]*\).*/\1/p;q}' CHANGELOG.md)
    sort -V -C <<<"$last"$'\n'"$version" || die "$version is older than the last release, $last"
    has_entries Unreleased || die 'CHANGELOG.md has nothing under "## Unreleased"'
}

change() {
    local version=$1 maintainer
    maintainer=$(sed -n 's/^Maintainer: //p' debian/control)
    sed -i "s/^## Unreleased\$/## $version - $(date -u +%F)/" CHANGELOG.md
    sed -i "s/^\(AC_INIT(\[sandcgi\], \)\[.*\])\$/\1[$version])/" configure.ac
    sed -i "1i sandcgi ($version) unstable; urgency=medium\n\n  * CHANGELOG.md has what is new in the program.\n\n -- $maintainer  $(LC_ALL=C date -uR)\n" debian/changelog
}

(($# == 1)) || die "usage: service/release/cut.sh VERSION"
judge "$1"
trap 'git checkout -q HEAD -- "${files[@]}"; die "nothing is changed"' ERR
change "$1"
git commit -q -m "Release $1" -- "${files[@]}"
echo "Committed as release $1. Next: git tag -s v$1; git push --follow-tags; make release"
