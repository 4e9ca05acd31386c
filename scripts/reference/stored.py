"""What the reference scripts share: one command line, and telling whether the files they wrote are current."""

import argparse
import json
import math
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def command_line(doc):
    """The parser of a script that writes files, or only checks them."""
    ap = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not what this script writes")
    return ap


def data(content):
    return content.encode() if isinstance(content, str) else content


def stale(files, same=None):
    """Paths below ROOT whose content is not that of files, or not the same by a comparison of two contents."""
    out = []
    for path, content in files.items():
        stored = (ROOT / path).read_bytes() if (ROOT / path).is_file() else None
        if stored is None or not (stored == data(content) or (same and same(stored, data(content)))):
            out.append(path)
    return out


def finish(check, made_by, files, same=None):
    """Writes the files, or ends with exit code 1 and the paths that are stale."""
    if check:
        report(stale(files, same), made_by)
        return
    for path, content in files.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_bytes(data(content))


def stale_folder(stored, fresh, same):
    """Names of the files below fresh that stored lacks or has otherwise; same compares two paths, by suffix."""
    names = sorted(p.relative_to(fresh) for p in fresh.rglob("*") if p.is_file())
    return [str(n) for n in names if not (stored / n).is_file() or not same[n.suffix](stored / n, fresh / n)]


def finish_folder(check, made_by, folder, write, same):
    """Has write fill the folder, or a fresh one that is compared with it."""
    if not check:
        write(folder)
        return
    with tempfile.TemporaryDirectory() as fresh:
        write(pathlib.Path(fresh))
        report(stale_folder(folder, pathlib.Path(fresh), same), made_by)


def report(old, made_by):
    if old:
        sys.exit(f"stale, run {made_by}: {' '.join(old)}")


def same_numbers(rel, floor=1e-12):
    """A comparison of JSON texts whose floats may differ by rounding."""

    def same(a, b):
        if isinstance(a, dict) and isinstance(b, dict):
            return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=rel, abs_tol=floor)
        return a == b

    return lambda a, b: same(json.loads(a), json.loads(b))
