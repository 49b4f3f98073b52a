#!/bin/sh
# Run as the first process of fresh namespaces: builds a root in memory around a copy-on-write view of
# the machine's /usr and becomes the systemd of it. Of the machine itself nothing can be written.
#
#   boot.sh DIRECTORY    an empty directory for the root
#
# Standard output: the process id as the machine sees it, then `booting`. Exit code 75: the machine lacks
# something, which is said on standard error.
set -eu
umask 022

lacks() {
    echo "$*" >&2
    exit 75
}

# This is still the machine's /proc.
read -r pid _ < /proc/self/stat
echo "$pid"

root=$1
mount -t tmpfs -o mode=755 tmpfs "$root" || lacks "no tmpfs can be mounted"
cd "$root"
mkdir -p dev etc/systemd/system old overlay/upper overlay/work proc root run srv sys usr var/lib var/log
mkdir -m 1777 tmp var/tmp
ln -s ../run var/run

# Programs: the machine's, with writes kept in memory.
mount -t overlay -o "lowerdir=/usr,upperdir=$root/overlay/upper,workdir=$root/overlay/work" overlay usr ||
    lacks "no overlay of /usr can be mounted"
for name in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$name" ]; then
        cp -P "/$name" "$name"
    elif [ -d "/$name" ]; then
        lacks "/$name is not a link into /usr"
    fi
done
[ -x "$root/usr/lib/systemd/systemd" ] || lacks "there is no /usr/lib/systemd/systemd"

# Units: only these, whatever is installed on the machine; nothing is enabled, nothing is generated.
units=usr/lib/systemd/system
mount -t tmpfs -o mode=755 tmpfs "$units"
for unit in basic.target local-fs.target multi-user.target network.target paths.target shutdown.target \
    slices.target sockets.target swap.target sysinit.target time-sync.target timers.target umount.target \
    systemd-journald.service systemd-journald.socket; do
    cp "/$units/$unit" "$units/" || lacks "systemd has no $unit here"
done
mkdir "$units/sockets.target.wants" "$units/sysinit.target.wants"
ln -s ../systemd-journald.socket "$units/sockets.target.wants/"
ln -s ../systemd-journald.service "$units/sysinit.target.wants/"
ln -s multi-user.target "$units/default.target"
units=usr/lib/systemd/user
mount -t tmpfs -o mode=755 tmpfs "$units"
for unit in app.slice basic.target default.target exit.target paths.target session.slice shutdown.target \
    sockets.target systemd-exit.service timers.target; do
    cp "/$units/$unit" "$units/" || lacks "systemd has no $unit of users here"
done
for generators in usr/lib/systemd/system-generators usr/lib/systemd/user-generators \
    usr/lib/systemd/user-environment-generators usr/local/lib/systemd; do
    if [ -d "$generators" ]; then
        mount -t tmpfs -o mode=755 tmpfs "$generators"
    fi
done

# Configuration: what programs need to start, and a machine id, without which this would be a first boot.
echo 0123456789abcdef0123456789abcdef > etc/machine-id
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' > etc/passwd
printf 'root:x:0:\nnobody:x:65534:\n' > etc/group
printf 'passwd: files\ngroup: files\nshadow: files\n' > etc/nsswitch.conf
: > etc/fstab
for name in ld.so.cache ld.so.conf ld.so.conf.d alternatives login.defs; do
    if [ -e "/etc/$name" ]; then
        cp -a "/etc/$name" etc/
    fi
done

# The kernel: sysctls are not all in namespaces, and systemd would set some.
mount -t proc proc proc || lacks "no /proc can be mounted"
for name in sys sysrq-trigger irq bus fs; do
    if [ -e "proc/$name" ]; then
        mount --bind "proc/$name" "proc/$name"
        mount -o remount,bind,ro "proc/$name"
    fi
done
mount -t sysfs -o ro sysfs sys || lacks "no /sys can be mounted"
mount -t cgroup2 cgroup2 sys/fs/cgroup || lacks "no cgroup2 can be mounted"
mount -t tmpfs -o mode=755 tmpfs run

# Devices of its own: a change of mode or owner on the machine's would stay.
mount -t tmpfs -o mode=755 tmpfs dev
while read -r name major minor; do
    mknod -m 666 "dev/$name" c "$major" "$minor" || lacks "no device can be made"
done << 'DEVICES'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
DEVICES
mkdir -m 755 dev/pts
mkdir -m 1777 dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts || lacks "no devpts can be mounted"
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd

hostname booted
pivot_root . old || lacks "the root cannot be changed"
umount -l /old
# As the kernel's first systemd would do: credentials are mounted in a namespace of their own, and come out of it this way.
mount --make-rshared /
echo booting
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin LANG=C.UTF-8 \
    /usr/lib/systemd/systemd --system --show-status=0 < /dev/null > /dev/null 2>&1
