# shellcheck shell=bash
# Builds with sanitizers in $build: the program, the tests, and what they start.
: "${top:?}" "${build=}"

# What has been compiled before, in any clone, comes from a cache.
compiler=gcc
if command -v ccache >/dev/null; then
    compiler='ccache gcc'
    export CCACHE_DIR=${CCACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/sandcgi-tests/ccache} CCACHE_BASEDIR=$top CCACHE_NOHASHDIR=yes CCACHE_MAXSIZE=1G
fi

# quietly NAME COMMAND…: shows the output only when the command fails.
quietly() {
    local name=$1 log status=0 start=$SECONDS
    shift
    log=$(mktemp)
    "$@" >"$log" 2>&1 || status=$?
    ((status == 0)) || tail -n 60 "$log"
    rm -f "$log"
    printf '%s (%d s)\n' "$name" "$((SECONDS - start))"
    return "$status"
}

# configured OPTION…: makes a Makefile in $build, unless there is one that is new enough.
configured() {
    mkdir -p "$build"
    if [[ ! -x $top/configure || $top/configure.ac -nt $top/configure ]]; then
        quietly autoreconf env -C "$top" autoreconf -fi || die "autoreconf failed: see above"
    fi
    if [[ ! -f $build/Makefile || $top/configure -nt $build/Makefile ]]; then
        # By a relative path: a copy of the tree with its build compiles what is in the copy.
        quietly configure env -C "$build" "$(realpath --relative-to="$build" "$top")/configure" CC="$compiler" "$@" || die "configure failed: see above and $build/config.log"
    fi
}

# make_all TARGET…
make_all() {
    quietly make make -C "$build" -j "$(nproc)" "$@" || die "the build failed: see above"
}

# What suites start.
build_program() {
    configured CFLAGS='-O1 -g' --enable-sanitizer=address,undefined --enable-werror
    make_all all
    make_all tests/e2e/sandcgi-other-version tests/conformance/sandcgi-conformance
}

# Without sanitizers, with what settings fix: for tests that look at memory.
build_plain() {
    build=$top/build-plain
    configured --enable-test-settings
    make_all sandcgi
    printf 'SANDCGI_TEST_PLAIN_BINARY=%s\n' "$build/sandcgi"
}

build_units() {
    make_all check-programs
}

# As a release is built: what the compiler warns of depends on how it optimizes.
dist_check() {
    make -C "$build" distcheck DISTCHECK_CONFIGURE_FLAGS="--enable-werror CC='$compiler'"
}

# unit_tests [NAME…]: all of make check, or the tests, and scripts, whose names have these words. Which script has a test
# is in the logs of the run before.
unit_tests() {
    local name program scripts
    (($#)) || exec make -C "$build" -j "$(nproc)" -k check
    for name; do
        if [[ $name == tests/*.* ]]; then
            scripts=$name
        else
            scripts=$(cd "$build" && grep -lF -- "$name" tests/*/*.*.log | sed 's/\.log$//') || true
            for program in "$build"/tests/unit/*/unit "$build/tests/fuzz/replay"; do
                # grep reads all of the list: a program that cannot write it fails.
                ! "$program" --list | grep -F -- "$name" >/dev/null || "$program" "$name"
            done
        fi
        [[ -z $scripts ]] || make -C "$build" -j "$(nproc)" check TESTS="${scripts//$'\n'/ }"
    done
}
