#!/usr/bin/env bash
# What run_code costs, beside the bare interpreter, docker exec and a bare client of the engine: builds, makes sure of the runner
# images, and starts run_code/main.py, which starts servers of its own. Asserts nothing. Options: --help; see README.md.
set -euo pipefail

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly project
# What nginx/setup's files share.
binary=$project/build/sandcgi
log_file=$(mktemp)
for part in common build; do
    # shellcheck source=/dev/null
    source "$project/nginx/setup/$part.sh"
done

if [[ -z ${SANDCGI_TEST_BINARY:-} ]]; then
    build_program
    export SANDCGI_TEST_BINARY=$binary
fi
"$project/runners/build.sh" >/dev/null
rm -f "$log_file"
exec python3 -u "$project/tests/bench/run_code/main.py" "$@"
