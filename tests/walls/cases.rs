//! Escapes that a command may try: small commands, each of which has to fail in the sandbox.
//!
//! `C` is the checkout, `S` the state directory, `T` where trees of runs lie, `W` the program, `E` the engine's process, `N` what runs a system call,
//! and `TMPDIR` a directory of the case's own.

/// Changes of the checkout, its repository, the state directory and the home directory. Without a sandbox each succeeds.
pub(crate) const CHANGES: [&str; 59] = [
    // Files of the checkout.
    "echo x > $C/new",
    "echo x >> $C/tracked.txt",
    "truncate -s 0 $C/tracked.txt",
    "rm $C/tracked.txt",
    "mv $C/tracked.txt $TMPDIR/",
    "ln $C/tracked.txt $TMPDIR/hard && echo x >> $TMPDIR/hard",
    "ln -s $C/tracked.txt $TMPDIR/soft && echo x >> $TMPDIR/soft",
    "touch $TMPDIR/t && mv $TMPDIR/t $C/",
    "touch $TMPDIR/t && ln $TMPDIR/t $C/hard",
    "ln -s /etc/hostname $C/link",
    "mkdir $C/sub",
    "mkfifo $C/pipe",
    "dd if=/dev/zero of=$C/zero count=1",
    "sed -i s/as/was/ $C/tracked.txt",
    "tar -C $C -cf - tracked.txt | (mkdir $TMPDIR/x && tar -C $TMPDIR/x -xf - && cp $TMPDIR/x/tracked.txt $C/copy)",
    "cd $C && echo x >> tracked.txt",
    "cd / && echo x > .$C/new",
    "echo x > /proc/self/root$C/new",
    "echo x > $HOME/../home/../repository/new",
    "env -i /bin/sh -c \"echo x > $C/new\"",
    "setsid sh -c \"echo x > $C/late\" & wait $!",
    "(nohup sh -c \"echo x > $C/late\" > /dev/null 2>&1 & wait $!)",
    // Its repository, definitions and what the engine keeps there.
    "git -C $C config user.name Evil",
    "git -C $C commit -q --allow-empty -m evil",
    "echo x >> $C/tracked.txt; git -C $C stash",
    "git -C $C update-ref refs/heads/evil HEAD",
    "git -C $C tag evil",
    "git -C $C remote add evil /nowhere",
    "git -C $C checkout -q -b evil",
    "echo x > $C/.git/hooks/post-commit",
    "echo /tmp > $C/.git/objects/info/alternates",
    "echo x > $C/.git/index.lock",
    "mv $C/.git $C/git",
    "echo x >> $C/workers/w/worker.yaml",
    "echo x > $C/workerctl.yaml",
    "mkdir -p $C/.workerctl && echo x > $C/.workerctl/evil",
    "echo x >> $(ls -d $C/workspace/threads/*.jsonl | head -1)",
    // The state directory, and trees of other runs.
    "echo x > $S/evil",
    "ls $S",
    "cat $S/store/id",
    "cat $S/lock",
    "cp -r $S/store $TMPDIR/",
    "rm -r $S/scratch",
    "mv $TMPDIR $S/elsewhere",
    "for n in 1 2; do D=$T/$n/repository; [ $D != ${PWD%/} ] && cat $D/tracked.txt && exit; done; false",
    "for n in 1 2; do D=$T/$n/repository; [ $D != ${PWD%/} ] && echo x > $D/evil && exit; done; false",
    // Keys, and the home directory.
    "cat $HOME/.ssh/id",
    "ls $HOME/.ssh",
    "cd $HOME/.ssh && cat id",
    "ln $HOME/.ssh/id $TMPDIR/key && cat $TMPDIR/key",
    "ln -s $HOME/.ssh/id $TMPDIR/key && cat $TMPDIR/key",
    "cat /proc/self/root$HOME/.ssh/id",
    "mv $HOME/.ssh $TMPDIR/",
    "echo x >> $HOME/.cache/kept",
    "echo x > $HOME/.profile",
    // Terminals, and the engine's process.
    "ls /dev/pts",
    "kill -0 $E",
    "readlink /proc/$E/cwd && ls /proc/$E/fd && cat /proc/$E/environ /proc/$E/auxv",
    "ls /dev/shm",
];

/// What is refused at every level.
pub(crate) const REFUSED_ANYWAY: [&str; 4] = [
    "$W -C $C --state-dir $S status",
    "setsid $W -C $C --state-dir $S run w/nothing & wait $!",
    "env -i $W -C $C --state-dir $S cancel latest",
    "unshare -m mount -t tmpfs none $C/workers",
];

/// Reading what is hidden in other ways.
pub(crate) const READS: [&str; 34] = [
    "cat $S/mcp-token",
    "cat $S/run/*",
    "head -c 1 $S/store/db",
    "ls $S/store",
    "ls $S/secrets",
    "cat $C/../state/store/id",
    "cat $HOME/.ssh/../../state/store/id",
    "cat /proc/self/root$S/store/id",
    "cat /proc/self/cwd/../../../../state/store/id $HOME/../state/store/id",
    "cd $S/store && cat id",
    "ln -s $S $TMPDIR/s && cat $TMPDIR/s/store/id",
    "ln $S/store/id $TMPDIR/id",
    "tar -C $S -cf - store | tar -tf - | grep id",
    "cp $S/lock $TMPDIR/lock",
    "find $S/store -type f | grep .",
    "exec 3< $S/store/id",
    ". $S/store/id",
    "sh $S/store/id || test $? = 127",
    "git hash-object $S/store/id",
    "git -C $T/1/repository log",
    "unshare -Ur cat $S/store/id",
    "unshare -Urm cat $S/store/id",
    "unshare -Urm sh -c 'mount --bind $S $TMPDIR && cat $TMPDIR/store/id'",
    "unshare -Ur chroot / cat $S/store/id",
    "cd ${TMPDIR%/scratch/*}/scratch && ls",
    "cat ${TMPDIR%/scratch/*}/store/id",
    "tar -C $HOME -cf - .ssh | tar -tf - | grep id",
    "grep -r . $HOME/.ssh",
    "cp -r $HOME/.ssh $TMPDIR/",
    "perl -e 'open(F, \"<\", \"$ENV{HOME}/.ssh/id\") or exit 1; print <F>'",
    "exec 3< $HOME/.ssh/id",
    "unshare -Ur cat $HOME/.ssh/id",
    "unshare -Urm sh -c 'mount --bind $HOME/.ssh $TMPDIR && cat $TMPDIR/id'",
    "mv $HOME/.ssh/id $TMPDIR/",
];

/// Writing to the machine and to places that are run later.
pub(crate) const WRITES: [&str; 52] = [
    "echo x > /etc/ld.so.preload",
    "echo x > /etc/cron.d/evil",
    "echo x > /etc/profile.d/evil.sh",
    "echo x > /etc/sudoers.d/evil",
    "echo x > /etc/systemd/system/evil.service",
    "echo x > /usr/local/bin/evil",
    "echo x > /usr/lib/evil",
    "echo x > /bin/evil",
    "echo x > /boot/evil",
    "echo x > /root/evil",
    "echo x > /run/evil",
    "echo x > /var/spool/cron/evil",
    "echo x > /var/evil",
    "echo x > /tmp/workspace-evil",
    "echo x > /var/tmp/workspace-evil",
    "echo x > /dev/shm/evil",
    "echo '* * * * * true' | crontab -",
    "echo x > $HOME/.bashrc",
    "mkdir -p $HOME/.config/autostart && echo x > $HOME/.config/autostart/evil.desktop",
    "mkdir -p $HOME/.config/systemd/user && echo x > $HOME/.config/systemd/user/evil.service",
    "mkdir -p $HOME/.local/bin && echo x > $HOME/.local/bin/git",
    "mkdir -p $HOME/.config/git && echo x > $HOME/.config/git/config",
    "echo x > $HOME/.ssh/authorized_keys",
    "echo x >> $HOME/.ssh/id",
    "echo x > $C/.git/hooks/pre-commit",
    "echo x > $C/.git/config",
    "echo x > $C/.git/HEAD",
    "echo x > $C/.git/packed-refs",
    "echo x > $C/.git/refs/heads/evil",
    "echo x > $C/.git/info/attributes",
    "mkdir $C/.git/worktrees",
    "echo x > $C/.gitattributes",
    "echo x > $C/.gitmodules",
    "mkdir -p $C/.agents/skills/evil",
    "mkdir -p $C/.claude && echo x > $C/.claude/settings.json",
    "mkdir -p $C/.wave/skills/evil",
    "mkdir -p $C/workspace/skills && echo x > $C/workspace/skills/evil.md",
    "mkdir -p $C/workers/evil && echo x > $C/workers/evil/worker.yaml",
    "echo x > $C/workers/registry.yaml",
    "echo x > $C/Makefile",
    "echo x > $C/.envrc",
    "echo x > $HOME/../evil",
    "echo '|/bin/true' > /proc/sys/kernel/core_pattern",
    "cat /proc/sys/kernel/hostname > /proc/sys/kernel/hostname",
    "echo 1 > /proc/sys/vm/drop_caches",
    "echo h > /proc/sysrq-trigger",
    "echo 0 > /proc/$E/oom_score_adj",
    "echo evil > /proc/$E/comm",
    "echo 1 > /proc/$E/clear_refs",
    "echo $$ > /sys/fs/cgroup/cgroup.procs",
    "mkdir /sys/fs/cgroup/evil",
    "echo on > /sys/power/state",
];

/// Other processes, devices and privileges.
pub(crate) const PROCESSES: [&str; 41] = [
    "cat /proc/$E/environ",
    "cat /proc/$E/maps",
    "cat /proc/$E/auxv",
    "cat /proc/$E/io",
    "cat /proc/$E/stack",
    "cat /proc/$E/syscall",
    "head -c 1 /proc/$E/mem",
    "readlink /proc/$E/fd/0",
    "ls /proc/$E/fdinfo/",
    "ls /proc/$E/map_files/",
    "ls /proc/$E/cwd/",
    "readlink /proc/$E/exe",
    "readlink /proc/$E/ns/mnt",
    "readlink /proc/$E/ns/user",
    "cat /proc/$E/root/etc/hostname",
    "cat /proc/$E/task/$E/environ",
    "cat /proc/1/environ",
    "readlink /proc/1/ns/mnt",
    "cat /proc/1/root/etc/hostname",
    "nsenter -t $E -m true",
    "nsenter -t $E -U true",
    "nsenter -t $E -n true",
    "nsenter -t 1 -a true",
    "kill -0 1",
    "kill -CONT $E",
    "prlimit --pid $E --core=0",
    "cat /dev/mem",
    "cat /dev/kmsg",
    "cat /dev/tty",
    "ls /dev/input",
    "ls /dev/disk",
    "head -c 1 /dev/vda || head -c 1 /dev/sda",
    "exec 3<> /dev/ptmx",
    "exec 3<> /dev/fuse",
    "exec 3<> /dev/net/tun",
    "exec 3<> /dev/kvm",
    "exec 3<> /dev/vsock",
    "cat /proc/kcore | head -c 1 | grep -c .",
    "grep '^NoNewPrivs:.0' /proc/self/status",
    "grep '^Seccomp:.0' /proc/self/status",
    "test \"$(ulimit -c)\" != 0",
];

/// What level 1 allows if the state directory lies in the workspace, which it may list with all that lies below.
pub(crate) const NAMES: [&str; 5] = [
    "ls $S",
    "ls $S/store",
    "ls $S/secrets",
    "find $S/store -type f | grep .",
    "cd ${TMPDIR%/scratch/*}/scratch && ls",
];

/// What succeeds in a container and changes nothing outside: directories of its own stand in these places, and a
/// process of its own has the number 1.
pub(crate) const HARMLESS_IN_A_CONTAINER: [&str; 14] = [
    "echo x > $HOME/.profile",
    "ls $S",
    "ls /dev/shm",
    "echo x > /tmp/workspace-evil",
    "echo x > /var/tmp/workspace-evil",
    "echo x > /dev/shm/evil",
    "echo x > $HOME/.bashrc",
    "mkdir -p $HOME/.config/autostart && echo x > $HOME/.config/autostart/evil.desktop",
    "mkdir -p $HOME/.config/systemd/user && echo x > $HOME/.config/systemd/user/evil.service",
    "mkdir -p $HOME/.local/bin && echo x > $HOME/.local/bin/git",
    "mkdir -p $HOME/.config/git && echo x > $HOME/.config/git/config",
    "echo x > $HOME/../evil",
    "echo x > /root/evil",
    "cd ${TMPDIR%/scratch/*}/scratch && ls",
];

/// System calls; in each text `$b` is a buffer of 256 zeros, `$E` the engine's process and `$p` a descriptor of it.
const CALLS: [(i64, &str); 88] = [
    // Access mode 3, for which Landlock has no right.
    (libc::SYS_openat, "-100, \"/etc/passwd\", 3"),
    // A lease on standard input, which others who open the file would wait for; flags of inodes.
    (libc::SYS_fcntl, "0, 1024, 1"),
    (469, "-100, \".\", $b, 32, 0"),
    // Unix sockets, and pairs that send to any address.
    (libc::SYS_socket, "1, 1, 0"),
    (libc::SYS_socket, "1, 2, 0"),
    (libc::SYS_socket, "1, 3, 0"),
    (libc::SYS_socket, "1, 5, 0"),
    (libc::SYS_socket, "1, 02000001, 0"),
    (libc::SYS_socketpair, "1, 2, 0, $b"),
    (libc::SYS_socketpair, "1, 02000002, 0, $b"),
    (libc::SYS_socketpair, "1, 04002, 0, $b"),
    (libc::SYS_socketpair, "1, 02004002, 0, $b"),
    (libc::SYS_socketpair, "1, 3, 0, $b"),
    (libc::SYS_socketpair, "2, 1, 0, $b"),
    (libc::SYS_socketpair, "30, 5, 0, $b"),
    // Packets of other processes.
    (libc::SYS_socket, "17, 3, 0x0300"),
    (libc::SYS_socket, "17, 2, 0x0300"),
    (libc::SYS_socket, "2, 3, 1"),
    (libc::SYS_socket, "2, 3, 255"),
    (libc::SYS_socket, "10, 3, 58"),
    // What a filter does not see, and keys of the session.
    (libc::SYS_io_uring_setup, "1, $b"),
    (libc::SYS_io_uring_enter, "0, 0, 0, 0, 0, 0"),
    (libc::SYS_io_uring_register, "0, 0, 0, 0"),
    (libc::SYS_keyctl, "0, -3, 0"),
    (libc::SYS_add_key, "\"user\", \"x\", \"y\", 1, -3"),
    (libc::SYS_request_key, "\"user\", \"x\", 0, -3"),
    (libc::SYS_bpf, "0, $b, 64"),
    (libc::SYS_perf_event_open, "$b, 0, -1, -1, 0"),
    (libc::SYS_perf_event_open, "$b, $E, -1, -1, 0"),
    (libc::SYS_userfaultfd, "1"),
    (libc::SYS_fanotify_init, "0x200, 0"),
    (libc::SYS_open_by_handle_at, "-100, $b, 0"),
    // Namespaces and mounts.
    (libc::SYS_setns, "0, 0"),
    (libc::SYS_setns, "$p, 0x20000"),
    (libc::SYS_mount, "\"none\", \".\", \"tmpfs\", 0, 0"),
    (libc::SYS_mount, "\"/etc\", \".\", 0, 4096, 0"),
    (libc::SYS_umount2, "\"/nowhere\", 0"),
    (libc::SYS_pivot_root, "\".\", \".\""),
    (libc::SYS_move_mount, "-1, \"\", -1, \"\", 0"),
    (libc::SYS_mount_setattr, "-1, \"\", 0, $b, 32"),
    (libc::SYS_open_tree, "-100, \".\", 1"),
    (467, "-100, \".\", 1, $b, 32"),
    (libc::SYS_fsopen, "\"tmpfs\", 0"),
    (libc::SYS_fspick, "-100, \".\", 0"),
    (libc::SYS_fsmount, "-1, 0, 0"),
    (libc::SYS_chroot, "\".\""),
    (libc::SYS_mknodat, "-100, \"null\", 020666, 0x103"),
    (libc::SYS_mknodat, "-100, \"disk\", 060666, 0xfe00"),
    // The machine.
    (libc::SYS_swapon, "\"/nowhere\", 0"),
    (libc::SYS_swapoff, "\"/nowhere\""),
    (libc::SYS_acct, "\"/nowhere\""),
    (libc::SYS_quotactl, "0x80000100, 0, 0, 0"),
    (libc::SYS_syslog, "3, $b, 64"),
    (libc::SYS_init_module, "$b, 64, \"\""),
    (libc::SYS_finit_module, "-1, \"\", 0"),
    (libc::SYS_delete_module, "\"nowhere\", 0"),
    (libc::SYS_kexec_load, "0, 0, 0, 0"),
    (libc::SYS_reboot, "0xfee1dead, 672274793, 0"),
    (libc::SYS_sethostname, "$b, 65"),
    (libc::SYS_setdomainname, "$b, 65"),
    (libc::SYS_settimeofday, "0, 0"),
    (libc::SYS_adjtimex, "pack(\"Ix204\", 0x2000)"),
    // Other processes, and terminals.
    (libc::SYS_prlimit64, "$E, 4, $b, 0"),
    // The mark by which processes of runs are recognised.
    (libc::SYS_prlimit64, "0, 10, $b, 0"),
    (libc::SYS_prlimit64, "0, 0x100000000 | 10, $b, 0"),
    (libc::SYS_setrlimit, "10, $b"),
    (libc::SYS_setrlimit, "0x100000000 | 10, $b"),
    (libc::SYS_ptrace, "0x4206, $E, 0, 0"),
    (
        libc::SYS_process_vm_readv,
        "$E, pack(\"PQ\", $b, 8), 1, pack(\"QQ\", 4096, 8), 1, 0",
    ),
    (
        libc::SYS_process_vm_writev,
        "$E, pack(\"PQ\", $b, 8), 1, pack(\"QQ\", 4096, 8), 1, 0",
    ),
    (libc::SYS_kcmp, "$E, $$, 0, 0, 0"),
    (libc::SYS_get_robust_list, "$E, $b, $b"),
    (libc::SYS_move_pages, "$E, 1, $b, 0, $b, 0"),
    (libc::SYS_pidfd_getfd, "$p, 1, 0"),
    (libc::SYS_ioctl, "0, 0x5412, \"x\""),
    (libc::SYS_ioctl, "0, 0x40086602, $b"),
    (libc::SYS_ioctl, "0, 0x40087602, $b"),
    (libc::SYS_ioctl, "0, 0x401c5820, $b"),
    // `EXT4_IOC_SETVERSION`, `FS_IOC_SET_ENCRYPTION_POLICY`, `FS_IOC_ADD_ENCRYPTION_KEY`, `FS_IOC_ENABLE_VERITY`,
    // `BTRFS_IOC_SUBVOL_CREATE`, `BTRFS_IOC_SNAP_CREATE_V2`.
    (libc::SYS_ioctl, "0, 0x40086604, $b"),
    (libc::SYS_ioctl, "0, 0x800c6613, $b"),
    (libc::SYS_ioctl, "0, 0xc0506617, $b"),
    (libc::SYS_ioctl, "0, 0x40806685, $b"),
    (libc::SYS_ioctl, "0, 0x5000940e, $b"),
    (libc::SYS_ioctl, "0, 0x50009417, $b"),
    (libc::SYS_ioctl, "0, 0x541c, \"\\x03\""),
    (libc::SYS_setpriority, "0, 0, -20"),
    (libc::SYS_sched_setscheduler, "0, 1, pack(\"i\", 10)"),
    (libc::SYS_ioprio_set, "1, 0, 0x2000"),
];

/// Signals to the engine; the kernel refuses them from Landlock ABI 6 on.
const SIGNALS: [(i64, &str); 4] = [
    (libc::SYS_tkill, "$E, 0"),
    (libc::SYS_tgkill, "$E, $E, 0"),
    (libc::SYS_rt_sigqueueinfo, "$E, 0, $b"),
    (libc::SYS_pidfd_send_signal, "$p, 0, 0, 0"),
];

/// System V IPC and POSIX message queues, which a container has of its own.
const IPC: [(i64, &str); 15] = [
    (libc::SYS_shmget, "0, 4096, 01600"),
    (libc::SYS_shmget, "0x5743, 4096, 01600"),
    (libc::SYS_shmat, "0, 0, 0"),
    (libc::SYS_shmctl, "0, 13, $b"),
    (libc::SYS_msgget, "0, 01600"),
    (libc::SYS_msgsnd, "0, $b, 1, 04000"),
    (libc::SYS_msgrcv, "0, $b, 1, 0, 04000"),
    (libc::SYS_msgctl, "0, 2, $b"),
    (libc::SYS_semget, "0, 1, 01600"),
    (libc::SYS_semop, "0, $b, 1"),
    (libc::SYS_semtimedop, "0, $b, 1, 0"),
    (libc::SYS_semctl, "0, 0, 2, $b"),
    (libc::SYS_mq_open, "\"workerctl\", 0102, 0600, 0"),
    (libc::SYS_mq_unlink, "\"workerctl\""),
    (libc::SYS_mq_open, "\"workerctl\", 0, 0, 0"),
];

/// Sockets of families that `network: none` refuses.
const NETWORKS: [(i64, &str); 19] = [
    (libc::SYS_socket, "2, 1, 0"),
    (libc::SYS_socket, "2, 2, 0"),
    (libc::SYS_socket, "2, 02000001, 6"),
    (libc::SYS_socket, "2, 1, 262"),
    (libc::SYS_socket, "10, 1, 0"),
    (libc::SYS_socket, "10, 2, 0"),
    (libc::SYS_socket, "16, 3, 2"),
    (libc::SYS_socket, "16, 3, 4"),
    (libc::SYS_socket, "16, 3, 9"),
    (libc::SYS_socket, "16, 3, 15"),
    (libc::SYS_socket, "16, 3, 16"),
    (libc::SYS_socket, "21, 5, 0"),
    (libc::SYS_socket, "29, 3, 1"),
    (libc::SYS_socket, "30, 4, 0"),
    (libc::SYS_socket, "31, 5, 3"),
    (libc::SYS_socket, "38, 5, 0"),
    (libc::SYS_socket, "40, 1, 0"),
    (libc::SYS_socket, "42, 2, 0"),
    (libc::SYS_socket, "43, 1, 0"),
];

/// The same calls by the numbers of programs with pointers of 32 bits.
const SHORT_POINTERS: [(i64, &str); 5] = [
    (libc::SYS_socket, "1, 1, 0"),
    (libc::SYS_socketpair, "1, 2, 0, $b"),
    (libc::SYS_io_uring_setup, "1, $b"),
    (libc::SYS_keyctl, "0, -3, 0"),
    (libc::SYS_shmget, "0, 4096, 01600"),
];

/// Calls that a user namespace of the command's own must not allow either.
const IN_A_NAMESPACE: [(i64, &str); 9] = [
    (libc::SYS_socket, "17, 3, 0x0300"),
    (libc::SYS_socket, "2, 3, 255"),
    (libc::SYS_setns, "$p, 0x10000000"),
    (libc::SYS_mount, "\"none\", \".\", \"tmpfs\", 0, 0"),
    (libc::SYS_open_by_handle_at, "-100, $b, 0"),
    (libc::SYS_bpf, "5, $b, 64"),
    (libc::SYS_sethostname, "$b, 65"),
    (libc::SYS_ptrace, "0x4206, $E, 0, 0"),
    (libc::SYS_fsopen, "\"tmpfs\", 0"),
];

/// What makes a system call, as perl: it ends with 0 if that succeeds, with 1 if it is refused, and with 9 if it fails
/// for another reason, which proves nothing.
pub(crate) const CALLER: &str = r#"
use strict;
our ($b, $E, $p) = ("\0" x 256, $ENV{E}, -1);
if ($ARGV[0] =~ /\$p/) { $p = syscall(434, $E + 0, 0); }
$E += 0;
# Texts must be in an array: a call may write to them.
my ($call, @rest) = eval "($ARGV[0])";
exit 8 if $@ || !defined $call;
my $answer = syscall($call, @rest);
exit 0 if $answer != -1;
my $errno = $! + 0;
print "errno $errno: $!\n";
my $of_process = $ARGV[0] =~ /\$[Ep]/;
# A process that does not exist in the container cannot be reached.
exit 1 if $of_process && ($errno == 3 || $errno == 9);
exit(grep({ $errno == $_ } (1, 13, 38)) ? 1 : 9);
"#;

/// The cases of these calls.
fn calls(list: &[(i64, &str)], before: &str, flag: i64) -> Vec<String> {
    let text = |(number, arguments): &(i64, &str)| {
        format!("{before}perl $N '{}, {arguments}'", number | flag)
    };
    list.iter().map(text).collect()
}

/// All cases that are system calls, each with whether a container may allow it.
pub(crate) fn of_calls() -> Vec<(String, bool)> {
    let mut found = calls(&CALLS, "", 0);
    if workerctl::process::landlock_abi() >= 6 {
        found.extend(calls(&SIGNALS, "", 0));
    }
    found.extend(calls(&IN_A_NAMESPACE, "unshare -Ur ", 0));
    if cfg!(target_arch = "x86_64") {
        found.extend(calls(&SHORT_POINTERS[..4], "", 0x4000_0000));
    }
    let found = found.into_iter().map(|text| (text, false));
    let own = calls(&IPC, "", 0).into_iter().map(|text| (text, true));
    let short = calls(&SHORT_POINTERS[4..], "", 0x4000_0000).into_iter();
    let short = short.filter(|_| cfg!(target_arch = "x86_64"));
    found
        .chain(own)
        .chain(short.map(|text| (text, true)))
        .collect()
}

/// Cases that `network: none` refuses.
pub(crate) fn of_networks() -> Vec<String> {
    calls(&NETWORKS, "", 0)
}
