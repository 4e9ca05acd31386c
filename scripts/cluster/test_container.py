"""The container image without rights, network or a writable file, and the manifests of Kubernetes."""

import json
import os
import pathlib
import subprocess
import sys
import tarfile

import kubernetes_validate
import pytest
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import debian

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = ("1.33", "1.37")  # of Kubernetes; the oldest has what the manifests use


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The configuration and the unpacked files of the image."""
    debian.require(("buildah", "runc"), ("buildah", "runc"))
    layout, root = tmp_path_factory.mktemp("layout"), tmp_path_factory.mktemp("rootfs")
    subprocess.run([sys.executable, HERE / "image.py", "--out", layout], check=True)

    root.chmod(0o755)

    def blob(descriptor):
        return layout / "blobs" / descriptor["digest"].replace(":", "/")

    (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(entry).read_text())
    for layer in manifest["layers"]:
        with tarfile.open(blob(layer)) as tar:
            tar.extractall(root, filter="tar")
    print(f"image of {sum(layer['size'] for layer in manifest['layers']) / 1e6:.1f} MB")
    return json.loads(blob(manifest["config"]).read_text())["config"], root


@pytest.fixture
def run(image, tmp_path):
    """A function that runs the image with arguments, the folder "shared" mounted, as a user without rights."""
    config, root = image
    bundle, shared = tmp_path / "bundle", tmp_path / "shared"
    for folder in (bundle, shared):
        folder.mkdir()
    shared.chmod(0o777)
    subprocess.run(["runc", "spec"], cwd=bundle, check=True)
    spec = json.loads((bundle / "config.json").read_text())
    uid, gid = map(int, config["User"].split(":"))

    def run(*args):
        spec["root"] = {"path": str(root), "readonly": True}
        spec["process"] |= {"terminal": False, "args": [*config["Entrypoint"], *args], "env": config["Env"], "cwd": "/shared", "user": {"uid": uid, "gid": gid}, "capabilities": {}, "noNewPrivileges": True}
        spec["mounts"] = [m for m in spec["mounts"] if m["destination"] in ("/proc", "/dev")]
        spec["mounts"].append({"destination": "/shared", "type": "bind", "source": str(shared), "options": ["bind", "rw"]})
        (root / "shared").mkdir(exist_ok=True)
        spec["linux"]["namespaces"] = [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount")]  # a network of its own has no way out
        (bundle / "config.json").write_text(json.dumps(spec))
        return subprocess.run(["runc", f"--root={tmp_path}/state", "run", "--bundle", bundle, f"test-{os.getpid()}"], text=True, capture_output=True, check=False, timeout=120)

    return run, shared


def test_fills_a_sentence(image, run):
    """The answer is that of the same program outside."""
    run, _ = run
    args = ("infill", "--offline", "--quiet", "--top", "2", "the old man sat by the [MASK] .")
    done, (_, root) = run(*args), image
    assert (done.returncode, done.stderr) == (0, "")
    outside = subprocess.run([root / "usr/bin/gradhop", *args], env={"GRADHOP_ORT_LIB": str(root / "usr/lib/libonnxruntime.so")}, text=True, stdout=subprocess.PIPE, check=True)
    assert done.stdout == outside.stdout
    assert done.stdout.count("the old man sat by the ") == 2


def test_pods(run):
    """The commands of the manifests, with their indices, make parts that join."""
    run, shared = run
    job, merge = (yaml.safe_load((HERE / name).read_text()) for name in ("job.yaml", "merge.yaml"))
    assert run("ebm", "new", "mlp", "--space", "binary:784", "--width", "8", "-o", "ebm.onnx").returncode == 0
    (shared / "run").mkdir()
    (shared / "run").chmod(0o777)
    spec = job["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    for index in range(spec["completions"]):
        args = [arg.replace("$(JOB_COMPLETION_INDEX)", str(index)) for arg in container["args"]]
        assert f"--shard={index}/{spec['completions']}" in args
        done = run(*args, "--steps=4", "--warmup=2")
        assert done.returncode == 0, done.stderr
    (container,) = merge["spec"]["template"]["spec"]["containers"]
    args = [f"run/{arg}" if arg.startswith("part-") or arg == "joint" else arg for arg in container["args"]]
    done = run(*args)
    assert done.returncode == 0, done.stderr
    assert "64 chains" in done.stdout


@pytest.mark.parametrize("name", ["job.yaml", "merge.yaml"])
@pytest.mark.parametrize("version", VERSIONS)
def test_schema(name, version):
    """The manifests follow the API's published schema, which knows no other fields."""
    manifest = yaml.safe_load((HERE / name).read_text())
    kubernetes_validate.validate(manifest, version, strict=True)
    manifest["spec"]["completionMod"] = "Indexed"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, version, strict=True)
