"""A corpus filled by two workers of a local Ray cluster has the answers of one process, also when a worker is killed."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
import ray.data

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "scripts" / "python"
sys.path.insert(0, str(PACKAGE))
import gradhop

LINE = ["the", "old", "man", "sat", "by", "the", "door", "and", "looked", "at", "the", "sea", "while", "she", "read", "a", "letter", "from", "her", "brother"]
# Sentences of 7 to 19 words with one blank, and some with two.
TEXTS = [" ".join([*LINE[k % 7 : k % 7 + 5 + k % 13], "[MASK]", *(["and", "[MASK]"] if k % 40 == 0 else []), "."]) for k in range(240)]


class Fill:
    """The best filling of each text, and who found it. Each worker keeps a program and its model open."""

    def __init__(self, folder):
        self.sampler = gradhop.Sampler(threads=1, offline=True)
        pathlib.Path(folder, str(os.getpid())).touch()

    def __call__(self, batch):
        found = self.sampler.infill(list(batch["text"]), top=1)
        batch["filled"] = [f[0].text for f in found]
        batch["logp"] = [f[0].logp for f in found]
        return batch


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "gradhop"
    subprocess.run(["go", "build", "-o", path, "./cmd/gradhop"], cwd=ROOT, check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADHOP", str(path))
        yield path


@pytest.fixture(scope="module")
def cluster(program):
    env = {"GRADHOP": str(program), "PYTHONPATH": f"{PACKAGE}:{pathlib.Path(__file__).parent}"}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error", runtime_env={"env_vars": env})
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.mark.parametrize("kill", [False, True], ids=["", "killed"])
def test_two_workers(cluster, tmp_path, kill):
    killed = []

    def end_one():
        """Kill the first worker when both have begun."""
        while len(found := sorted(tmp_path.iterdir())) < 2:
            time.sleep(0.02)
        time.sleep(0.2)
        killed.append(int(found[0].name))
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=end_one, daemon=True)
    if kill:
        thread.start()
    corpus = ray.data.from_items([{"line": k, "text": text} for k, text in enumerate(TEXTS)], override_num_blocks=24)
    fill = corpus.map_batches(Fill, fn_constructor_args=(str(tmp_path),), batch_size=10, compute=ray.data.ActorPoolStrategy(size=2))
    rows = sorted(fill.take_all(), key=lambda row: row["line"])
    with gradhop.Sampler(threads=1) as one:
        want = one.infill(TEXTS, top=1)
    assert [(row["line"], row["filled"], row["logp"]) for row in rows] == [(k, w[0].text, w[0].logp) for k, w in enumerate(want)]
    workers = len(list(tmp_path.iterdir()))
    assert workers == (3 if kill else 2)
    assert len(killed) == int(kill)
