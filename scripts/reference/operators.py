"""The operators of the standard, the sets that changed them and their attributes, for the Go package onnx.

    operators.py            write onnx/operators.tsv
    operators.py --check    regenerate in memory; exit 1 if the file differs
"""

import onnx.defs
import stored

MADE_BY = "scripts/reference/operators.py"
FILE = "onnx/operators.tsv"
DOMAINS = ("ai.onnx", "ai.onnx.ml")
HEADER = ("domain", "operator", "since", "deprecated", "attributes")


def rows():
    """One row an operator: its domain, its name, the sets that defined it anew, those that deprecated it, and the
    types of its attributes: of the newest form that has them."""
    forms, attributes = {}, {}
    for s in onnx.defs.get_all_schemas_with_history():
        key = (s.domain or "ai.onnx", s.name)
        forms.setdefault(key, {})[s.since_version] = s.deprecated
        for a in s.attributes.values():
            kind = str(a.type).rsplit(".", 1)[-1].lower()
            since, _ = attributes.setdefault(key, {}).get(a.name, (0, ""))
            if s.since_version > since:
                attributes[key][a.name] = s.since_version, kind
    for (domain, name), since in sorted(forms.items()):
        if domain in DOMAINS:
            yield domain, name, ",".join(map(str, sorted(since))), ",".join(str(v) for v in sorted(since) if since[v]), ",".join(
                f"{a}:{kind}" for a, (_, kind) in sorted(attributes.get((domain, name), {}).items()))


def table():
    newest = ", ".join(f"{d} {onnx.defs.onnx_opset_version() if d == 'ai.onnx' else newest_of(d)}" for d in DOMAINS)
    lines = [f"# made by {MADE_BY}; newest operator sets: {newest}", "\t".join(HEADER)]
    return "\n".join(lines + ["\t".join(r) for r in rows()]) + "\n"


def newest_of(domain):
    return max(s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.domain == domain)


def main():
    stored.finish(stored.command_line(__doc__).parse_args().check, MADE_BY, {FILE: table()})


if __name__ == "__main__":
    main()
