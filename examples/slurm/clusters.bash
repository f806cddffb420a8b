# Clusters under Slurm on this machine, for scripts that source this: `cluster NAME PORT NODES CPUS` starts one below "$at", whose CPUs are
# those that are told. As root, on Debian (slurm-wlm, munge); everything is on loopback, and what is started is ended, by its id.

skip() {
    printf 'SKIPPED: %s\n' "$1"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "clusters under Slurm: only root starts slurmd"
if ! command -v slurmctld > /dev/null || ! command -v munged > /dev/null; then
    command -v apt-get > /dev/null || skip "clusters under Slurm: no apt-get to install it with"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq slurm-wlm munge > /dev/null 2>&1 || skip "clusters under Slurm: slurm-wlm cannot be installed"
fi

at=$(mktemp -d)
munge_pid=
cleanup() {
    for pid in "$at"/*/*.pid; do
        [ ! -e "$pid" ] || kill "$(cat "$pid")" 2> /dev/null || true
    done
    [ -z "$munge_pid" ] || kill "$munge_pid" 2> /dev/null || true
    # They write their state when they end.
    sleep 1
    rm -rf "$at"
}
trap cleanup EXIT

mkdir -p /run/munge
chown munge: /run/munge
if ! munge -n > /dev/null 2>&1; then
    [ -e /etc/munge/munge.key ] || mungekey --create
    setpriv --reuid=munge --regid=munge --init-groups munged --foreground 2> "$at/munged.log" &
    munge_pid=$!
    for _ in $(seq 50); do munge -n > /dev/null 2>&1 && break || sleep 0.1; done
fi

host=$(hostname -s)
cluster() { # NAME PORT NODES CPUS [PARAMETERS]
    local name=$1 port=$2 nodes=$3 cpus=$4 parameters=${5:-bf_interval=1} home=$at/$1
    mkdir -p "$home/state"
    cat > "$home/slurm.conf" << CONF
ClusterName=$name
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
CredType=cred/munge
SlurmUser=root
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/spool.%n
SlurmctldPidFile=$home/ctld.pid
SlurmdPidFile=$home/slurmd.%n.pid
SlurmctldLogFile=$home/ctld.log
SlurmdLogFile=$home/slurmd.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=$parameters
SlurmdParameters=config_overrides
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$home/ended.txt
CONF
    for node in $(seq "$nodes"); do
        mkdir "$home/spool.$name$node"
        printf 'NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=%d State=UNKNOWN\n' "$name$node" "$host" $((port + node)) "$cpus"
    done >> "$home/slurm.conf"
    printf 'PartitionName=main Nodes=%s[1-%d] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO\n' "$name" "$nodes" >> "$home/slurm.conf"
    slurmctld -f "$home/slurm.conf"
    for node in $(seq "$nodes"); do slurmd -f "$home/slurm.conf" -N "$name$node"; done
    for _ in $(seq 200); do
        [ "$(SLURM_CONF=$home/slurm.conf sinfo -h -t idle -o %D 2> /dev/null)" = "$nodes" ] && return
        sleep 0.2
    done
    cat "$home/ctld.log" >&2
    return 1
}
