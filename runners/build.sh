#!/usr/bin/env bash
# Builds the runner images, proves what they advertise, and stamps that on them. See runners/README.md.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
# Of the runners; "make install" puts the place of the installed ones here.
folders=$here
readonly folders
readonly base=debian:trixie-slim
readonly suite=trixie
# How long a registry may take to answer at all, and then to deliver.
readonly answer_s=15 deliver_s=900
readonly prove_s=300

force=no
only_fingerprint=no
readonly entry=$here/common/entry
readonly warm=$here/warm/warm.so
readonly nss=$here/nss/libnss_sandbox.so.2
runners=()
until=
settings=
tag=
try=no
tried=()
engine=()
build_args=()
# Of the proof's container: an account as runs have it.
account=(--user 1879048192:1879048192)
work=
log=
started=0

usage() {
    cat <<USAGE
usage: runners/build.sh [--force | --fingerprint] [--settings FILE] [--tag IMAGE] [RUNNER | LAYER]…
       runners/build.sh --try-extras [EXTRA]…

Builds sandcgi-runner-RUNNER:latest for each folder with a Dockerfile (default: all).
Images that are up to date are skipped. A runner that is made in layers (workbench: bash, python, rest) is tagged after each,
unless an image with more languages is there; with the name of a layer it is built up to that.

  --force       build again, without the engine's cache
  --fingerprint build nothing: print each runner with the label sandbox.build that its image gets
  --settings FILE
                where RUNNER_EXTRAS stands, if it is not in the environment: what is added to the workbench
                (runners/README.md)
  --tag IMAGE   the name of an image with extras, instead of its runner's
  --try-extras  build and prove each extra alone, tell its size, and keep nothing

Ends with 3 when the base image cannot be pulled and mmdebstrap, which makes it, is not installed.

Uses docker or podman, whichever answers. DOCKER_HOST is respected.
USAGE
}

fail() {
    ((started)) && printf ' failed\n'
    printf 'runners: %s\n' "$*" >&2
    exit 1
}

# fail, with the log kept for reading: by systemd in the unit's LogsDirectory, since /tmp is the unit's own and goes with it.
fail_logged() {
    local kept=${LOGS_DIRECTORY:+$LOGS_DIRECTORY/runners.log}
    [[ $kept ]] || kept=$(mktemp "${TMPDIR:-/tmp}/sandcgi-runners.XXXXXX")
    cp "$log" "$kept"
    fail "$1; the log ends with \"$(grep -v '^[[:space:]]*$' "$log" | tail -n 1 | cut -c 1-300)\"; the whole log is in $kept"
}

step() {
    started=$(date +%s%N)
    printf '  %-44s' "$*"
}

done_step() {
    printf ' %6s s%s\n' "$(awk -v n="$(($(date +%s%N) - started))" 'BEGIN { printf "%.1f", n / 1e9 }')" "${1:+  $1}"
    started=0
}

parse_arguments() {
    while (($#)); do
        case $1 in
        --force) force=yes ;;
        --fingerprint) only_fingerprint=yes ;;
        --settings)
            [[ ${2:-} ]] || fail "--settings needs a file"
            # shellcheck disable=SC2034 # of extras.sh
            settings=$2
            shift
            ;;
        --tag)
            [[ ${2:-} ]] || fail "--tag needs a name"
            tag=$2
            shift
            ;;
        --try-extras) try=yes ;;
        -h | --help)
            usage
            exit 0
            ;;
        -*) fail "unknown option $1; see runners/build.sh --help" ;;
        *)
            take_name "$1"
            ;;
        esac
        shift
    done
    if ((${#runners[@]} == 0)); then
        local file
        for file in "$folders"/*/Dockerfile; do
            runners+=("$(basename "$(dirname "$file")")")
        done
    fi
}

# A runner, or a layer of one.
take_name() {
    local file
    if [[ $try == yes ]]; then
        extras_of workbench | grep -qxF -- "$1" || fail "there is no extra '$1'; there are: $(extras_of workbench | tr '\n' ' ')"
        tried+=("$1")
        return
    fi
    if [[ -f $folders/$1/Dockerfile ]]; then
        runners+=("$1")
        return
    fi
    for file in "$folders"/*/layers/?-"$1"; do
        [[ -f $file ]] || fail "no runner '$1': there is no $folders/$1/Dockerfile"
        runners+=("$(basename "${file%/layers/*}")")
        until=$1
    done
}

# use_podman COMMAND…: does it answer? Without root it has few ids; runs have that of its account. A network of their own would
# need more programs: its builds have the machine's.
use_podman() {
    local rootless
    command -v podman >/dev/null && rootless=$(timeout 60 "$@" info --format '{{.Host.Security.Rootless}}' 2>&1) || return 1
    engine=("$@")
    if [[ $rootless == *true ]]; then
        account=(--userns keep-id --user "$(id -u):$(id -g)")
        build_args+=(--network host)
    fi
}

find_engine() {
    local url=${DOCKER_HOST:-} told=
    if command -v docker >/dev/null && told=$(timeout 20 docker version 2>&1); then
        # Podman's own client knows what docker does not ask for.
        if [[ $url && $told == *'Podman Engine'* ]] && use_podman podman --url "$url"; then
            return
        fi
        engine=(docker)
        # Without the buildx component only the classic builder works.
        if ! docker buildx version >/dev/null 2>&1; then
            export DOCKER_BUILDKIT=0
            build_args+=(--force-rm)
        fi
        return
    fi
    use_podman podman ${url:+--url "$url"} && return
    fail "no container engine answers${told:+ ($(tail -n 1 <<<"$told"))}: start docker or podman, or set DOCKER_HOST"
}

image_exists() {
    "${engine[@]}" image inspect "$1" >/dev/null 2>&1
}

label_of() {
    "${engine[@]}" image inspect --format "{{ index .Config.Labels \"$2\" }}" "$1" 2>/dev/null || true
}

# Pulls the base; gives up early when no registry answers, but lets a slow one deliver.
pull_base() {
    local pid waited=0 limit=$answer_s
    "${engine[@]}" pull "$base" >"$work/pull" 2>&1 </dev/null &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        grep -qE 'Pulling from|Pulling fs|Getting image|Copying blob' "$work/pull" && limit=$deliver_s
        if ((waited >= limit * 5)); then
            kill "$pid" 2>/dev/null || true
            break
        fi
        sleep 0.2
        waited=$((waited + 1))
    done
    wait "$pid" 2>/dev/null
}

# Without documentation and translations, and without waiting for the disk after each file, as Debian's own image.
make_base() {
    mmdebstrap --variant=apt --include=passwd --components=main --dpkgopt=force-unsafe-io \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' "$suite" "$work/base.tar" >>"$log" 2>&1 ||
        fail_logged "$base cannot be pulled, and mmdebstrap could not make it: check the network and the disk"
    "${engine[@]}" import "$work/base.tar" "$base" >>"$log" 2>&1 || fail_logged "the engine does not take $base"
    rm -f "$work/base.tar"
}

ensure_base() {
    image_exists "$base" && return
    step "base image: pull"
    if pull_base && image_exists "$base"; then
        done_step
        return
    fi
    cat "$work/pull" >>"$log"
    done_step "no registry answers"
    if ! command -v mmdebstrap >/dev/null; then
        printf 'runners: %s\n' "$base cannot be pulled and mmdebstrap is missing: apt-get install mmdebstrap, or load the image yourself" >&2
        exit 3
    fi
    step "base image: make it from Debian packages"
    make_base
    done_step
}

# What an image is made of, as one number.
fingerprint() {
    {
        (cd "$folders/$1" && find . -name __pycache__ -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
        sources_fingerprint
    } | sha256sum | cut -d ' ' -f 1
}

# The certificates this machine trusts, so that a build behind an inspecting proxy works; they stay out of the image.
copy_trust() {
    local file
    for file in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
        if [[ $file && -r $file ]]; then
            cat "$file" >"$1"
            return
        fi
    done
    : >"$1"
}

collect_build_args() {
    local name
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        if [[ ${!name:-} ]]; then
            build_args+=(--build-arg "$name")
        fi
    done
    if [[ $force == yes ]]; then
        build_args+=(--no-cache)
    fi
}

# The name of an image before its proof, or of a layer: not on any allow-list, and this process's own, so that two builds do not mix.
unproved() {
    printf 'sandcgi-build-%s:%s' "$1" "$$"
}

# The layers of a runner, in their order.
layers_of() {
    local file
    for file in "$folders/$1"/layers/?-*; do
        [[ -f $file ]] && basename "$file" | cut -c 3-
    done
}

prepare_context() {
    local context=$work/$1
    mkdir "$context"
    cp -r "$folders/$1/." "$context/"
    install -m 0755 "$entry" "$context/entry"
    install -m 0644 "$warm" "$nss" "$context/"
    copy_trust "$context/ca.pem"
}

# build_unproved RUNNER [LAYER]
build_unproved() {
    local name=$1 layer=${2:-}
    step "${layer:-$name}: build"
    "${engine[@]}" build "${build_args[@]}" ${layer:+--build-arg "BEFORE=$(unproved "$name-$layer")"} \
        -t "$(unproved "$name")" "$work/$name" >>"$log" 2>&1 </dev/null ||
        fail_logged "the image for ${layer:-$name} does not build: check the network and the disk, then try again"
    done_step
}

# build_packages RUNNER LAYER BEFORE: what the engine makes of the layer's file, on the layer before.
build_packages() {
    local name=$1 layer=$2 before=$3
    step "$layer: packages"
    "${engine[@]}" build "${build_args[@]}" ${before:+--build-arg "BEFORE=$(unproved "$name-$before")"} \
        -t "$(unproved "$name-$layer")" -f "$(echo "$work/$name"/layers/?-"$layer")" "$work/$name" >>"$log" 2>&1 </dev/null ||
        fail_logged "the packages for $layer do not install: check the network and the disk, then try again"
    done_step
}

# prove RUNNER LANGUAGE: runs the image's own proof in the shape that runs have in production.
prove() {
    local name=$1 language=$2 status=0 folder=/usr/local/lib/sandbox
    [[ ! -d $folders/$name/$language && ! -f $folders/$name/extras/$language ]] || folder+=/$language
    step "$language: prove"
    timeout "$prove_s" "${engine[@]}" run --rm --network none --read-only "${account[@]}" \
        --tmpfs /tmp:rw,exec,nosuid,nodev,size=64m,mode=1777 --cap-drop ALL --security-opt no-new-privileges \
        --memory 1g --memory-swap 1g --pids-limit 128 --log-driver none \
        --entrypoint "$folder/prove" "$(unproved "$name")" >"$work/proof" 2>"$work/unproved" </dev/null || status=$?
    cat "$work/proof" "$work/unproved" >>"$log"
    if ((status)) || ! grep -q '^version ' "$work/proof"; then
        "${engine[@]}" rmi "$(unproved "$name")" >>"$log" 2>&1 || true
        fail_logged "the proof of $language failed (exit $status): its image is not offered"
    fi
    done_step
}

# Podman without root says this of limits on cgroup v1.
tell_unproved() {
    sed -e '/^Resource limits are not supported/d' -e 's/^/      not advertised: /' "$work/unproved"
}

# Only what cannot break a label.
plain() {
    tr -cd 'A-Za-z0-9._+=~@/ -'
}

# Images that newer ones took the name of; one in which something still runs stays until the next time.
drop_replaced() {
    local id
    for id in $("${engine[@]}" image ls -q --filter dangling=true --filter label=sandbox.build); do
        "${engine[@]}" rmi "$id" >>"$log" 2>&1 || true
    done
}

# labels_of LANGUAGE SUFFIX: what its proof has printed.
labels_of() {
    local version libraries
    version=$(sed -n 's/^version //p' "$work/proof" | head -n 1 | plain)
    libraries=$(sed -n '/^version /!{/^[^ =]*=[^ ]*$/p}' "$work/proof" | tr '\n' ' ' | plain)
    printf 'LABEL sandbox.version%s="%s" sandbox.libraries%s="%s"\n' "$2" "$version" "$2" "${libraries% }"
}

# prove_and_stamp RUNNER BUILD [TAG]
prove_and_stamp() {
    local name=$1 build=$2 image=${3:-$(image_of "$1")} languages language suffix=
    languages=$(label_of "$(unproved "$name")" sandbox.language)
    rm -rf "$work/stamp"
    mkdir "$work/stamp"
    printf 'FROM %s\nLABEL sandbox.build="%s"\n' "$(unproved "$name")" "$build" >"$work/stamp/Dockerfile"
    for language in $languages; do
        prove "$name" "$language"
        [[ $build == *-* ]] || tell_unproved
        [[ $languages != *' '* ]] || suffix=.$language
        labels_of "$language" "$suffix" >>"$work/stamp/Dockerfile"
    done
    "${engine[@]}" build -t "$image" "$work/stamp" >>"$log" 2>&1 </dev/null ||
        fail_logged "the image for $name cannot be stamped"
    "${engine[@]}" rmi "$(unproved "$name")" >>"$log" 2>&1 || true
    drop_replaced
    [[ ${3:-} ]] || copy_for_account "$name"
}

# Podman without root copies an image for the ids of its account at the first container: better now than in the first run.
copy_for_account() {
    [[ ${account[0]} == --userns ]] || return 0
    step "$1: copy for the ids of $(id -un)"
    "${engine[@]}" run --rm --network none "${account[@]}" --entrypoint /bin/true "sandcgi-runner-$1:latest" >>"$log" 2>&1 </dev/null ||
        fail_logged "no container of the image for $1 starts"
    done_step
}

# has_more RUNNER LAYER: is there an image, of now or earlier, with a language that this layer does not have?
has_more() {
    local language layer
    layer=" $(label_of "$(unproved "$1-$2")" sandbox.language) "
    for language in $(label_of "sandcgi-runner-$1:latest" sandbox.language); do
        [[ $layer == *" $language "* ]] || return 0
    done
    return 1
}

# Each layer on the one before; what it runs is offered while the next one is made.
build_in_layers() {
    local name=$1 build=$2 layer before='' layers
    mapfile -t layers < <(layers_of "$name")
    for layer in "${layers[@]}"; do
        build_packages "$name" "$layer" "$before"
        before=$layer
        if [[ $layer == "${layers[-1]}" ]]; then
            build_unproved "$name" "$layer"
            if has_extras "$name" && { [[ $tag ]] || has_more "$name" "$layer"; }; then
                prove_and_stamp "$name" "$build" "$(plain_tag "$name")"
            else
                prove_and_stamp "$name" "$build"
            fi
        elif [[ $(label_of "sandcgi-runner-$name:latest" sandbox.build) != "$build-$layer" ]] && ! has_more "$name" "$layer"; then
            build_unproved "$name" "$layer"
            prove_and_stamp "$name" "$build-$layer"
        fi
        [[ $layer != "$until" ]] || break
    done
}

# The images keep what they are made of, without the names.
forget_layers() {
    local name layer
    for name in "${runners[@]}"; do
        for layer in $(layers_of "$name"); do
            "${engine[@]}" rmi "$(unproved "$name-$layer")" >/dev/null 2>&1 || true
        done
    done
}

# is_built RUNNER BUILD: as far as is asked for, or farther.
is_built() {
    local name=$1 build=$2 label layer
    label=$(label_of "$(image_of "$name")" sandbox.build)
    [[ $label != "$(label_with_extras "$name" "$build")" ]] || return 0
    [[ $until ]] || return 1
    [[ ${label%%+*} != "$build" ]] || return 0
    for layer in $(layers_of "$name" | sed -n "/^$until\$/,\$p"); do
        [[ $label != "$build-$layer" ]] || return 0
    done
    return 1
}

build_runner() {
    local name=$1 build
    build=$(fingerprint "$name")
    if [[ $force == no ]] && is_built "$name" "$build"; then
        printf '  %-44s up to date\n' "$name"
        return
    fi
    if [[ $force == yes || $until ]] || ! has_plain "$name" "$build"; then
        build_plain "$name" "$build"
    elif ! has_extras "$name"; then
        drop_extras "$name"
    fi
    if has_extras "$name"; then
        add_extras "$name" "$build"
    else
        "${engine[@]}" rmi "$(plain_tag "$name")" >/dev/null 2>&1 || true
    fi
}

# The image without extras.
build_plain() {
    local name=$1 build=$2
    ensure_base
    prepare_context "$name"
    if [[ $(layers_of "$name") ]]; then
        build_in_layers "$name" "$build"
    else
        build_unproved "$name"
        prove_and_stamp "$name" "$build"
    fi
}

main() {
    local name part
    for part in compile extras; do
        # shellcheck source=/dev/null
        source "$here/$part.sh"
    done
    parse_arguments "$@"
    read_extras
    work=$(mktemp -d)
    log=$work/log
    : >"$log"
    trap 'rm -rf "$work"' EXIT
    if [[ $only_fingerprint == yes ]]; then
        for name in "${runners[@]}"; do
            printf '%s %s\n' "$name" "$(label_with_extras "$name" "$(fingerprint "$name")")"
        done
        return
    fi
    ensure_entry
    ensure_shared "$warm"
    ensure_shared "$nss"
    find_engine
    collect_build_args
    if [[ $try == yes ]]; then
        try_extras workbench
        return
    fi
    trap 'forget_layers; rm -rf "$work"' EXIT
    for name in "${runners[@]}"; do
        build_runner "$name"
    done
}

main "$@"
