"""A Slurm cluster on this machine for tests: munge, a controller and two nodes, from Debian's packages.

Everything that it writes is below one folder, and it ends with the with statement.
"""

import os
import pathlib
import socket
import subprocess
import time

CONFIG = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MailProg=/bin/true
ReturnToService=2
SlurmdTimeout=10
KillWait=10
MinJobAge=600
StateSaveLocation={home}/state
SlurmctldPidFile={home}/slurmctld.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdSpoolDir={home}/%n
SlurmdPidFile={home}/%n.pid
SlurmdLogFile={home}/%n.log
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port={one} CPUs=1
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port={two} CPUs=1
PartitionName=all Nodes=one,two Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(n):
    """Return n ports on which nobody listens now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """A controller and the nodes "one" and "two" of one processor each. Use it in a with statement."""

    def __init__(self, home: pathlib.Path):
        self.home, self.servers = home, []
        port, one, two = free_ports(3)
        host = os.uname().nodename.split(".")[0]
        (home / "state").mkdir()
        (home / "slurm.conf").write_text(CONFIG.format(home=home, host=host, port=port, one=one, two=two))
        (home / "munge.key").write_bytes(os.urandom(128))
        (home / "munge.key").chmod(0o400)
        self.env = dict(os.environ, SLURM_CONF=str(home / "slurm.conf"))

    def __enter__(self):
        try:
            munge = [f"--{kind}-file={self.home}/munge.{end}" for kind, end in (("key", "key"), ("log", "log"), ("pid", "pid"), ("seed", "seed"))]
            self.start("munged", "--foreground", "--force", f"--socket={self.home}/munge.socket", *munge)
            self.wait(lambda: (self.home / "munge.socket").exists(), 20, "munged")
            self.start("slurmctld", "-D", "-i", "-f", self.home / "slurm.conf")
            for node in ("one", "two"):
                self.start("slurmd", "-D", "-N", node, "-f", self.home / "slurm.conf")
            self.wait(lambda: self.run("sinfo", "--noheader", "-o", "%T %D", check=False).split() == ["idle", "2"], 60, "the nodes")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        subprocess.run(["scancel", "--user=root"], env=self.env, check=False, capture_output=True)
        for server in reversed(self.servers):
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    def start(self, *command):
        with open(self.home / f"{command[0]}.err", "ab") as log:
            self.servers.append(subprocess.Popen(list(map(str, command)), env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def run(self, *command, check=True) -> str:
        """Run a command of Slurm and return what it prints."""
        done = subprocess.run(list(map(str, command)), env=self.env, cwd=self.home, text=True, capture_output=True, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
        return done.stdout

    def wait(self, done, seconds, what):
        """Wait until done() is true."""
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                logs = "\n".join(f"{path.name}: {path.read_text(errors='replace')[-600:]}" for path in sorted(self.home.glob("*.[le][or][gr]")))
                raise TimeoutError(f"{what}: not done after {seconds} s\n{logs}")
            time.sleep(0.1)

    def submit(self, *arguments) -> str:
        """Submit a job script and return the number of the job."""
        return self.run("sbatch", "--parsable", *arguments).strip()

    def finish(self, job, seconds):
        """Wait for all tasks of a job and return their states."""
        states = []

        def over():
            states[:] = self.run("squeue", "--noheader", "--array", "--states=all", f"--jobs={job}", "-o", "%T", check=False).split()
            return states and all(s not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED") for s in states)

        self.wait(over, seconds, f"job {job}")
        return states
