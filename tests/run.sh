#!/usr/bin/env bash
# All tests: builds with sanitizers, runs what this machine can run, adds up the counts.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly top
readonly build=$top/build-check
# Names of unit tests that passed at their second attempt only, a line each.
unsteady=$(mktemp)
readonly unsteady
run_unit=yes
run_e2e=yes
run_dist=no
run_bench=no
run_conformance=yes
run_browser=yes
run_compare=yes
run_chaos=yes
run_cluster=yes
run_machine=no
chaos=60 # seconds
only=''

# shellcheck source=tests/lib/report.sh
source "$top/tests/lib/report.sh"
# shellcheck source=tests/lib/packages.sh
source "$top/tests/lib/packages.sh"
# shellcheck source=tests/lib/engine.sh
source "$top/tests/lib/engine.sh"
# shellcheck source=tests/lib/stages.sh
source "$top/tests/lib/stages.sh"

usage() {
    cat <<USAGE
usage: tests/run.sh [OPTION]

Installs what is missing, builds under ASan and UBSan, runs all tests; ends in a line of counts.

  --unit        only what needs neither nginx nor a container engine (make check)
  --e2e         only the scripts against the real nginx and engine
  --only NAME   only end-to-end tests whose file or sentence contains NAME
  --conformance only the official conformance suite and SDK clients (tests/conformance)
  --browser     only the page in a headless Chromium (tests/browser)
  --compare     only the comparison of warm and bare interpreters (tests/runners/compare)
  --chaos N     only: processes, engine and disk fail for N seconds while clients check every answer (usually 60)
  --cluster     only several nodes behind an edge (tests/cluster)
  --list        name the end-to-end tests
  --outputs N   only: N programs print a megabyte and exit at once, every byte must arrive (usually 60)
  --soak N      only: N runs of all kinds, nothing may grow (usually 60)
  --swaps N     only: N calls on names that a program swaps for links and folders (usually 3000, promised for 100000)
  --bench       measure (tests/bench) instead of testing
  --machine     only: the Debian package under systemd and cgroup v2, as an operator uses it (tests/machine)
  --all         with make distcheck (also when CI=true)

DOCKER_HOST names the engine to use; without one that answers, a Docker Engine of the tests' own is started, with its
data in $ENGINE_DATA, and stopped at the end.
USAGE
}

parse_arguments() {
    [[ ${CI:-} != true ]] || run_dist=yes
    while (($#)); do
        case $1 in
        --unit) run_e2e=no run_dist=no ;;
        --e2e) run_unit=no run_dist=no ;;
        --only)
            [[ ${2:-} ]] || die "--only needs a name; see tests/run.sh --list"
            only=$2 run_unit=no run_dist=no
            shift
            ;;
        --machine) run_machine=yes run_unit=no run_dist=no ;;
        --list)
            exec "$(test_python)" "$top/tests/e2e/run.py" --list
            ;;
        --outputs | --soak | --swaps)
            [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "$1 needs a number"
            case $1 in
            --outputs)
                export SANDCGI_TEST_OUTPUTS=$2
                only='print a megabyte'
                ;;
            --soak)
                export SANDCGI_TEST_SOAK=$2
                only=soak
                ;;
            --swaps)
                export SANDCGI_TEST_SWAPS=$2
                only=hostile_tree
                ;;
            esac
            run_unit=no run_dist=no
            shift
            ;;
        --chaos)
            [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "$1 needs a number"
            run_chaos=only chaos=$2 run_unit=no run_dist=no
            shift
            ;;
        --bench) run_bench=yes ;;
        --conformance) run_conformance=only run_unit=no run_dist=no ;;
        --cluster) run_cluster=only run_unit=no run_dist=no ;;
        --browser) run_browser=only run_unit=no run_dist=no ;;
        --compare) run_compare=only run_unit=no run_dist=no ;;
        --all) run_dist=yes ;;
        -h | --help)
            usage
            exit 0
            ;;
        *) die "unknown option $1; see tests/run.sh --help" ;;
        esac
        shift
    done
}

main() {
    parse_arguments "$@"
    exec </dev/null
    trap 'engine_stop; rm -f "$unsteady"' EXIT
    trap 'exit 130' INT TERM
    packages_ensure "$run_e2e"
    stage_build
    if [[ $run_e2e == yes ]]; then
        stage_engine
    fi
    if [[ $run_machine == yes ]]; then
        [[ $run_e2e == no ]] || suite "a machine with systemd" "$top/tests/machine/run.sh"
        report_total
        return
    fi
    if [[ $run_bench == yes ]]; then
        stage_bench
        return
    fi
    if [[ $run_compare == only ]]; then
        [[ $run_e2e == no ]] || stage_compare
        engine_stop
        report_total
        return
    fi
    if [[ $run_chaos == only ]]; then
        [[ $run_e2e == no ]] || stage_chaos
        engine_stop
        report_total
        return
    fi
    if [[ $run_cluster == only ]]; then
        [[ $run_e2e == no ]] || stage_cluster
        engine_stop
        report_total
        return
    fi
    if [[ $run_conformance == only ]]; then
        [[ $run_e2e == no ]] || stage_conformance
        engine_stop
        report_total
        return
    fi
    if [[ $run_browser == only ]]; then
        [[ $run_e2e == no ]] || stage_browser
        engine_stop
        report_total
        return
    fi
    if [[ $run_unit == yes ]]; then
        stage_make_check
    fi
    if [[ $run_e2e == yes && -z $only ]]; then
        stage_waiting
        stage_compare
    fi
    if [[ $run_e2e == yes ]]; then
        stage_end_to_end
    fi
    if [[ $run_e2e == yes && -z $only ]]; then
        stage_cluster
        stage_chaos
    fi
    if [[ $run_dist == yes ]]; then
        stage_distcheck_begin
    fi
    if [[ $run_e2e == yes && -z $only ]]; then
        stage_conformance
    fi
    if [[ $run_dist == yes ]]; then
        stage_distcheck_end
    fi
    if [[ $run_e2e == yes && -z $only ]]; then
        stage_browser
    fi
    engine_stop
    report_total
}

main "$@"
