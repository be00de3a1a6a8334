#!/usr/bin/env bash
# Runs a command in a virtual machine with Debian's kernel: cgroup v2, systemd, project quotas, AppArmor, nftables for bridges.
# It sees this tree, and a copy of the data of the tests' engine; what it writes to disks is gone at its end. Needs root.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly top
readonly cache=${SANDCGI_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/sandcgi-tests}/vm
readonly accel=${SANDCGI_TEST_VM_ACCEL:-kvm} # tcg: where KVM cannot run Debian's kernel
readonly modules='virtio_pci virtio_blk ext4 quota_v2 9p 9pnet_virtio virtio_console virtio_rng overlay'
# shellcheck source=tests/lib/packages.sh
source "$top/tests/lib/packages.sh"
# shellcheck source=tests/lib/engine.sh
source "$top/tests/lib/engine.sh"

# The command is a service, so that systemd is what the engine makes its cgroups with.
unit() {
    cat <<END
[Unit]
Requires=dbus.socket
After=dbus.socket sysinit.target
[Service]
Type=oneshot
Environment=HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin
ExecStartPre=/usr/sbin/ip link set lo up
ExecStart=/bin/bash -c '/job/command; echo \$\$? >/job/status'
ExecStopPost=/bin/systemctl --force --force poweroff
StandardOutput=file:/dev/hvc0
StandardError=inherit
TimeoutStartSec=infinity
Delegate=yes
TasksMax=infinity
END
}

# Mounts all disks itself: systemd then waits for no device.
init() {
    cat <<END
#!/bin/busybox sh
busybox() { /bin/busybox "\$@"; }
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
for module in $*; do busybox insmod /lib/\$module; done
busybox mount -t ext4 -o prjquota /dev/vda /root
busybox mkdir -p /root/job "/root$top" "/root$ENGINE_DATA"
busybox mount -t ext4 /dev/vdb "/root$ENGINE_DATA"
busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 job /root/job
busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,ro,cache=loose top "/root$top"
for place in proc sys dev; do busybox mount --move /\$place /root/\$place; done
exec /bin/busybox switch_root /root /lib/systemd/systemd --unit=job.service
END
}

# make_initrd ROOT
make_initrd() {
    local root=$1 folder version path found=''
    folder=$(mktemp -d)
    version=$(basename "$root"/lib/modules/*)
    mkdir -p "$folder"/{bin,lib,proc,sys,dev,root}
    cp "$root/bin/busybox" "$folder/bin/"
    while read -r path; do
        cp "$root$path" "$folder/lib/"
        found+="${path##*/} "
    done < <(for module in $modules; do chroot "$root" modprobe -S "$version" --show-depends "$module"; done |
        sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++')
    init "$found" >"$folder/init"
    chmod 0755 "$folder/init"
    (cd "$folder" && find . | "$root/bin/busybox" cpio -o -H newc 2>/dev/null) >"$cache/initrd"
    rm -r "$folder"
    cp "$root/boot/vmlinuz-$version" "$cache/vmlinuz"
}

# disk FOLDER FILE SIZE
disk() {
    truncate -s "$3" "$2.new"
    mke2fs -q -F -t ext4 -O project,quota -E quotatype=usrquota:grpquota:prjquota -d "$1" "$2.new"
    mv "$2.new" "$2"
}

# Without the distribution's initrd (INITRD=No), which takes minutes to make.
make_image() {
    local root names
    root=$(mktemp -d)
    names=$(awk 'NF && $3 != "lint" { printf "%s,", $1 }' <<<"$packages_build$packages_server$packages_browser$packages_rest")
    INITRD=No mmdebstrap --quiet --variant=minbase --aptopt='APT::Install-Recommends "false"' \
        --include="${names}linux-image-amd64,systemd-sysv,dbus,udev,kmod,apparmor,busybox-static,procps,quota" \
        "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$root"
    chmod 0755 "$root" # mktemp's is closed to the accounts inside
    unit >"$root/etc/systemd/system/job.service"
    chroot "$root" systemctl --quiet mask systemd-udev-trigger docker.service docker.socket containerd nginx
    make_initrd "$root"
    disk "$root" "$cache/root.img" 8G
    rm -r "$root"
}

run() {
    local job status
    job=$(mktemp -d)
    printf '#!/bin/bash\nexport SANDCGI_TEST_ENGINE_NAME=%q\ncd %q\n%s\n' "${ENGINE_NAME#sandcgi-}" "$top" "$*" >"$job/command"
    chmod 0755 "$job/command"
    qemu-system-x86_64 -accel "$accel" -cpu max -smp "$(nproc)" -m 4096 -nodefaults -display none -no-reboot \
        -serial "file:$job/console" -kernel "$cache/vmlinuz" -initrd "$cache/initrd" -append 'console=ttyS0 panic=-1' \
        -drive "file=$cache/root.img,format=raw,if=virtio,snapshot=on,cache=unsafe" \
        -drive "file=$cache/engine.img,format=raw,if=virtio,snapshot=on,cache=unsafe" \
        -virtfs "local,path=$job,mount_tag=job,security_model=none" \
        -virtfs "local,path=$top,mount_tag=top,security_model=none,readonly=on,multidevs=remap" \
        -device virtio-rng-pci -device virtio-serial -chardev stdio,id=out,signal=off -device virtconsole,chardev=out </dev/null |
        sed -u 's/\r$//' # the console's line ends
    status=$(cat "$job/status" 2>/dev/null) || { tail -n 20 "$job/console" >&2 && status=125; }
    rm -r "$job"
    return "$status"
}

main() {
    (($#)) || { echo "usage: tests/vm/run.sh COMMAND…" >&2 && exit 2; }
    mkdir -p "$cache" "$ENGINE_DATA"
    [[ -e $cache/root.img ]] || make_image
    engine_pid >/dev/null || disk "$ENGINE_DATA" "$cache/engine.img" 16G # a running engine's data cannot be copied
    run "$@"
}

main "$@"
