"""Something like a container for the entry program, made with unshare: its own processes, network, System V objects and
file systems, of which programs can write to /data, /tmp, /dev/shm and /dev/mqueue only. No engine is needed."""

import itertools
import os
import secrets
import shutil
import subprocess

# Of no one else: the limit of processes is the user's, and so is a keyring.
USERS = itertools.count(4_000_000 + secrets.randbelow(1_000_000) * 1000)
PROCESSES = 300

# $1: an empty directory; $2: the directory that is /data in it; $3: one that is /image, with the entry program. Then the
# command, in it.
SETUP = r'''
set -e
root=$1 data=$2 image=$3
shift 3
mount --make-rprivate /
mount -t tmpfs -o mode=755 root "$root"
cd "$root"
mkdir proc dev tmp data image
for name in usr bin sbin lib lib64 lib32 etc opt; do
    if [ -L "/$name" ]; then cp -P "/$name" .; elif [ -d "/$name" ]; then mkdir "$name"; mount --rbind "/$name" "$name"; mount -o remount,bind,ro "$name"; fi
done
mount -t proc proc proc
for name in null zero urandom random; do : >"dev/$name"; mount --bind "/dev/$name" "dev/$name"; done
mkdir dev/shm dev/mqueue
mount -t tmpfs -o mode=1777,size=16m shm dev/shm
mount -t mqueue mqueue dev/mqueue
chmod 1777 dev/mqueue
mount -t tmpfs -o mode=1777,size=32m tmp tmp
mount --bind "$data" data
mount --bind "$image" image
mount -o remount,bind,ro image
ip link set lo up 2>/dev/null || true
mount -o remount,bind,ro "$root"
exec chroot . "$@"
'''


def command(folder, *arguments, env=()):
    """Runs folder's image/entry in a container; where we are root, with a user of its own and bounded processes."""
    root, data, image = [os.path.join(folder, name) for name in ("root", "data", "image")]
    os.makedirs(root, exist_ok=True)
    os.makedirs(data, exist_ok=True)
    os.chmod(image, 0o755)
    os.chmod(data, 0o777)
    drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    user = ["-Ur"]
    if os.getuid() == 0:
        number = next(USERS)
        drop = ["prlimit", f"--nproc={PROCESSES}", *drop, f"--reuid={number}", f"--regid={number}", "--clear-groups"]
        user = []
    return ["unshare", *user, "-pfimn", "--kill-child", "sh", "-c", SETUP, "sh", root, data, image,
            "env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", *env, *drop, "--", "/image/entry", "-C", "/data", *arguments]


def possible(folder):
    """Whether the system allows it; folder is an empty directory for the attempt."""
    if not shutil.which("unshare"):
        return False
    os.mkdir(os.path.join(folder, "image"))
    shutil.copy(shutil.which("true"), os.path.join(folder, "image/entry"))
    return subprocess.run(command(folder, "/tmp/script", "true"), stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
