#!/usr/bin/env bash
# The official MCP conformance suite and real clients against the real thing: nginx, workers, hub, engine.
#   tests/conformance/run.sh [--only NAME] [--list] [--large]     --large: the large clients, too
# Builds with sanitizers into build-check as tests/run.sh does, unless SANDCGI_TEST_BINARY and
# SANDCGI_CONFORMANCE_BINARY name programs. Ends in a line of counts.
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
    if ! node_ready; then
        echo "skipped conformance: neither node nor npm's packages can be had here"
        echo "0 passed, 0 failed, 1 skipped"
        return
    fi
    if [[ " $* " == *" --large "* ]]; then
        LARGE_FOLDER=$(node_install "$top/tests/conformance/table/large")
        export LARGE_FOLDER
    fi
    if [[ " $* " != *" --list "* ]]; then
        if [[ ! ${SANDCGI_TEST_BINARY:-} || ! ${SANDCGI_CONFORMANCE_BINARY:-} ]]; then
            packages_ensure yes
            stage_build
            stage_conformance_build
        fi
        trap engine_stop EXIT
        trap 'exit 130' INT TERM
        engine_find || die "no container engine: see above"
        "$top/runners/build.sh"
    fi
    "$(test_python)" -u "$top/tests/conformance/run.py" "$@"
}

main "$@" </dev/null
