#!/usr/bin/env python3
"""Turns the benchmark's samples into one table or JSON: medians with their spread, and each goal with what was reached.

Samples, tab-separated, a line each: run, row, who, name, value. Ratios and differences are taken within each run, then
their median. What is shown and wanted stands in goals.py.
"""
import argparse
import collections
import json
import os
import platform
import statistics
import sys

from goals import FIGURES, GOALS

WHO = {"outboxd": "outboxd", "bullmq": "BullMQ", "script": "script alone"}

COMBINE = {"/": lambda a, b: a / b if b else None, "-": lambda a, b: a - b}
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


def combined(samples, figure, operation, other):
    """{run: value} of a figure, or of what the operation makes of two."""
    values = samples.get(figure, {})
    if operation is None:
        return values
    others = samples.get(other, {})
    both = {run: COMBINE[operation](value, others[run]) for run, value in values.items() if run in others}
    return {run: value for run, value in both.items() if value is not None}


def verdict(reached, compare, limit):
    """Met or not, and by how much: percent of the limit that is to spare, or short."""
    spare = 100 * (reached / limit - 1 if compare == ">=" else 1 - reached / limit)
    return f"met, {spare:.0f} % to spare" if COMPARE[compare](reached, limit) else f"NOT MET, {-spare:.0f} % off"


def judge(samples, counts):
    """The goals with what was reached; nothing for what was not measured."""
    for what, figure, operation, other, compare, limit, unit in GOALS:
        values = list(combined(samples, figure, operation, other).values())
        if not values:
            continue
        item = {"what": what.format(**counts), "wanted": "", "unit": unit, "reached": values}
        if compare:
            reached = statistics.median(values)
            item |= {"wanted": f"{compare} {limit:g} {unit}".rstrip(), "holds": COMPARE[compare](reached, limit),
                     "verdict": verdict(reached, compare, limit)}
        yield item


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


def figures_table(samples, counts):
    rows = [("what", *WHO.values())]
    for row, name, what, unit in FIGURES:
        cells = [list(samples.get((row, who, name), {}).values()) for who in WHO]
        if any(cells):
            rows.append((what.format(**counts), *(text(values, unit) if values else "" for values in cells)))
    return table(rows)


def goals_table(samples, counts):
    rows = [("goal", "limit", "reached", "")]
    for item in judge(samples, counts):
        rows.append((item["what"], item["wanted"], text(item["reached"], item["unit"]), item.get("verdict", "")))
    return table(rows)


def cpu_table(samples):
    """Who was busy, in percent of one core."""
    rows = [("CPU, % of one core", "")]
    for row in ("accept", "everysec", "batch", "drain", "both", "worker", "dispatch", "single", "inflight"):
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


def print_table(samples, args, counts):
    runs = len({run for values in samples.values() for run in values})
    print(f"{runs} runs of {args.seconds} s in turn, 1 KB bodies, 64 kept connections, appendfsync {args.fsync}\n"
          f"{machine()}; {args.store}\nmedian (lowest to highest)\n")
    print(figures_table(samples, counts), goals_table(samples, counts), cpu_table(samples), sep="\n\n")
    if disturbed(samples):
        print(f"\nDisturbed: other work took up to {disturbed(samples):.0f} % of a core during a measurement.")


def print_json(samples, args, counts):
    figures = [{"row": row, "who": who, "name": name, **summary(list(values.values()))}
               for (row, who, name), values in sorted(samples.items())]
    wanted = [{**item, "reached": summary(item["reached"])} for item in judge(samples, counts)]
    json.dump({"machine": machine(), "store": args.store, "fsync": args.fsync, "seconds": args.seconds,
               "disturbed_percent": disturbed(samples), "wanted": wanted, "figures": figures}, sys.stdout, indent=1)
    print()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--seconds", default="?")
    parser.add_argument("--fsync", default="?")
    parser.add_argument("--store", default="?")
    names = ("rate", "claim_sessions", "million", "in_flight", "staged")
    for name in names:
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=0)
    parser.add_argument("samples")
    args = parser.parse_args()
    samples = read(args.samples)
    if not samples:
        sys.exit("nothing was measured")
    counts = {name: f"{getattr(args, name):,}" for name in names}
    (print_json if args.format == "json" else print_table)(samples, args, counts)


main()
