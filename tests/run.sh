#!/usr/bin/env bash
# All tests: tests/run.sh --help. Python runs them (tests/lib/run.py), and is installed when it is missing.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# shellcheck source=tests/lib/report.sh
source "$top/tests/lib/report.sh"
# shellcheck source=tests/lib/packages.sh
source "$top/tests/lib/packages.sh"

[[ -x /usr/bin/python3 ]] || apt_install_quietly python3 || die "python3 could not be installed: install it, then try again"
exec /usr/bin/python3 -u "$top/tests/lib/run.py" "$@"
