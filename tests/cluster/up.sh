#!/bin/bash
# Start a Slurm cluster on this host; run it until standard input ends. Usage: up.sh DIRECTORY
# DIRECTORY contains slurm.conf and hosts. Root runs the script in new mount, process, network, host
# name and IPC namespaces. Each node has its own network namespace, host name and /tmp. The script
# prints "up" when all nodes have started.
set -euo pipefail
directory=$1
for path in lib/slurm log/slurm; do
    mkdir -p "$directory/$path" "/var/$path"
    mount --bind "$directory/$path" "/var/$path"
done
chown -R slurm:slurm "$directory"
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /etc/slurm
mkdir "$directory/small"
mount -t tmpfs -o size=1m,mode=755 tmpfs "$directory/small"
cp "$directory/slurm.conf" /etc/slurm
mount --bind "$directory/hosts" /etc/hosts
mkdir -p /run/slurm /run/munge /run/netns
chown slurm:slurm /run/slurm
chown munge:munge /run/munge

hostname head
ip link set lo up
ip link add br0 type bridge
ip addr add 10.99.0.1/24 dev br0
ip link set br0 up
setpriv --reuid=munge --regid=munge --clear-groups munged --socket=/run/munge/munge.socket.2
setpriv --reuid=slurm --regid=slurm --clear-groups slurmctld -c
for n in 1 2 3 4; do
    ip netns add "node$n"
    ip link add "v$n" type veth peer name eth0 netns "node$n"
    ip link set "v$n" master br0 up
    ip -n "node$n" addr add "10.99.0.1$n/24" dev eth0
    ip -n "node$n" link set eth0 up
    ip -n "node$n" link set lo up
    nsenter --net="/run/netns/node$n" unshare --mount --uts sh -c "hostname node$n
        mkdir -p /var/lib/slurm/node$n
        mount -t tmpfs -o mode=1777 tmpfs /tmp
        exec slurmd"
done
echo up
# Wait for the end of standard input. Meanwhile the shell, which is process 1 of the namespace, reaps
# ended processes.
read -r _ || :
