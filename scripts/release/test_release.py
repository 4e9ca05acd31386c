"""What users install: the configuration of release archives, and go install without the repository."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import jsonschema
import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
GORELEASER = "github.com/goreleaser/goreleaser/v2@v2.12.7"
MODULE = "github.com/gradhop/gradhop"


def output(*command, **options):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, **options).stdout


def test_configuration():
    """.goreleaser.yaml meets the schema that GoReleaser publishes; its source is enough for that."""
    folder = json.loads(output("go", "mod", "download", "-json", GORELEASER, env=os.environ | {"GOFLAGS": "-mod=mod"}))["Dir"]
    schema = json.loads(pathlib.Path(folder, "www/docs/static/schema.json").read_text())
    config = yaml.safe_load((ROOT / ".goreleaser.yaml").read_text())
    jsonschema.validate(config, schema)
    systems = {(b["goos"][0], b["goarch"][0]) for b in config["builds"]}
    assert systems == {("linux", "amd64"), ("linux", "arm64"), ("windows", "amd64"), ("darwin", "arm64")}
    config["builds"][0]["goss"] = ["linux"]
    try:
        jsonschema.validate(config, schema)
    except jsonschema.ValidationError:
        return
    raise AssertionError("a misspelt key passes")


@pytest.mark.parametrize(("system", "processor", "target"), [("windows", "amd64", "x86_64-windows-gnu"), ("darwin", "arm64", "aarch64-macos")])
def test_other_systems(system, processor, target):
    """The program is vetted, and so compiled, for systems that this test does not run on."""
    cc = f"{sys.executable} -m ziglang cc -target {target}"
    env = os.environ | {"GOOS": system, "GOARCH": processor, "CGO_ENABLED": "1", "CC": cc}
    subprocess.run(["go", "vet", "./cmd/gradhop/..."], cwd=ROOT, env=env, check=True)


def test_go_install(tmp_path, request):
    """go install from a proxy that has the files of the last commit builds a program that fills a blank."""
    # The go command remembers the files of a version by its name.
    version = "v0.0.1-g" + output("git", "rev-parse", "--short", "HEAD").strip()
    versions = tmp_path / "proxy" / MODULE / "@v"
    versions.mkdir(parents=True)
    (versions / "list").write_text(version + "\n")
    (versions / f"{version}.info").write_text(json.dumps({"Version": version}))
    (versions / f"{version}.mod").write_text(output("git", "show", "HEAD:go.mod"))
    prefix = f"{MODULE}@{version}/"
    subprocess.run(["git", "archive", "--format=zip", f"--prefix={prefix}", "-o", versions / f"{version}.zip", "HEAD"], cwd=ROOT, check=True)
    with zipfile.ZipFile(versions / f"{version}.zip") as z:
        assert prefix + "go.mod" in z.namelist()
    others, cache = (output("go", "env", name).strip() for name in ("GOPROXY", "GOMODCACHE"))
    copies = [pathlib.Path(cache, f"{MODULE}@{version}"), pathlib.Path(cache, "cache/download", MODULE)]
    for copy in copies:
        shutil.rmtree(copy, ignore_errors=True)
        request.addfinalizer(lambda copy=copy: shutil.rmtree(copy, ignore_errors=True))
    env = os.environ | {
        "GOBIN": str(tmp_path / "bin"), "GOPROXY": f"{(tmp_path / 'proxy').as_uri()},{others}", "GONOSUMDB": MODULE, "GONOSUMCHECK": "1",
        "GOFLAGS": "-mod=mod -modcacherw",
    }  # fmt: skip
    subprocess.run(["go", "install", f"{MODULE}/cmd/gradhop@{version}"], cwd=tmp_path, env=env, check=True, capture_output=True, text=True)
    program = tmp_path / "bin" / "gradhop"
    assert version in subprocess.run([program, "version"], check=True, capture_output=True, text=True).stdout
    filled = subprocess.run([program, "infill", "--top", "1", "a [MASK] day ."], check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert filled.strip().endswith("day .")
