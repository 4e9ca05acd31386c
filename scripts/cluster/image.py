"""Build the container image: python scripts/cluster/image.py [--out FOLDER] [--name gradhop].

Files come from this machine: the program from this checkout, onnxruntime as the program fetches it (its checksum is
checked), and the libraries that ldd names, of which labels record the Debian packages. buildah or docker builds.
With --out the image is written as an OCI layout, which any registry client pushes.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def output(*command: str | pathlib.Path, env: dict[str, str] | None = None) -> str:
    return subprocess.run(command, cwd=ROOT, env=env, check=True, text=True, stdout=subprocess.PIPE).stdout


def libraries(*programs: pathlib.Path) -> dict[str, pathlib.Path]:
    """The libraries that the programs link, by the path under which the loader looks for them."""
    found = {}
    for program in programs:
        for name, path in re.findall(r"^\s*(\S+)(?: => (\S+))? \(0x", output("ldd", program), re.MULTILINE):
            if name.startswith("/"):
                found[name] = pathlib.Path(name)  # the loader
            elif path:
                found[f"/usr/lib/{name}"] = pathlib.Path(path)
    return found


def packages(paths: list[pathlib.Path]) -> str:
    """The Debian packages that the files come from, with their versions; "" where that cannot be said."""
    names = set()
    for path in paths:
        for at in (path, pathlib.Path(str(path).removeprefix("/usr")), path.resolve()):  # packages know only one of the names
            done = subprocess.run(["dpkg", "--search", at], check=False, text=True, capture_output=True) if shutil.which("dpkg") else None
            if done and not done.returncode:
                names.add(done.stdout.split(": ")[0])
                break
    return " ".join(sorted(output("dpkg-query", "--show", "--showformat", "${Package}=${Version}\n", *names).split())) if names else ""


def collect(context: pathlib.Path) -> dict[str, str]:
    """Write the files of the image to context/files and return its labels."""
    files = context / "files"
    for folder in ("usr/bin", "usr/lib", "work", "tmp"):
        (files / folder).mkdir(parents=True)
    program = files / "usr/bin/gradhop"
    output("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/gradhop", env=os.environ | {"CGO_ENABLED": "1"})
    doctor = output(program, "doctor", "--fetch", "ebm-digits")
    runtime = re.search(r"^ *library +(\S+)$", doctor, re.MULTILINE)
    if not runtime:
        sys.exit(f"gradhop doctor names no onnxruntime:\n{doctor}")
    shutil.copy(runtime[1], files / "usr/lib/libonnxruntime.so")
    linked = libraries(program, pathlib.Path(runtime[1]))
    for name, path in linked.items():
        target = files / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return {
        "org.opencontainers.image.title": "gradhop",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": output(program, "version").split()[1],
        "org.opencontainers.image.description": "linked libraries: " + packages(list(linked.values())),
    }


def build(name: str, out: pathlib.Path | None) -> None:
    builder = next(filter(shutil.which, ("buildah", "docker")), None)
    if not builder or (out and builder != "buildah"):
        sys.exit("buildah is needed" + ("" if out else ", or docker") + ": apt-get install buildah")
    with tempfile.TemporaryDirectory() as temp:
        context = pathlib.Path(temp)
        labels = [f"--label={key}={value}" for key, value in collect(context).items()]
        # Without a daemon, and without privileges where the kernel gives none: no step runs a program.
        store = ["--storage-driver=vfs", f"--root={context}/store", f"--runroot={context}/run"] if out else []
        how = ["bud", "--isolation=chroot"] if builder == "buildah" else ["build"]
        subprocess.run([builder, *store, *how, *labels, "--tag", name, "--file", HERE / "Dockerfile", context], check=True, stdout=sys.stderr)
        if out:
            subprocess.run([builder, *store, "push", name, f"oci:{out}:{name}"], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="gradhop", help="name and tag of the image (default: gradhop)")
    parser.add_argument("--out", type=pathlib.Path, help="folder for the image as an OCI layout (default: the builder's store)")
    arguments = parser.parse_args()
    build(arguments.name, arguments.out)
