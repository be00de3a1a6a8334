# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# Building the program below build/. make decides what is out of date.

# configure must be made again when something that it is made of is newer.
configure_is_old()
{
    [[ -f $project/configure ]] || return 0
    [[ -n $(find "$project/configure.ac" "$project/Makefile.am" "$project"/*/local.mk "$project"/common/*/local.mk \
        -newer "$project/configure" -print -quit 2>/dev/null) ]]
}

run_configure()
{
    mkdir -p "$project/build" && cd "$project/build" && ../configure
}

# Builds beside what follows, with a log of its own; finish_build shows what it said.
begin_build()
{
    build_out=$run_dir/build.out
    build_program >"$build_out" 2>&1 9>&- &
    build_pid=$!
}

finish_build()
{
    local status=0
    wait "$build_pid" || status=$?
    cat "$build_out"
    rm -f "$build_out"
    ((status == 0)) || exit 1
}

build_program()
{
    local log_file=$log_dir/build.log
    local advice="see $log_file"
    : >"$log_file"
    if configure_is_old; then
        (cd "$project" && step "preparing the build (autoreconf)" autoreconf -fi) || die "autoreconf failed; $advice"
    fi
    if [[ ! -f $project/build/Makefile || $project/configure -nt $project/build/config.status ]]; then
        step "configuring" run_configure || die "configure failed; $advice (a library may be missing)"
    fi
    step "building what has changed" make -C "$project/build" -j"$(nproc)" sandcgi || die "the build failed; $advice"
    [[ -x $binary ]] || die "the build left no $binary; $advice"
}
