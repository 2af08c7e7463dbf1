"""Checks the alerts of lib/doc/monitoring.md, and prints TAP:

    alerts.py SOURCES DOCS-EXPOSITION

  names     each metric and label value in a rule is in the text that the library writes
  table     lib/doc/statistics.md lists the metrics of that text, and no other
  page      lib/doc/monitoring.md explains each alert, and no other
  promtool  accepts the rules, and the tests in alerts.yml pass, if it is installed
"""

import os
import re
import shutil
import subprocess
import sys

count = 0
failed = False


def report(name, problems):
    global count, failed
    count += 1
    print(f"{'not ok' if problems else 'ok'} {count} - {name}")
    for problem in problems:
        failed = True
        print(f"# {problem}")


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def exposition_of(program):
    """Returns {metric: type} and {(metric, label): {value}}."""
    nodes = ["redis://127.0.0.1:1", "redis://127.0.0.1:2"]
    text = subprocess.run([program, *nodes], capture_output=True, text=True, check=True).stdout
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    values = {}
    for metric, labels in re.findall(r"^(\w+)\{(.*)\} ", text, re.M):
        for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
            values.setdefault((metric, label), set()).add(value)
    return types, values


def check_names(rules, types, values):
    problems = []
    named = set(re.findall(r"\bredlock_\w+", rules))
    for name in sorted(named):
        histogram = re.sub(r"_(bucket|sum|count)$", "", name)
        if types.get(name) is None and types.get(histogram) != "histogram":
            problems.append(f"there is no {name}")
    for name, matchers in re.findall(r"\b(redlock_\w+)\{([^}]*)\}", rules):
        for label, kind, value in re.findall(r'(\w+)(=~|!=|=)"([^"]*)"', matchers):
            wanted = value.split("|") if kind == "=~" else [value]
            known = values.get((name, label), set())
            problems += [f"{name} has no {label}={one}" for one in wanted if one not in known]
    report("rules name what there is", problems if named else ["the rules name no metric"])


def check_table(page, types, values):
    told = {}
    for row in re.findall(r"^\| (`redlock_.*)$", page, re.M):
        names, kind, labels = [cell.strip() for cell in f"{row}||".split("|")][:3]
        if kind not in ("counter", "gauge", "histogram"):
            continue
        for name in re.findall(r"redlock_\w+", names):
            told[name] = (kind, labels)
    problems = [f"is not in the table: {name}" for name in sorted(set(types) - set(told))]
    problems += [f"is no metric: {name}" for name in sorted(set(told) - set(types))]
    for name in set(told) & set(types):
        kind, labels = told[name]
        if kind != types[name]:
            problems.append(f"{name} is a {types[name]}, not a {kind}")
        label, _, listed = labels.partition(": ")
        known = values.get((name, label.strip("`")), set())
        if set(filter(None, listed.split(", "))) != known and label:
            problems.append(f"{name}: {label} is {', '.join(sorted(known))}")
    report("statistics.md lists all metrics", problems)


def check_page(page, rules):
    alerts = re.findall(r"^ +- alert: (\w+)$", rules, re.M)
    rows = re.findall(r"^\| `(\w+)` \|", page, re.M)
    problems = [f"not explained: {name}" for name in alerts if name not in rows]
    problems += [f"no such alert: {name}" for name in rows if name not in alerts]
    report("monitoring.md explains all alerts", problems if alerts else ["there are no alerts"])
    return alerts


def check_promtool(sources, alerts):
    rules = os.path.join(sources, "lib/doc/prometheus-rules.yml")
    cases = os.path.join(sources, "test/docs/alerts.yml")
    tried = set(re.findall(r"alertname: (\w+)", read(cases)))
    report("each alert has a case", sorted(set(alerts) ^ tried))
    if shutil.which("promtool") is None:
        report("promtool # SKIP is not installed", [])
        return
    for arguments in (["check", "rules", rules], ["test", "rules", cases]):
        told = subprocess.run(
            ["promtool", *arguments], capture_output=True, text=True, check=False
        )
        problems = (told.stdout + told.stderr).splitlines() if told.returncode != 0 else []
        report("promtool " + " ".join(arguments[:2]), problems)


def main():
    sources, program = sys.argv[1:3]
    rules = read(sources, "lib/doc/prometheus-rules.yml")
    types, values = exposition_of(program)
    check_names(rules, types, values)
    check_table(read(sources, "lib/doc/statistics.md"), types, values)
    alerts = check_page(read(sources, "lib/doc/monitoring.md"), rules)
    check_promtool(sources, alerts)
    print(f"1..{count}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
