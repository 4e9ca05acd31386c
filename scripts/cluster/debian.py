"""Programs of Debian's packages that tests of clusters need."""

import os
import shutil
import subprocess

import pytest


def require(programs, packages):
    """Install packages unless all programs are there. Without them a test is skipped, in CI it fails."""
    if all(map(shutil.which, programs)):
        return
    reason = "apt-get cannot be run as root"
    if os.geteuid() == 0 and shutil.which("apt-get"):
        for args in (("update",), ("install", "--yes", "--no-install-recommends", *packages)):
            done = subprocess.run(["apt-get", "--quiet", *args], env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"), text=True, capture_output=True, check=False)
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["apt-get failed"])[-1]
                break
        else:
            return
    (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no {' and '.join(packages)}: {reason}")
