#!/usr/bin/env bash
# shellcheck disable=SC2016 # the backticks in patterns are Markdown's
# The documentation names only files and headings that exist; comments in C name only files that exist. Pages are short. The pages
# that are installed lead to one another (with a configured build/).
. "$(dirname "$0")/common.sh"

mapfile -t sources < <(c_files common fcgi runners)
mapfile -t pages < <(find . \( -name node_modules -o -path './build*' -o -path './sandcgi-*' -o -path ./var \) -prune -o -name '*.md' -type f -print |
    sed 's,^\./,,' | LC_ALL=C sort)

# exists PAGE PATH : a file, folder or pattern, from the top or from the page's folder, or the program that is made.
exists() {
    compgen -G "$2" > /dev/null || compgen -G "$(dirname "$1")/$2" > /dev/null || [ "$2" = runners/common/entry ]
}

# headings PAGE : its anchors, as Markdown's readers make them.
headings() {
    sed -n '/^```/,/^```/d; s/^#\{1,6\} //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

check_links() {
    local page=$1 line target file anchor
    while IFS=: read -r line target; do
        target=${target#*'('} target=${target%')'}
        file=${target%%#*} anchor=
        [[ $target != *'#'* ]] || anchor=${target#*#}
        case $target in
        http* | *'{'*) continue ;;
        esac
        case $file in
        '') file=$page ;;
        *) file=$(dirname "$page")/$file ;;
        esac
        if [ ! -e "$file" ]; then
            echo "$page:$line: $target leads nowhere"
        elif [ -n "$anchor" ] && ! headings "$file" | grep -qxF -- "$anchor"; then
            echo "$page:$line: there is no heading #$anchor in $file"
        fi
    done < <(grep -noE '\]\([^)]+\)' "$page")
}

# Words that begin with a folder of the top; NAME, <name> and … stand for something.
check_paths() {
    local page=$1 line path
    while IFS=: read -r line path; do
        path=${path#[^a-z]} path=${path%%#*} path=${path%%[.,:]}
        case $path in
        *NAME* | *'<'* | *…* | *'$'*) continue ;;
        esac
        exists "$page" "$path" || echo "$page:$line: there is no $path"
    done < <(grep -noE '(^|[`( ])(common|fcgi|nginx|runners|tests)/[^][`"()<>|; ]*[a-zA-Z0-9/*<…]' "$page")
}

# `file.c`: somewhere in the tree.
check_names() {
    local page=$1 line name
    while IFS=: read -r line name; do
        name=${name//'`'/}
        [[ $name == */* ]] || grep -qxF -- "$name" <<< "$all" || echo "$page:$line: there is no file called $name"
    done < <(grep -noE '`[A-Za-z0-9_.-]+\.(c|h|sh|py|mk|md|mjs|in)`' "$page")
}

# comments FILE... : "file:line word" for every word in a comment that looks like the name of a source file.
comments() {
    awk '
        FNR == 1 { inside = 0 }
        inside || match($0, /\/\*/) {
            text = inside ? $0 : substr($0, RSTART)
            inside = text !~ /\*\//
            while (match(text, /[a-z][a-z_0-9]*\.(c|h|py|sh|mjs)/)) {
                rest = substr(text, RSTART + RLENGTH, 1)
                if (rest !~ /[a-zA-Z0-9_]/) print FILENAME ":" FNR " " substr(text, RSTART, RLENGTH)
                text = substr(text, RSTART + RLENGTH)
            }
        }' "$@"
}

build=${builddir:-$top/build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
all=$(find common fcgi nginx runners service tests ./*.md ./*.sh -name node_modules -prune -o -type f -print | sed 's,.*/,,' | LC_ALL=C sort -u)
found=$(
    for page in "${pages[@]}"; do
        check_links "$page"
        check_paths "$page"
        check_names "$page"
    done
    while read -r place name; do
        [ "$name" = config.h ] || grep -qxF -- "$name" <<< "$all" || echo "$place: there is no file called $name"
    done < <(comments "${sources[@]}")
    python3 tests/lib/pages.py
    for command in ./start.sh ./tests/run.sh; do
        grep -qF -- "\`$command\`" README.md || echo "README.md does not name $command"
    done
    while read -r page limit; do
        lines=$(wc -l < "$page")
        ((lines <= limit)) || echo "$page:$lines: more than $limit lines: move something to the README.md of its folder"
    done <<< "README.md 160
CONTRIBUTING.md 122"
    for page in "${pages[@]}"; do
        # What a program prints, and the list of what has changed, may be longer.
        words=$(sed '/^<!-- settings:/,/^<!-- .settings/d' "$page" | wc -w)
        limit=2000
        [ "$page" != README.md ] || limit=1000
        [ "$page" = CHANGELOG.md ] || ((words <= limit)) || echo "$page: $words words, more than $limit: make two pages of it"
    done
    if [ -f "$build/Makefile" ]; then
        if ! make -s -C "$build" install-nobase_dist_pagesDATA install-dist_docDATA install-data-hook DESTDIR="$work" docdir=/doc > /dev/null; then
            echo "the pages cannot be installed from $build"
            exit
        fi
        cd "$work/doc" || exit
        find . -name '*.md' | sed 's,^./,,' | while read -r page; do
            check_links "$page" | sed 's,^,installed: ,'
        done
    fi
)
verdict "$found" "the map has to stay true: mend the page"
