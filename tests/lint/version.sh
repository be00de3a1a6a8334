#!/usr/bin/env bash
# One version: configure.ac's is the newest of CHANGELOG.md and of the Debian package.
. "$(dirname "$0")/common.sh"

version=$(sed -n 's/^AC_INIT(\[sandcgi\], \[\(.*\)\])$/\1/p' configure.ac)
found=$(
    noted=$(sed -n '/^## [0-9]/{s/^## \([0-9.]*\) - [0-9-]*$/\1/p;q}' CHANGELOG.md)
    [ "$noted" = "$version" ] || echo "CHANGELOG.md:1: the newest version is $noted, not $version as in configure.ac"
    packaged=$(sed -n '1s/^sandcgi (\([0-9.]*\)) .*/\1/p' debian/changelog)
    [ "$packaged" = "$version" ] || echo "debian/changelog:1: the newest version is $packaged, not $version as in configure.ac"
    built=$(service/release/version.sh)
    [[ $built == "$version" || $built == "$version+"* ]] || echo "service/release/version.sh:1: the version is $built, not $version as in configure.ac"
)
verdict "$found" "give all three the same version"
