"""Checks the names that programs and operators rely on against those that lib/packages/redlock.names
records, and prints TAP:

    names.py SOURCES REDLOCK EXPOSITION [REDLOCK-GATEWAY]
    names.py --record SOURCES REDLOCK EXPOSITION REDLOCK-GATEWAY

A name that is removed breaks its users: lib/doc/versions.md says when that is allowed. A new name
must be recorded, so that its removal is noticed later. Names of the library's functions and types
are recorded by test/abi.sh.

  command   its subcommands, options, exit codes, and the fields of --json
  gateway   its options; the paths, fields and codes of HTTP
  metric    the metrics of the library and of the gateway, with their labels
  event     the events of a trace, with their fields
  master    the keys and channels on the masters; the form of each kind of queue entry
  macro     the macros of the headers of C that are values
  build     the options of meson
  variable  of the environment
"""

import glob
import json
import os
import re
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


def said_by(*command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return result.stdout + result.stderr


def options_of(text):
    return {f"option {option}" for option in re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*\b", text)}


def names_of_command(sources, program):
    usage = said_by(program, "--help")
    names = options_of(usage)
    names |= {f"subcommand {word}" for word in re.findall(r"^  ([a-z]+) ", usage, re.M)}
    codes = usage.split("Exit codes")[1]
    names |= {f"exit code {code}" for code in re.findall(r"\b\d{2,3}\b", codes) if code != "128"}
    folder = os.path.join(sources, "examples", "redlock")
    for file in sorted(os.listdir(folder)):
        if file.endswith(".c"):
            calls = r'\bjson_(?:begin|bytes|text|number|bool)\([^,]+, "(\w+)"'
            names |= {f"field {field}" for field in re.findall(calls, read(folder, file))}
    return names


def fields_of(name, schema):
    """Returns the fields of an OpenAPI schema, and those of the objects inside."""
    names = set()
    for field, value in schema.get("properties", {}).items():
        names.add(f"field {name}.{field}")
        names |= fields_of(f"{name}.{field}", value)
    if isinstance(schema.get("items"), dict):
        names |= fields_of(name, schema["items"])
    return names


def names_of_gateway(sources, program):
    folder = os.path.join(sources, "examples", "gateway")
    names = options_of(said_by(program, "--help")) if program else set()
    description = json.loads(read(folder, "openapi.json"))
    for path, methods in description["paths"].items():
        names |= {f"path {method.upper()} {path}" for method in methods if method != "parameters"}
    for name, schema in description["components"]["schemas"].items():
        names |= fields_of(name, schema)
    codes = re.findall(r'XX\([A-Z_]+,\s*"([a-z-]+)",\s*(\d+)', read(folder, "problem.h"))
    return names | {f"code {code} {status}" for code, status in codes}


def names_of_metrics(sources, program):
    names = set()
    for line in said_by(program, "redis://127.0.0.1:1").splitlines():
        sample = re.match(r"([a-z]\w*)(?:\{(.*)\})? ", line)
        if sample:
            labels = re.sub(r'(le|node)="[^"]*"', r"\1", sample[2] or "")
            names.add(f"{sample[1]} {labels}".strip())
    source = read(sources, "examples", "gateway", "metrics.c")
    for name in re.findall(r'"(\w+)",\s*"(?:gauge|counter)"', source):
        names.add(f"redlock_gateway_{name}")
    for name, labels in re.findall(r'PREFIX\s*"(\w+)\{([^}]*)\}', source):
        labels = re.sub(r'=\\"%\w\\"', "", labels)
        names.add(f"redlock_gateway_{name} {labels}")
    return names


def names_of_events(sources):
    source = read(sources, "lib", "core", "event.h")
    body = source.split("#define EVENTS(EVENT, FIELD)")[1].split("\n\n")[0]
    names = set()
    for name, fields in re.findall(r"EVENT\((\w+),((?:\s*\\?\s*FIELD\(\w+, \w+\))*)", body):
        names |= {f"{name} {field}" for field in re.findall(r"FIELD\(\w+, (\w+)\)", fields)}
    return names


def names_at_masters(sources):
    wire = os.path.join(sources, "lib", "wire")
    names = set(re.findall(r'#define \w+_(?:SUFFIX|KEY) "([^"]+)"', read(wire, "script.h")))
    names |= {f"{prefix}*" for prefix in re.findall(
        r'"(redlock:)%', read(sources, "lib", "node", "channel.c"))}
    return names | {f"entry {form}" for form in re.findall(r"^    \{.*?, '(.)',", read(wire, "kind.c"), re.M)}


def macros_of(sources):
    """Returns those with a value, except the version."""
    headers = glob.glob(os.path.join(sources, "include/**/*.h"), recursive=True)
    lines = re.findall(r"^#define (REDLOCK_\w+ [^ \n].*?)(?: +/\*.*)?$", "".join(
        map(read, headers)), re.M)
    return {line for line in lines if not line.startswith(("REDLOCK_VERSION", "REDLOCK_EXPORT"))}


def names_of_build(sources):
    return {f"option {name}" for name in re.findall(r"^option\('(\w+)'", read(
        sources, "meson_options.txt"), re.M)}


def names_of_environment(sources):
    pages = read(sources, "examples", "redlock", "redlock.1")
    pages += read(sources, "examples", "gateway", "redlock-gateway.1")
    return set(re.findall(r"\b(REDLOCK_[A-Z_]+)\b", pages))


def names_now(sources, redlock, exposition, gateway):
    kinds = {
        "command": names_of_command(sources, redlock),
        "gateway": names_of_gateway(sources, gateway),
        "metric": names_of_metrics(sources, exposition),
        "event": names_of_events(sources),
        "master": names_at_masters(sources),
        "macro": macros_of(sources),
        "build": names_of_build(sources),
        "variable": names_of_environment(sources),
    }
    return {f"{kind} {name}" for kind, names in kinds.items() for name in names}


def problems_of(recorded, now):
    gone = [f"gone: {name}" for name in sorted(recorded - now)]
    return gone + [f"not recorded: {name}" for name in sorted(now - recorded)]


def main():
    arguments = sys.argv[1:]
    is_recording = arguments[:1] == ["--record"]
    sources, redlock, exposition, *gateway = arguments[is_recording:]
    path = os.path.join(sources, "lib", "packages", "redlock.names")
    now = names_now(sources, redlock, exposition, gateway[0] if gateway else None)
    if is_recording:
        with open(path, "w", encoding="utf-8") as file:
            file.write("# Written by test/docs/names.py --record.\n")
            file.writelines(f"{name}\n" for name in sorted(now))
        return 0
    recorded = {line for line in read(path).splitlines() if not line.startswith("#")}
    if not gateway:
        recorded = {name for name in recorded if not name.startswith("gateway option ")}

    for kind in sorted({name.split(" ", 1)[0] for name in recorded | now}):
        of_kind = [{name for name in names if name.startswith(f"{kind} ")}
                   for names in (recorded, now)]
        problems = problems_of(*of_kind)
        report(f"names: {kind}", problems if min(map(len, of_kind)) else ["there is none"])
    some = sorted(recorded)[0]
    seen = problems_of(recorded, recorded - {some}) == [f"gone: {some}"]
    report("a name that is gone is seen", [] if seen else [some])
    seen = problems_of(recorded - {some}, recorded) == [f"not recorded: {some}"]
    report("a name that is new is seen", [] if seen else [some])
    print(f"1..{count}")
    return 1 if failed else 0


sys.exit(main())
