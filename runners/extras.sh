# shellcheck shell=bash disable=SC2154 # build.sh sources this
# RUNNER_EXTRAS: groups of packages, and languages, as a layer on the runner whose folder "extras" has a file for each.

extras=()

# extras_of RUNNER: those that there are.
extras_of() {
    [[ ! -d $folders/$1/extras ]] || ls "$folders/$1/extras"
}

# The setting, of the environment or else of the settings file, as a list without repetition.
read_extras() {
    local value=${RUNNER_EXTRAS:-} all
    if [[ ! $value && -r $settings ]]; then
        value=$(sed -n 's/^RUNNER_EXTRAS=//p' "$settings" | tail -n 1 | tr -d "\"'")
    fi
    mapfile -t extras < <(tr -s ', ' '\n' <<<"$value" | sed '/^$/d' | sort -u)
    all=$(for name in "${runners[@]}"; do extras_of "$name"; done)
    for name in "${extras[@]}"; do
        grep -qxF -- "$name" <<<"$all" || fail "RUNNER_EXTRAS: there is no '$name'; there are: $(tr '\n' ' ' <<<"$all")"
    done
}

has_extras() {
    [[ ! $until && ${#extras[@]} -gt 0 && -d $folders/$1/extras ]]
}

# label_with_extras RUNNER BUILD: the label sandbox.build of the whole image.
label_with_extras() {
    printf '%s' "$2"
    ! has_extras "$1" || printf '+%s' "${extras[@]}"
}

# image_of RUNNER: the name that it gets.
image_of() {
    local own=sandcgi-runner-$1:latest
    ! has_extras "$1" || own=${tag:-$own}
    printf '%s' "$own"
}

# What the extras of a runner are built on: its image without any, under a name that is on no allow-list.
plain_tag() {
    printf 'sandcgi-build-%s:plain' "$1"
}

# is_language RUNNER EXTRA
is_language() {
    grep -q '^row=' "$folders/$1/extras/$2"
}

# make_extras RUNNER BEFORE: the unproved image with the extras, and the proofs of those that are no language.
make_extras() {
    local name=$1 before=$2 extra languages
    languages=$(label_of "$before" sandbox.language)
    for extra in "${extras[@]}"; do
        ! is_language "$name" "$extra" || languages+=" $extra"
    done
    rm -rf "$work/extras"
    mkdir "$work/extras"
    cp "$folders/$name/Dockerfile.extras" "$work/extras/Dockerfile"
    step "${extras[*]}: packages"
    "${engine[@]}" build "${build_args[@]}" --build-arg "BEFORE=$before" --build-arg "EXTRAS=${extras[*]}" \
        --label "sandbox.language=$languages" -t "$(unproved "$name")" "$work/extras" >>"$log" 2>&1 </dev/null ||
        fail_logged "the extras (${extras[*]}) do not install: check the network and the disk, then try again"
    done_step
    for extra in "${extras[@]}"; do
        is_language "$name" "$extra" || prove "$name" "$extra"
    done
}

# add_extras RUNNER BUILD
add_extras() {
    local name=$1 build=$2
    if [[ $(label_of "sandcgi-runner-$name:latest" sandbox.build) == "$build" ]]; then
        "${engine[@]}" tag "sandcgi-runner-$name:latest" "$(plain_tag "$name")"
    fi
    make_extras "$name" "$(plain_tag "$name")"
    prove_and_stamp "$name" "$(label_with_extras "$name" "$build")"
}

# has_plain RUNNER BUILD: its image without extras is there, maybe below one with others.
has_plain() {
    local tag
    for tag in "sandcgi-runner-$1:latest" "$(plain_tag "$1")"; do
        [[ $(label_of "$tag" sandbox.build) != "$2" ]] || return 0
    done
    return 1
}

# Extras that are wanted no more.
drop_extras() {
    "${engine[@]}" tag "$(plain_tag "$1")" "sandcgi-runner-$1:latest"
    drop_replaced
    printf '  %-44s without extras\n' "$1"
}

size_of() {
    "${engine[@]}" image inspect --format '{{.Size}}' "$1"
}

# try_extra RUNNER BUILD EXTRA: alone on the runner's image; proves it, tells its size, and keeps nothing.
try_extra() {
    local name=$1 before language
    before=sandcgi-runner-$1:latest
    extras=("$3")
    [[ $(label_of "$before" sandbox.build) == "$2" ]] || before=$(plain_tag "$name")
    make_extras "$name" "$before"
    for language in $(label_of "$(unproved "$name")" sandbox.language); do
        prove "$name" "$language"
    done
    printf '  %-44s %6d MB\n' "$3" "$((($(size_of "$(unproved "$name")") - $(size_of "$before")) / 1000000))"
    "${engine[@]}" rmi "$(unproved "$name")" >>"$log"
}

# Each alone, in a shell of its own: one that fails does not end the others.
try_extras() {
    local name=$1 build extra failed=()
    build=$(fingerprint "$name")
    has_plain "$name" "$build" || fail "extras are tried on the image for $name: build it first"
    ((${#tried[@]})) || mapfile -t tried < <(extras_of "$name")
    for extra in "${tried[@]}"; do
        (try_extra "$name" "$build" "$extra") || failed+=("$extra")
    done
    ((${#failed[@]} == 0)) || fail "no proof of ${failed[*]}"
}
