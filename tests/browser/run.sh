#!/usr/bin/env bash
# The page in a headless Chromium, against a real nginx, server and engine.
#   tests/browser/run.sh [--only NAME] [--shots FOLDER]     --shots: where screenshots go
# SANDCGI_TEST_BINARY names a program that is built already. Ends in a line of counts.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly top
build=$top/build-check only=''

# shellcheck source=tests/lib/report.sh
source "$top/tests/lib/report.sh"
# shellcheck source=tests/lib/packages.sh
source "$top/tests/lib/packages.sh"
# shellcheck source=tests/lib/engine.sh
source "$top/tests/lib/engine.sh"
# shellcheck source=tests/lib/stages.sh
source "$top/tests/lib/stages.sh"
# shellcheck source=tests/lib/node.sh
source "$top/tests/lib/node.sh"

main() {
    local chromium
    chromium=$(command -v chromium || command -v chromium-browser || true)
    if [[ ! $chromium ]] || ! npm_ready || ! node_find; then
        echo "skipped browser: chromium, node or npm's packages cannot be had here"
        echo "0 passed, 0 failed, 1 skipped"
        return
    fi
    export NODE CHROMIUM=$chromium
    BROWSER_FOLDER=$(node_install "$top/tests/browser")
    PAGE_MODULES=$(node_install "$top/nginx/page")
    export BROWSER_FOLDER PAGE_MODULES
    if [[ ! ${SANDCGI_TEST_BINARY:-} ]]; then
        packages_ensure yes
        stage_build
        export SANDCGI_TEST_BINARY=$build/sandcgi
    fi
    trap engine_stop EXIT
    trap 'exit 130' INT TERM
    engine_find || die "no container engine: see above"
    "$top/runners/build.sh"
    "$(test_python)" -u "$top/tests/browser/run.py" "$@"
}

main "$@" </dev/null
