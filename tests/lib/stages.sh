# shellcheck shell=bash
# The stages of run.sh, in their order; run.sh sets top, build and the choices.
: "${top:?}" "${build:?}" "${unsteady=}" "${only=}" "${chaos=}" "${engine_ours=no}"

# quietly NAME COMMAND…: shows the output only when the command fails.
quietly() {
    local name=$1 log status=0 start=$SECONDS
    shift
    log=$(mktemp)
    "$@" >"$log" 2>&1 || status=$?
    if ((status)); then
        tail -n 60 "$log"
        keep_failures "$log"
    fi
    rm -f "$log"
    printf '%s (%d s)\n' "$name" "$((SECONDS - start))"
    return "$status"
}

# limited COMMAND…: on the build machine a stage that hangs is a failure that the counts tell.
limited() {
    if [[ ${CI:-} == true ]]; then
        set -- timeout --signal=TERM --kill-after=30 50m "$@"
    fi
    "$@"
}

# twice COMMAND…: a suite that fails has a second attempt, as a unit test has. What failed at the first is told above the counts.
twice() {
    local log status=0
    log=$(mktemp)
    limited "$@" 2>&1 | tee "$log" || status=$?
    if ((status != 0 && status != 77)); then
        sed -nE 's/^(not ok|FAILED|FAIL:|ERROR:)( -)? (.*)/needed a second attempt: \3/p' "$log" | head -n 20
        status=0
        limited "$@" 2>&1 || status=$?
    fi
    rm -f "$log"
    return "$status"
}

# suite NAME COMMAND…: shows the output and counts.
suite() {
    local name=$1 log status=0
    shift
    log=$(mktemp)
    SANDCGI_TEST_BINARY=$build/sandcgi "$@" 2>&1 | tee "$log" || status=$?
    count_from "$log" "$status" "$name"
    rm -f "$log"
}

stage_build() {
    heading "build with sanitizers"
    mkdir -p "$build"
    if [[ ! -x $top/configure || $top/configure.ac -nt $top/configure ]]; then
        quietly autoreconf env -C "$top" autoreconf -fi || die "autoreconf failed: see above"
    fi
    if [[ ! -f $build/Makefile || $top/configure -nt $build/Makefile ]]; then
        quietly configure env -C "$build" CFLAGS='-O1 -g' "$top/configure" --enable-sanitizer=address,undefined \
            --enable-werror || die "configure failed: see above and $build/config.log"
    fi
    quietly make make -C "$build" -j "$(nproc)" all || die "the build failed: see above"
    quietly "make of another version" make -C "$build" -j "$(nproc)" tests/e2e/sandcgi-other-version || die "the build failed: see above"
}

# The program that tests/conformance starts: sandcgi with the fixtures. Sets where it and the plain one are.
stage_conformance_build() {
    quietly "make sandcgi-conformance" make -C "$build" -j "$(nproc)" tests/conformance/sandcgi-conformance ||
        die "the build failed: see above"
    export SANDCGI_TEST_BINARY=$build/sandcgi
    export SANDCGI_CONFORMANCE_BINARY=$build/tests/conformance/sandcgi-conformance
}

stage_engine() {
    heading "engine and runner images"
    if ! engine_find; then
        one_skipped "end to end" "no container engine: see above"
        export run_e2e=no
        return
    fi
    if ! "$top/runners/build.sh"; then
        one_failed "the runner images do not build"
        export run_e2e=no
    fi
}

# automake's summary: "# PASS:  12"
automake_count() {
    sed -n "s/^# $2: *\([0-9]*\)\$/\1/p" "$1" | tail -n 1
}

stage_make_check() {
    local log status=0 pass fail skip xpass error name
    heading "make check"
    log=$(mktemp)
    SANDCGI_TEST_UNSTEADY=$unsteady make -C "$build" -j "$(nproc)" check VERBOSE=1 >"$log" 2>&1 || status=$?
    grep -E '^(PASS|FAIL|SKIP|XFAIL|XPASS|ERROR):' "$log" | sort -u || true
    pass=$(automake_count "$log" PASS) fail=$(automake_count "$log" FAIL) skip=$(automake_count "$log" SKIP)
    xpass=$(automake_count "$log" XPASS) error=$(automake_count "$log" ERROR)
    count "${pass:-0}" "$((${fail:-0} + ${xpass:-0} + ${error:-0}))" "${skip:-0}"
    if ((status)); then
        tail -n 150 "$log"
        keep_failures "$log"
        if ((${fail:-0} + ${xpass:-0} + ${error:-0} == 0)); then
            one_failed "make check ended with status $status"
        fi
    fi
    while read -r name; do
        tail -n 60 "$build/${name%% *}.log" | sed 's/^/    /'
    done <"$unsteady"
    rm -f "$log"
}

# stage_script LOG COMMAND…: writes what it says, and as the last line its status.
stage_script() {
    local log=$1 status=0
    shift
    SANDCGI_TEST_BINARY=$build/sandcgi "$@" >"$log" 2>&1 || status=$?
    echo "$status" >>"$log"
}

# Suites that wait more than they work, side by side.
stage_waiting() {
    local logs log name python names=("tests/nginx/run.py" "tests/runners/test_images.py")
    heading "nginx, images"
    logs=$(mktemp -d)
    python=$(test_python)
    stage_script "$logs/0" twice "$python" -u "$top/tests/nginx/run.py"
    stage_script "$logs/1" twice "$python" -u "$top/tests/runners/test_images.py"
    for name in 0 1; do
        log=$logs/$name
        heading "${names[name]}"
        sed '$d' "$log"
        count_from "$log" "$(tail -n 1 "$log")" "${names[name]}"
    done
    rm -rf "$logs"
}

# Every program under the bare interpreter, and in every way in which a run can start.
stage_compare() {
    heading "warm and bare interpreters"
    suite "tests/runners/compare" twice "$(test_python)" -u "$top/tests/runners/compare/run.py"
}

stage_end_to_end() {
    local arguments=()
    heading "end to end"
    if [[ $only ]]; then
        arguments=(--only "$only")
    fi
    suite "end to end" limited "$(test_python)" -u "$top/tests/e2e/run.py" "${arguments[@]}"
}

# The end-to-end tests again, where Debian's own kernel runs. An emulated one is slow: patience says how many times.
stage_vm() {
    local log status=0
    heading "end to end in a virtual machine"
    if [[ $engine_ours == no ]]; then
        one_skipped "in a virtual machine" "needs the images of the tests' own engine: unset DOCKER_HOST"
        return
    fi
    engine_stop
    log=$(mktemp)
    "$top/tests/vm/run.sh" "tests/lib/engine.sh start && DOCKER_HOST=unix://$ENGINE_SOCKET SANDCGI_TEST_ENGINE=ours \
        SANDCGI_TEST_PATIENCE=20 SANDCGI_TEST_BINARY=$build/sandcgi python3 -u tests/e2e/run.py --only '$only'" 2>&1 |
        tee "$log" || status=$?
    count_from "$log" "$status" "end to end in a virtual machine"
    rm -f "$log"
}

# Three nodes and an edge.
stage_cluster() {
    heading "several nodes"
    suite "tests/cluster" limited "$(test_python)" -u "$top/tests/cluster/run.py"
}

# Everything of the server is killed, stopped and starved while clients check every answer.
stage_chaos() {
    heading "chaos"
    suite "tests/chaos" twice "$(test_python)" -u "$top/tests/chaos/run.py" --seconds "$chaos"
}

# The official suite and the official clients.
stage_conformance() {
    heading "conformance"
    [[ ${distcheck_pid:-} ]] || stage_conformance_build
    suite "conformance" twice "$top/tests/conformance/run.sh"
}

# The page in a browser.
stage_browser() {
    heading "browser"
    suite "browser" limited "$top/tests/browser/run.sh"
}

# Beside the suite of clients, which waits much. As a release is built: what the compiler warns of depends on how it optimizes.
stage_distcheck_begin() {
    stage_conformance_build # nothing else may make in that folder meanwhile
    distcheck_log=$(mktemp)
    SANDCGI_TEST_UNSTEADY=$unsteady nice -n 5 make -C "$build" -j "$(nproc)" distcheck VERBOSE=1 \
        DISTCHECK_CONFIGURE_FLAGS=--enable-werror >"$distcheck_log" 2>&1 &
    distcheck_pid=$!
}

stage_distcheck_end() {
    heading "make distcheck"
    if wait "$distcheck_pid"; then
        one_ok "make distcheck"
    else
        tail -n 60 "$distcheck_log"
        keep_failures "$distcheck_log"
        one_failed "make distcheck"
    fi
    rm -f "$distcheck_log"
}

stage_bench() {
    heading "measure"
    "$(test_python)" -u "$top/tests/e2e/run.py" --bench "$top/tests/bench/run.sh"
    "$top/tests/bench/run_code.sh" --quick
    "$(test_python)" -u "$top/tests/bench/links.py"
}
