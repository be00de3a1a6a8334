#!/bin/sh
# Prints the version of this tree.
#   0.3.0                                     the commit whose CHANGELOG.md names this release first
#   0.3.0+20261128T201500.1480.g0123456789    a later one: date of the commit (UTC), number of commits, commit; ".dirty": changed since
#   0.3.0+0.g0123456789                       without git or its history: date and number are unknown
# Each sorts behind those before it, as Debian compares. A tree without .git has the file "version" beside this script: git archive
# writes the commit into it, make dist the version.
#   version.sh [--header FILE]    FILE: writes a header instead, if it is another one than is there
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
release=$(sed -n '/^## [0-9]/{s/^## \([0-9.]*\).*/\1/p;q;}' "$top/CHANGELOG.md")

# Of this tree, whoever owns it and whatever a hook of git has set.
git_here()
{
    env -u GIT_DIR -u GIT_WORK_TREE -u GIT_INDEX_FILE git --no-optional-locks -c safe.directory="$top" -C "$top" "$@" 2>/dev/null
}

# Does HEAD name the release, and no parent? One that is not there (a shallow clone) may have named it.
is_release()
{
    heading="^## $release - "
    git_here show HEAD:CHANGELOG.md | awk -v "heading=$heading" '/^## / && !found { found = 1; right = $0 ~ heading } END { exit !right }' || return 1
    for parent in $(git_here cat-file -p HEAD | sed -n '/^$/q;s/^parent //p'); do
        git_here cat-file -e "$parent" || return 1
        ! git_here show "$parent:CHANGELOG.md" | grep "$heading" >/dev/null || return 1
    done
}

# stamp SECONDS NUMBER COMMIT
stamp()
{
    echo "$release+$(date -u -d "@$1" +%Y%m%dT%H%M%S).$2.g$(printf %.10s "$3")"
}

of_git()
{
    changed=$(git_here status --porcelain --untracked-files=no) || return 1
    if [ -z "$changed" ] && is_release; then
        echo "$release"
    else
        told=$(stamp "$(git_here show -s --format=%ct HEAD)" "$(git_here rev-list --count HEAD)" "$1")
        echo "$told${changed:+.dirty}"
    fi
}

# Where git or its objects are missing, as in the context of an image: the commit alone.
of_head()
{
    read -r commit <"$top/.git/HEAD"
    name=${commit#ref: }
    if [ "$name" != "$commit" ]; then
        if [ -f "$top/.git/$name" ]; then
            read -r commit <"$top/.git/$name"
        else
            commit=$(sed -n "s|^\([0-9a-f]*\) $name\$|\1|p" "$top/.git/packed-refs")
        fi
    fi
    echo "$release+0.g$(printf %.10s "${commit:-unknown}")"
}

of_file()
{
    seconds='' commit=''
    [ ! -f "$top/service/release/version" ] || read -r seconds commit <"$top/service/release/version" || true
    case $seconds,$commit in
    , | *Format*) echo "$release+0.gunknown" ;;
    *,) echo "$seconds" ;;
    *) stamp "$seconds" 0 "$commit" ;;
    esac
}

version()
{
    if [ -e "$top/.git" ] && commit=$(git_here rev-parse --verify HEAD); then
        of_git "$commit"
    elif [ -f "$top/.git/HEAD" ]; then
        of_head
    else
        of_file
    fi
}

told=$(version)
case $told in '' | *[!A-Za-z0-9.+]*) echo "version.sh: no version in $top/CHANGELOG.md" >&2 && exit 1 ;; esac
if [ "${1:-}" != --header ]; then
    echo "$told"
    exit
fi
header="#define SANDCGI_VERSION \"$told\""
[ "$(cat "$2" 2>/dev/null || true)" = "$header" ] || echo "$header" >"$2"
