#!/usr/bin/env bash
# The resolver for Slurm under the real Slurm, on one Debian machine, as root: tests/cluster/slurm.sh BUILD
# Installs slurm-wlm and munge, starts their daemons for the time of the test, and stops them again. The
# last line is "N passed, N failed, N skipped".
set -u
build=$(realpath "${1:-build}")
member=$build/tests/cluster/cluster_member
[ -x "$member" ] || member=$build/cluster_member
open=${member%_member}_open # of jobs whose ranks come and go
passed=0 failed=0

skip() {
    echo "slurm: skipped: $*"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

[ "$(id -u)" -eq 0 ] || skip "needs root to install and start Slurm"
command -v apt-get > /dev/null || skip "needs Debian or Ubuntu"
if ! command -v slurmd > /dev/null || ! command -v munged > /dev/null; then
    log=$(DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        slurm-wlm munge slurm-wlm-basic-plugins 2>&1) || { echo "$log" | tail -5; skip "Slurm cannot be installed"; }
fi
pgrep -x slurmctld > /dev/null && skip "a Slurm runs here already"

folder=$(mktemp -d)
chmod 755 "$folder"
host=$(hostname -s)
munge=
stop() {
    for file in "$folder"/n1/slurmd.pid "$folder"/n2/slurmd.pid "$folder"/ctld/slurmctld.pid; do
        [ ! -f "$file" ] || kill "$(cat "$file")"
    done
    [ ! -f "$folder/hosts" ] || cp "$folder/hosts" /etc/hosts
    [ -z "$munge" ] || kill "$(cat /run/munge/munged.pid)"
    sleep 1
    rm -rf "$folder" /etc/slurm/slurm.conf
    [ ! -f /etc/slurm/slurm.conf.before ] || mv /etc/slurm/slurm.conf.before /etc/slurm/slurm.conf
} 2> /dev/null
trap stop EXIT

if ! pgrep -x munged > /dev/null; then
    munge=ours
    install -d -o munge -g munge -m 0755 /run/munge
    install -d -o munge -g munge -m 0700 /var/log/munge /var/lib/munge
    setpriv --reuid=munge --regid=munge --clear-groups /usr/sbin/munged || skip "munged does not start"
fi
mkdir -p "$folder/n1" "$folder/n2" /etc/slurm
install -d -o slurm -g slurm "$folder/ctld"
[ ! -f /etc/slurm/slurm.conf ] || mv /etc/slurm/slurm.conf /etc/slurm/slurm.conf.before
# Two nodes on one machine.
cat > /etc/slurm/slurm.conf << END
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmUser=slurm
AuthType=auth/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=$folder/ctld
SlurmdSpoolDir=$folder/%n
SlurmctldPidFile=$folder/ctld/slurmctld.pid
SlurmdPidFile=$folder/%n/slurmd.pid
SlurmctldLogFile=$folder/ctld/slurmctld.log
SlurmdLogFile=$folder/%n/slurmd.log
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=[17001-17002] CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
END
slurmctld && sleep 1 && slurmd -N n1 && slurmd -N n2 || skip "Slurm's daemons do not start"
for ((i = 0; i < 40; i++)); do
    [ "$(sinfo -h -o %T 2> /dev/null | sort -u)" = idle ] && break
    sleep 0.5
done

# Names of emulated nodes resolve on real clusters; here they are written down for the time of the test.
cp /etc/hosts "$folder/hosts"
grep -qw n1 /etc/hosts || echo "127.0.0.1 n1 n2" >> /etc/hosts

cd "$folder" || exit 1
(umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > secret)
export TUTTI_SECRET_FILE=$folder/secret

# check NAME TEXT COUNT COMMAND...
check() {
    local name=$1 text=$2 count=$3
    shift 3
    timeout 60 "$@" > out 2>&1
    if [ "$(grep -c -- "$text" out)" -eq "$count" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "slurm $name: '$text' does not stand there $count times:"
        head -30 out
    fi
}
check "ranks of one node" "by slurm, epoch 0, authenticated" 2 srun -N1 -n2 "$member" exchange 5 channel
check "ranks leave" "left" 4 srun -N2 -n4 "$member" exchange 5 channel
check "two nodes" "4 ranks on 1 host" 4 srun -N2 -n4 "$member" exchange 5
check "cyclic distribution" "left" 4 srun -N2 -n4 -m cyclic "$member" exchange 5
check "a killed task" "rank 1 .* exited\|rank 1 .* is gone" 3 \
    srun -O -N2 -n4 --kill-on-bad-exit=0 "$member" crash 7 spin
check "two steps at once" "left" 4 bash -c "srun -O -n2 $member exchange 50 & srun -O -n2 $member exchange 50; wait"
check "a job with a server" "process .* is ps 0" 1 env TUTTI_PS=1 srun -O -N2 -n3 "$open" work 1
check "its ranks leave" "left: success" 3 env TUTTI_PS=1 srun -O -N2 -n3 "$open" work 1
check "a worker that is lost" "left: success" 1 env TUTTI_PS=1 OPEN="$open" srun -O -n3 --kill-on-bad-exit=0 bash -c \
    'case $SLURM_PROCID in 0) exec $OPEN work 2 ;; 1) exec $OPEN crash 7 ;; *) exec timeout 6 $OPEN ;; esac'

# A training of two and of four tasks ends in the bits of one process.
train() {
    local save=$1
    shift
    timeout 120 "$@" "$build/tutti" train mnist --deterministic --epochs 1 --steps-per-epoch 20 --threads 1 \
        --quiet --logs "$folder/logs" --set "checkpoints=$folder/ckpt" --save "$folder/$save" > out 2>&1 ||
        { echo "slurm training of $save:"; tail -20 out; }
}
same() {
    if cmp -s "$folder/$1.safetensors" "$folder/one.safetensors"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "slurm: $1 tasks do not end in the weights of one process"
    fi
}
train one env
train two srun -N2 -n2
train four srun -O -N2 -n4
same two
same four
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
