# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# The page at /: bundled from nginx/page by node, with the packages that its lock file names. Without node or npm there is no page.

readonly page_node_major=18

# Of all that the page is made from.
page_hash()
{
    (cd "$project/nginx/page" && find . \( -name node_modules -o -name made \) -prune -o -type f ! -name '*.png' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) |
        sha256sum | cut -d ' ' -f 1
}

node_is_new_enough()
{
    local major
    major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null) && ((major >= page_node_major))
}

# A tarball has the page, and what it was made of.
page_is_shipped()
{
    [[ $(cat "$project/nginx/page/made/made-of" 2>/dev/null) == "$(page_hash)" ]]
}

# make_page FOLDER: a copy of the tarball's, or bundled in a folder of its own, which is removed.
make_page()
{
    local work status=0
    umask 022
    if page_is_shipped; then
        rm -rf "$1"
        mkdir -p "$1" && cp -R "$project/nginx/page/made/." "$1" && chmod -R u+w "$1"
        return
    fi
    work=$(mktemp -d) || return 1
    cp "$project/nginx/page/package.json" "$project/nginx/page/package-lock.json" "$work/" &&
        timeout 180 npm ci --prefix "$work" --ignore-scripts --no-audit --no-fund --fetch-retries=1 --loglevel=error &&
        node "$project/nginx/page/build.mjs" "$1" "$work/node_modules" && page_hash >"$1/made-of" || status=1
    rm -rf "$work"
    return "$status"
}

# Makes it beside what follows, with a log of its own; finish_page shows what it said.
begin_page()
{
    page_out=$run_dir/page.out
    page_is_made >"$page_out" 2>&1 9>&- &
    page_pid=$!
}

# Prints the page's folder; fails where none is wanted.
page_folder()
{
    local where
    where=$(setting NGINX_PAGE true)
    [[ $where != true ]] || where=$state/page
    [[ $where == /* ]] && printf '%s' "$where"
}

# Sets page_dir until finish_page does: to the page of an earlier call.
take_earlier_page()
{
    page_dir=$(page_folder) && [[ -e $page_dir/index.html ]] || page_dir=
}

# Sets page_dir: the page's folder, or "" where it cannot be made or is not wanted.
finish_page()
{
    page_dir=$(page_folder) || page_dir=
    wait "$page_pid" || page_dir=
    cat "$page_out"
    rm -f "$page_out"
}

# Says why there is no page.
page_is_made()
{
    local hash log_file=$log_dir/page.log instead="or set NGINX_PAGE=false in $env_file"
    case $(setting NGINX_PAGE true) in
    true) ;;
    /*) return ;;
    *) return 1 ;;
    esac
    hash=$(page_hash)
    [[ $(cat "$state/page/made-of" 2>/dev/null) != "$hash" ]] || return 0
    : >"$log_file"
    if page_is_shipped; then
        make_page "$state/page"
        return
    fi
    if ! have npm && ! { ((EUID == 0)) && (install_packages npm) >>"$log_file" 2>&1; }; then
        say "  (no page at /: npm is missing; install npm, $instead)"
    elif ! node_is_new_enough; then
        say "  (no page at /: node $page_node_major or later is needed; install it, $instead)"
    elif ! step "making the page" make_page "$state/page"; then
        say "  (no page at /: npm or the bundler failed; see $log_file, $instead)"
    else
        return 0
    fi
    return 1
}
