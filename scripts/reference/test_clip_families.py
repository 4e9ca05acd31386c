"""The whole program reads folders of models as their libraries write them, and computes what these compute."""

import json
import os
import re
import shutil
import subprocess
import warnings

import clip_families
import pytest
import stored


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """PASS or FAIL of each family, and of one whose expected gradient is changed."""
    folder = tmp_path_factory.mktemp("families")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's are about itself
        clip_families.write(folder, clip_families.FAMILIES)
    shutil.copytree(folder / "clip", folder / "changed")
    path = folder / "changed/expected.json"
    values = json.loads(path.read_text()) | {"name": "changed"}
    values["grad"][3] += 2e-5 * max(map(abs, values["grad"]))
    path.write_text(json.dumps(values))
    command = ["go", "test", "./tasks/prompttune", "-run", "^TestExternalFamilies$", "-count=1", "-v"]
    run = subprocess.run(command, cwd=stored.ROOT, env={**os.environ, "GRADHOP_CLIP_FAMILIES": str(folder)}, capture_output=True, text=True, check=False)
    found = re.findall(r"--- (PASS|FAIL): TestExternalFamilies/(\S+)", run.stdout)
    return {name: verdict for verdict, name in found}, run.stdout + run.stderr


@pytest.mark.parametrize("family", clip_families.FAMILIES)
def test_family(verdicts, family):
    """Tokens, pixels, vectors, U and gradients within 1e-5."""
    found, output = verdicts
    assert found[family] == "PASS", output[-6000:]


def test_a_change_is_noticed(verdicts):
    found, _ = verdicts
    assert found["changed"] == "FAIL"
