"""huggingface_hub reads the cache that the Go client makes, and finds it whole."""

from __future__ import annotations

import os
import pathlib
import subprocess

import huggingface_hub as hub
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPO = "owner/a-model"  # of TestLayout


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    command = ["go", "test", "-count=1", "-run", "^TestLayout$", "./models/hub"]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "GRADHOP_TEST_CACHE": str(folder)})
    return folder


def test_files(cache):
    path = hub.hf_hub_download(REPO, "onnx/model.onnx", cache_dir=cache, local_files_only=True)
    assert os.path.getsize(path) == 3_000_000
    config = hub.try_to_load_from_cache(REPO, "config.json", cache_dir=cache, revision="refs/pr/1")
    assert pathlib.Path(config).read_text() == '{"model_type": "bert"}'
    folder = hub.snapshot_download(REPO, cache_dir=cache, local_files_only=True)
    assert sorted(p.relative_to(folder).as_posix() for p in pathlib.Path(folder).rglob("*") if p.is_file()) == [
        "config.json",
        "empty.txt",
        "onnx/model.onnx",
    ]


def test_scan(cache):
    found = hub.scan_cache_dir(cache)
    assert not found.warnings
    (repo,) = found.repos
    assert repo.repo_id == REPO and repo.nb_files == 3 and set(repo.refs) == {"main", "refs/pr/1"}
