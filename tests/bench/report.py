#!/usr/bin/env python3
"""Turns the benchmark's samples into one table or JSON: medians with their spread, ratios, and what issue 2 wants.

Samples, tab-separated, a line each: run, row, who, name, value. Ratios are taken within each run, then their median.
"""
import argparse
import collections
import json
import os
import platform
import statistics
import sys

WHO = {"outboxd": "outboxd", "bullmq": "BullMQ", "script": "script alone"}

# row, name, what it says, unit
FIGURES = [
    ("accept", "accepts_per_s", "1 accepts, 64 connections, nothing delivered meanwhile", "/s"),
    ("accept", "p50_ms", "  its answer's latency, p50", "ms"),
    ("accept", "p99_ms", "  its answer's latency, p99", "ms"),
    ("dispatch", "rate", "2 dispatch latency at a tenth of that: at", "/s"),
    ("dispatch", "dispatch_p50_ms", "  client's POST to target's POST, p50", "ms"),
    ("dispatch", "dispatch_p99_ms", "  client's POST to target's POST, p99", "ms"),
    ("single", "deliveries_per_s", "3 one session alone, strictly in order", "/s"),
    ("claim", "claim_few_usec", "4 claim of 8 due sessions, 100 sessions in the store", "us"),
    ("claim", "claim_many_usec", "  the same, {sessions} sessions in the store", "us"),
    ("claim", "idle_few_usec", "  claim with nothing due, 100 sessions", "us"),
    ("claim", "idle_many_usec", "  the same, {sessions} sessions", "us"),
    ("drain", "deliveries_per_s", "5 backlog over 1,000 sessions drained", "/s"),
    ("both", "accepts_per_s", "  accepting and delivering at once: accepts", "/s"),
    ("both", "end_to_end_per_s", "  accepting and delivering at once: all through", "/s"),
]

# what, (row, who, name), divided by (row, who, name) or None, comparison, limit
WANTED = [
    ("accepts alone, against BullMQ alone", ("accept", "outboxd", "accepts_per_s"),
     ("accept", "bullmq", "accepts_per_s"), ">=", 2.0),
    ("accepts while delivering, against BullMQ while delivering", ("both", "outboxd", "accepts_per_s"),
     ("both", "bullmq", "accepts_per_s"), ">=", 2.0),
    ("accepts alone, against the script alone", ("accept", "outboxd", "accepts_per_s"),
     ("accept", "script", "accepts_per_s"), ">=", 0.4),
    ("dispatch latency p50, ms", ("dispatch", "outboxd", "dispatch_p50_ms"), None, "<", 1.0),
    ("dispatch latency p99, ms", ("dispatch", "outboxd", "dispatch_p99_ms"), None, "<", 10.0),
    ("one session alone, messages/s", ("single", "outboxd", "deliveries_per_s"), None, ">=", 500.0),
    ("claim, {sessions} against 100 sessions", ("claim", "outboxd", "claim_ratio"), None, "<=", 1.3),
    ("claim with nothing due, the same", ("claim", "outboxd", "idle_ratio"), None, "<=", 1.3),
]

COMPARE = {">=": lambda a, b: a >= b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b}
DISTURBED = 15  # percent of a core that was somebody else's


def read(path):
    """{(row, who, name): {run: value}}"""
    samples = collections.defaultdict(dict)
    with open(path, encoding="utf-8") as file:
        for line in file:
            run, row, who, name, value = line.rstrip("\n").split("\t")
            samples[row, who, name][int(run)] = float(value)
    return samples


def summary(values):
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values), "runs": len(values)}


def short(x):
    if x >= 10000:
        return f"{x / 1000:.1f}k"
    if x >= 100:
        return f"{x:.0f}"
    return f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def text(values, unit=""):
    s = summary(values)
    spread = f" ({short(s['lowest'])} to {short(s['highest'])})" if s["runs"] > 1 else ""
    return f"{short(s['median'])}{unit and ' ' + unit}{spread}"


def judge(samples, sessions):
    """What issue 2 wants, with what was reached; nothing for what was not measured."""
    for what, over, under, compare, limit in WANTED:
        values = dict(samples.get(over, {}))
        if under:
            below = samples.get(under, {})
            values = {run: v / below[run] for run, v in values.items() if below.get(run)}
        if values:
            reached = statistics.median(values.values())
            yield {"what": what.format(sessions=sessions), "wanted": f"{compare} {limit:g}", "reached": list(values.values()),
                   "holds": COMPARE[compare](reached, limit)}


def machine():
    model = "?"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{os.cpu_count()} x {model}, Linux {platform.release().split('-')[0]}"


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "-+-".join("-" * width for width in widths), *lines[1:]])


def figures_table(samples, sessions):
    rows = [("what", *WHO.values())]
    for row, name, what, unit in FIGURES:
        cells = [list(samples.get((row, who, name), {}).values()) for who in WHO]
        if any(cells):
            rows.append((what.format(sessions=sessions), *(text(values, unit) if values else "" for values in cells)))
    return table(rows)


def wanted_table(samples, sessions):
    rows = [("wanted", "limit", "reached", "")]
    for item in judge(samples, sessions):
        rows.append((item["what"], item["wanted"], text(item["reached"]), "holds" if item["holds"] else "MISSED"))
    return table(rows)


def cpu_table(samples):
    """Who was busy, in percent of one core."""
    rows = [("CPU, % of one core", "")]
    for row in ("accept", "drain", "both", "dispatch", "single"):
        for who in WHO:
            uses = {name[4:]: statistics.median(values.values()) for (r, w, name), values in samples.items()
                    if r == row and w == who and name.startswith("cpu.")}
            if uses:
                other = uses.pop("other", 0)
                names = sorted(uses, key=uses.get, reverse=True)
                rows.append((f"{row}, {WHO[who]}",
                             " ".join(f"{name} {uses[name]:.0f}" for name in names) + f"; not ours {other:.0f}"))
    return table(rows)


def disturbed(samples):
    worst = max((max(values.values()) for (_, _, name), values in samples.items() if name == "cpu.other"), default=0)
    return worst if worst > DISTURBED else 0


def print_table(samples, args):
    sessions = f"{args.sessions:,}"
    runs = len({run for values in samples.values() for run in values})
    print(f"{runs} runs of {args.seconds} s in turn, 1 KB bodies, 64 kept connections, appendfsync {args.fsync}\n"
          f"{machine()}; {args.store}\nmedian (lowest to highest)\n")
    print(figures_table(samples, sessions), wanted_table(samples, sessions), cpu_table(samples), sep="\n\n")
    if disturbed(samples):
        print(f"\nDisturbed: other work took up to {disturbed(samples):.0f} % of a core during a measurement.")


def print_json(samples, args):
    figures = [{"row": row, "who": who, "name": name, **summary(list(values.values()))}
               for (row, who, name), values in sorted(samples.items())]
    wanted = [{**item, "reached": summary(item["reached"])} for item in judge(samples, f"{args.sessions:,}")]
    json.dump({"machine": machine(), "store": args.store, "fsync": args.fsync, "seconds": args.seconds,
               "disturbed_percent": disturbed(samples), "wanted": wanted, "figures": figures}, sys.stdout, indent=1)
    print()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--seconds", default="?")
    parser.add_argument("--fsync", default="?")
    parser.add_argument("--sessions", type=int, default=100000)
    parser.add_argument("--store", default="?")
    parser.add_argument("samples")
    args = parser.parse_args()
    samples = read(args.samples)
    if not samples:
        sys.exit("nothing was measured")
    (print_json if args.format == "json" else print_table)(samples, args)


main()
