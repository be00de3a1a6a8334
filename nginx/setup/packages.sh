# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# Required programs and libraries; missing ones are installed as Debian packages.

# package, and what it provides: a command, a header or a pkg-config name
readonly needed_packages='
gcc               command gcc
make              command make
autoconf          command autoreconf
automake          command automake
pkg-config        command pkg-config
libc6-dev         header stdio.h
libfcgi-dev       header fcgiapp.h
libcurl4-openssl-dev library libcurl
libssl-dev        library libcrypto
libjansson-dev    library jansson
libarchive-dev    library libarchive
libargon2-dev     library libargon2
libcjose-dev      library cjose
libseccomp-dev    library libseccomp
nginx-light       command nginx
openssl           command openssl
curl              command curl
jq                command jq
'

is_there()
{
    case $1 in
    command) have "$2" ;;
    header) [[ -n $(find /usr/include /usr/local/include -maxdepth 3 -name "$2" -print -quit 2>/dev/null) ]] ;;
    library) have pkg-config && pkg-config --exists "$2" ;;
    esac
}

missing_packages()
{
    local package kind name
    while read -r package kind name; do
        [[ -z $package ]] || is_there "$kind" "$name" || printf '%s ' "$package"
    done <<<"$needed_packages"
}

# install_packages NAME…
install_packages()
{
    local with_nginx=no
    have apt-get || die "please install these with your system's tools (Debian's names) and call start.sh again: $*"
    if ((EUID != 0)); then
        have sudo || die "not root and no sudo; ask for these packages and call start.sh again: apt-get install $*"
        say "  sudo is used to install packages: $*"
        sudo -v || die "sudo was refused; have these installed and call start.sh again: apt-get install $*"
    fi
    [[ " $* " != *" nginx-light "* ]] || with_nginx=yes
    [[ $with_nginx == no ]] || keep_system_nginx_off mask
    read_package_lists || say "  (package lists could not be read; trying with the old ones)"
    step "installing $(wc -w <<<"$*") packages" as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" ||
        die "the packages could not be installed; see $log_file, or install them yourself: apt-get install $*"
    [[ $with_nginx == no ]] || keep_system_nginx_off unmask
}

# Once in a call.
read_package_lists()
{
    [[ -z ${package_lists:-} ]] || return 0
    step "reading the package lists" as_root apt-get -o DPkg::Lock::Timeout=300 update || return 1
    package_lists=yes
}

# Debian's package starts an nginx on port 80; it is not wanted.
keep_system_nginx_off()
{
    systemd_runs || return 0
    as_root systemctl "$1" --runtime nginx.service >>"$log_file" 2>&1 || true
    [[ $1 != unmask ]] || as_root systemctl disable nginx.service >>"$log_file" 2>&1 || true
}

ensure_packages()
{
    local missing
    missing=$(missing_packages)
    # shellcheck disable=SC2086 # a list of words
    [[ -z $missing ]] || install_packages $missing
}
