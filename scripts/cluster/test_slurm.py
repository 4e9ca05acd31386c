"""Array jobs on a real Slurm give the draws of one process, byte for byte, also when a task is killed."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import debian
import slurm

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = pathlib.Path(__file__).with_name("chains.sbatch")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "gradhop"
    subprocess.run(["go", "build", "-o", path, "./cmd/gradhop"], cwd=ROOT, check=True)
    return path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    debian.require(("munged", "slurmctld", "slurmd", "sbatch"), ("slurm-wlm", "munge"))
    with slurm.Cluster(tmp_path_factory.mktemp("slurm")) as c:
        yield c


def processes(folder):
    """The processes that write to the folder."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"--out" in command and str(folder).encode() in command and not command[0].endswith(b"bash"):
                yield int(entry.name)


def restarts(cluster, job):
    """How often the tasks of a job were queued again."""
    text = cluster.run("scontrol", "--oneliner", "show", "job", job)
    return sorted(int(word.removeprefix("Restarts=")) for word in text.split() if word.startswith("Restarts="))


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


SAMPLE = ["sample", "--chains", "6", "--steps", "60000", "--thin", "100", "--seed", "1", "--checkpoint-every", "1s", "--threads", "1", "--space", "binary:64"]
PROMPTS = ["prompt-tune", "--chains", "6", "--images", ROOT / "models/pictures/cats", "--length", "3", "--sampler", "dmala", "--start", "0", "--warmup", "50",
           "--steps", "1000", "--seed", "1", "--checkpoint-every", "1s", "--threads", "1"]  # fmt: skip


@pytest.mark.parametrize(("run", "sent"), [(SAMPLE, signal.SIGKILL), (SAMPLE, signal.SIGTERM), (PROMPTS, signal.SIGKILL)], ids=["killed", "preempted", "prompts"])
def test_array(cluster, program, tmp_path, run, sent):
    """One of three tasks is stopped in its middle, goes on, and the joined run is that of one process."""
    command = [program, *run]
    if run is SAMPLE:
        command.append(tmp_path / "energy.onnx")
        subprocess.run([program, "ebm", "new", "mlp", "--space", "binary:64", "--width", "64", "-o", command[-1], "--quiet"], check=True, stdout=subprocess.DEVNULL)
    array(cluster, tmp_path, command, "checkpoint", sent)
    subprocess.run([program, "merge", *sorted((tmp_path / "run").glob("part-*")), "--out", tmp_path / "joint", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*command, "--out", tmp_path / "whole", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    joint, whole = files(tmp_path / "joint" / "draws.zarr"), files(tmp_path / "whole" / "draws.zarr")
    assert joint.keys() == whole.keys()
    assert [name for name in joint if joint[name] != whole[name]] == []


def array(cluster, tmp_path, command, begun, sent):
    """Run a command as an array of three tasks. One is stopped when its folder has the file begun, and goes on."""
    (tmp_path / "run").mkdir()
    job = cluster.submit("--array=0-2", "--output", tmp_path / "log-%a.txt", SCRIPT, tmp_path / "run", *command)
    part = tmp_path / "run" / "part-0001"
    stopped = []

    def under_way():
        stopped[:] = processes(part)
        return stopped and (part / begun).exists()

    cluster.wait(under_way, 120, f"{begun} of task 1")
    if sent == signal.SIGTERM:
        cluster.run("scancel", "--batch", "--signal=TERM", f"{job}_1")
    else:
        os.kill(stopped[0], sent)
    cluster.wait(lambda: restarts(cluster, job) == [0, 0, 1], 120, "task 1 in the queue again")
    # Slurm starts it two minutes later by itself. A node refuses a job that it has ended in the same second.
    cluster.run("scontrol", "update", f"JobId={job}_1", "StartTime=now+4")
    states = cluster.finish(job, 300)
    logs = {path.name: path.read_text() for path in tmp_path.glob("log-*.txt")}
    assert states == ["COMPLETED"] * 3, logs


def test_corpus(cluster, program, tmp_path):
    """A file is filled by three tasks, one of which is killed: the joined folder is that of one process, byte for byte."""
    lines = [f"the {a} man sat by the [MASK] and looked at the {b} [MASK] ." for a in ("old", "young", "tall") for b in ("red", "blue", "cold", "big", "new", "far")]
    (tmp_path / "corpus.txt").write_text("\n".join(lines) + "\n")
    command = [program, "infill", "--file", tmp_path / "corpus.txt", "--top", "1", "--shard-lines", "1", "--threads", "1"]
    array(cluster, tmp_path, command, "shard-000001.jsonl", signal.SIGKILL)
    subprocess.run([program, "merge", *sorted((tmp_path / "run").glob("part-*")), "--out", tmp_path / "joint"], check=True)
    subprocess.run([*command, "--out", f"{tmp_path}/whole/", "--quiet"], check=True)
    joint, whole = files(tmp_path / "joint"), files(tmp_path / "whole")
    for folder in joint, whole:  # command.json has the current folder, checksums.json its checksum
        for name in ("command.json", "checksums.json", "lock"):
            folder.pop(pathlib.Path(name), None)
    assert len(joint) == len(lines) + 2
    assert joint == whole


def test_no_shared_folder(cluster, tmp_path):
    """A folder that a node does not see is one line, and the task is not queued again."""
    job = cluster.submit("--array=0-0", "--output", tmp_path / "log.txt", SCRIPT, tmp_path / "missing", "gradhop", "sample")
    assert cluster.finish(job, 60) == ["FAILED"]
    assert (tmp_path / "log.txt").read_text() == f"{os.uname().nodename}: no folder {tmp_path}/missing: make it before the job, where all nodes see it\n"
