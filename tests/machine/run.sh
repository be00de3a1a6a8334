#!/usr/bin/env bash
# An operator's walk (walk.py) on a machine of its own: Debian with systemd and cgroup v2, where the Debian package is installed.
#   tests/machine/run.sh [WORD]     only the tests whose sentence contains WORD
# The machine is user-mode Linux: it needs root, but no KVM. Its disks are made anew each time, and gone at the end.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly top
readonly cache=${SANDCGI_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/sandcgi-tests}/machine
readonly name=sandcgi-machine
readonly packages=systemd-sysv,dbus,udev,kmod,apparmor,docker.io,iptables,nftables,nginx-light,procps,adduser,python3,quota
# shellcheck source=tests/lib/debian_root.sh
source "$top/tests/lib/debian_root.sh"

die() {
    echo "tests/machine: $*" >&2
    exit 1
}

step() {
    printf '%4d s  %s\n' "$SECONDS" "$*"
}

# The walk begins when the machine is up, and switches it off.
unit() {
    cat <<END
[Unit]
After=multi-user.target docker.service nginx.service
[Service]
Type=oneshot
Environment=HOME=/root LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 SANDCGI_TEST_PATIENCE=5
ExecStart=/job/command
ExecStopPost=/bin/systemctl --force --force poweroff
StandardOutput=append:/job/output
StandardError=inherit
TimeoutStartSec=infinity
[Install]
WantedBy=graphical.target
END
}

# User-mode Linux has no tables of nftables for both protocols: Docker takes the older iptables, and programs get no network.
job() {
    cat <<END
#!/bin/bash
export DEBIAN_FRONTEND=noninteractive
dpkg -i /job/sandcgi.deb && "$top/tests/machine/set_up.sh" $name && python3 -u "$top/tests/machine/walk.py" $1
echo \$? >/job/status
END
}

base() {
    [[ -e $cache/root.tar ]] && return
    debian_root "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$cache/new.tar" "$packages,$debian_libraries" --variant=minbase \
        --aptopt='APT::Install-Recommends "false"'
    mv "$cache/new.tar" "$cache/root.tar"
    step "a root of Debian"
}

package() {
    debian_sources "$top" "$work/build/sandcgi"
    (cd "$work/build/sandcgi" && DEB_BUILD_OPTIONS="noautodbgsym parallel=$(nproc)" dpkg-buildpackage -us -uc -b) >"$work/build.log" 2>&1 ||
        { tail -n 40 "$work/build.log" && die "the package does not build"; }
    mv "$work"/build/sandcgi_*.deb "$work/job/sandcgi.deb"
    rm -r "$work/build"
    step "the package"
}

# The images, and that which they are built on, from the tests' engine to one that writes to the machine's disk.
images() {
    local socket=$work/engine/docker.sock pid
    mkdir "$work/engine"
    dockerd --data-root="$work/root/var/lib/docker" --exec-root="$work/engine/exec" --pidfile="$work/engine/pid" --host="unix://$socket" \
        --bridge=none --iptables=false --storage-driver=overlay2 >"$work/engine/log" 2>&1 &
    pid=$!
    until docker -H "unix://$socket" version >/dev/null 2>&1; do
        kill -0 "$pid" || die "no engine for the disk: $(tail -n 3 "$work/engine/log")"
        sleep 0.2
    done
    docker save debian:trixie-slim sandcgi-runner-workbench:latest | docker -H "unix://$socket" load --quiet
    kill "$pid"
    wait "$pid" || true
    step "the images of runners"
}

disks() {
    local root=$work/root tables
    mkdir -p "$root/lib/modules" "$root/job" "$root$top" "$root/var/lib/sandcgi"
    cp -a /usr/lib/uml/modules/* "$root/lib/modules/"
    unit >"$root/etc/systemd/system/walk.service"
    chroot "$root" systemctl --quiet enable walk.service
    chroot "$root" systemctl --quiet set-default graphical.target
    echo "$name" >"$root/etc/hostname"
    echo "127.0.0.1 localhost $name" >"$root/etc/hosts"
    cat >"$root/etc/fstab" <<END
/dev/ubda / ext4 defaults 0 0
/dev/ubdb /var/lib/sandcgi ext4 usrquota 0 0
job /job hostfs $work/job,sync 0 0
top $top hostfs $top,ro 0 0
END
    for tables in iptables ip6tables; do
        chroot "$root" update-alternatives --quiet --set "$tables" "/usr/sbin/$tables-legacy"
    done
    truncate -s 16G "$work/root.img"
    truncate -s 4G "$work/data.img"
    mke2fs -q -F -t ext4 -d "$root" "$work/root.img"
    mke2fs -q -F -t ext4 -O quota -E quotatype=usrquota "$work/data.img"
    rm -r "$root"
    step "the disks"
}

boot() {
    : >"$work/job/output"
    TMPDIR=$work timeout 90m linux.uml mem=4G ubd0="$work/root.img" ubd1="$work/data.img" root=/dev/ubda rw apparmor=1 security=apparmor \
        con=null con1=fd:0,fd:1 console=tty1 umid="$name-$$" </dev/null >"$work/console" 2>&1 &
    machine=$!
    step "the machine starts"
    tail -n +1 --pid="$machine" -f "$work/job/output"
    wait "$machine" || true
    [[ -e $work/job/status ]] || { tail -n 20 "$work/console" && die "the machine ended before the walk did"; }
    return "$(<"$work/job/status")"
}

main() {
    local tool
    ((EUID == 0)) || die "needs root"
    for tool in linux.uml:user-mode-linux mmdebstrap:mmdebstrap dockerd:docker.io dpkg-buildpackage:dpkg-dev dh:debhelper; do
        command -v "${tool%:*}" >/dev/null || die "${tool%:*} is missing: apt-get install ${tool#*:}"
    done
    mkdir -p "$cache"
    work=$(mktemp -d /var/tmp/sandcgi-machine-XXXXXX)
    trap 'kill ${machine:+"$machine"} 2>/dev/null || true; rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM
    mkdir "$work/root" "$work/job"
    chmod 0755 "$work" "$work/root"
    job "${1:+--only $(printf %q "$1")}" >"$work/job/command"
    chmod 0755 "$work/job/command"
    package
    base
    tar -x -C "$work/root" -f "$cache/root.tar"
    images
    disks
    boot
}

main "$@" </dev/null
