# shellcheck shell=bash
# Node and what the conformance stage needs from npm: exact versions, in a cache outside the tree.

readonly NODE_MAJOR=22
readonly NODE_CACHE=${SANDCGI_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/sandcgi-tests}
NODE='' NODE_FOLDER='' TABLE_FOLDER=''

# The packages that FOLDER's lock file names, which may be compressed, installed once per lock file; prints where.
# OPTION is for npm ci.
# node_install FOLDER [OPTION…]
node_install() {
    local folder=$1 lock sum place log
    shift
    for lock in "$folder"/package-lock.json*; do :; done
    sum=$(cat "$folder/package.json" "$lock" | sha256sum | cut -c 1-16)
    place=$NODE_CACHE/npm-$sum
    mkdir -p "$NODE_CACHE" || return 1
    (
        flock 9
        [[ ! -e $place/complete ]] || exit 0
        log=$(mktemp)
        rm -rf "$place"
        mkdir -p "$place"
        cp "$folder/package.json" "$place/"
        xz -dcf "$lock" >"$place/package-lock.json"
        if ! npm ci "$@" --prefix "$place" --ignore-scripts --no-audit --no-fund --loglevel=error >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            rm -f "$log"
            echo "npm could not install what $folder/package.json names: is a registry reachable?" >&2
            exit 1
        fi
        rm -f "$log"
        : >"$place/complete"
    ) 9>"$NODE_CACHE/lock" || return 1
    echo "$place"
}

node_is_new_enough() {
    local major
    major=$("$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null) || return 1
    ((major >= NODE_MAJOR))
}

# Sets NODE to a node that is new enough: the system's, or the one from npm.
node_find() {
    local folder place one
    folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../conformance/node" && pwd)
    if command -v node >/dev/null && node_is_new_enough "$(command -v node)"; then
        NODE=$(command -v node)
        return
    fi
    place=$(node_install "$folder") || return 1
    for one in "$place"/node_modules/node-linux-*/bin/node; do
        if [[ -x $one ]] && node_is_new_enough "$one"; then
            NODE=$one
            return
        fi
    done
    echo "there is no node $NODE_MAJOR for $(uname -m) at npm: install one, then try again" >&2
    return 1
}

# npm is installed when it is missing.
npm_ready() {
    command -v npm >/dev/null && return
    echo "npm is missing; installing it"
    apt_install_quietly npm || {
        echo "npm could not be installed: install node and npm, then try again" >&2
        return 1
    }
}

# Sets NODE, NODE_FOLDER (whose node_modules holds the suite and the SDKs) and TABLE_FOLDER (other clients).
node_ready() {
    local folder
    npm_ready || return 1
    node_find || return 1
    folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../conformance" && pwd)
    NODE_FOLDER=$(node_install "$folder") || return 1
    # What is optional there are the clouds that one of the frameworks can log to: half of all.
    TABLE_FOLDER=$(node_install "$folder/table" --omit=optional) || return 1
    export NODE NODE_FOLDER TABLE_FOLDER
}

# What the stages of conformance and the browser get: NAME=value lines. SANDCGI_TEST_LARGE: the large clients, too.
node_exports() {
    local here chromium
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
    node_ready || return 1
    chromium=$(command -v chromium || command -v chromium-browser || true)
    BROWSER_FOLDER=$(node_install "$here/browser") || return 1
    PAGE_MODULES=$(node_install "$here/../nginx/page") || return 1
    printf '%s=%s\n' NODE "$NODE" NODE_FOLDER "$NODE_FOLDER" TABLE_FOLDER "$TABLE_FOLDER" BROWSER_FOLDER "$BROWSER_FOLDER" \
        PAGE_MODULES "$PAGE_MODULES" CHROMIUM "$chromium"
    [[ ! ${SANDCGI_TEST_LARGE:-} ]] || printf 'LARGE_FOLDER=%s\n' "$(node_install "$here/conformance/table/large")"
}
