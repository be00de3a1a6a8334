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

build_program()
{
    local advice="see $log_file"
    if configure_is_old; then
        (cd "$project" && step "preparing the build (autoreconf)" autoreconf -fi) || die "autoreconf failed; $advice"
    fi
    if [[ ! -f $project/build/Makefile || $project/configure -nt $project/build/config.status ]]; then
        step "configuring" run_configure || die "configure failed; $advice (a library may be missing)"
    fi
    step "building what has changed" make -C "$project/build" -j"$(nproc)" sandcgi || die "the build failed; $advice"
    [[ -x $binary ]] || die "the build left no $binary; $advice"
}
