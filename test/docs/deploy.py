"""Checks the files for running masters and clients in production, and prints TAP:

    deploy.py SOURCES REDLOCK [REDLOCK-GATEWAY]

  units      lib/doc/systemd: `systemd-analyze verify` reports nothing, if it is installed
  manifests  lib/doc/kubernetes: each name, label, port and volume that one part refers to is declared
             by another one; the URIs name all masters, and an update waits for longer than max_ttl_ms.
             Not checked if python3-yaml is not installed
  masters    a real server with the settings and the users of the manifests: the user has all rights
             that `redlock doctor` tests, and gets a lock; a stranger gets nothing
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from walk import free_port

TIMEOUT_S = 60
MAX_TTL_S = 30  # REDLOCK_OPTIONS_INIT
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


# ------------------------------------------------------------------------------------------- units


def check_units(folder, programs):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        report("units # SKIP systemd-analyze is not installed", [])
        return
    with tempfile.TemporaryDirectory() as work:
        units = []
        for name in sorted(os.listdir(folder)):
            text = re.sub(r"/usr/local/bin/\w+", "/bin/true", read(folder, name))
            for program in programs:
                text = text.replace(f"/usr/bin/{os.path.basename(program)} ", f"{program} ")
                text = text.replace(f"/usr/bin/{os.path.basename(program)}\n", f"{program}\n")
            units.append(os.path.join(work, name))
            with open(units[-1], "w", encoding="utf-8") as file:
                file.write(text)
        told = subprocess.run(
            [analyze, "verify", "--man=no", *units], capture_output=True, text=True, check=False
        )
        lines = (told.stdout + told.stderr).splitlines()
        names = [os.path.basename(unit) for unit in units]
        problems = [line for line in lines if any(name in line for name in names)]
        report("units", problems if len(units) >= 3 else ["too few units"])


# --------------------------------------------------------------------------------------- manifests


def objects_of(path):
    """Returns the objects of a YAML file, read by a Python that has a parser; or None."""
    program = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)"
    for python in (sys.executable, "/usr/bin/python3"):
        with open(path, encoding="utf-8") as file:
            told = subprocess.run(
                [python, "-c", program], stdin=file, capture_output=True, text=True, check=False
            )
        if told.returncode == 0:
            return json.loads(told.stdout)
        if "No module named 'yaml'" not in told.stderr:
            raise SystemExit(told.stderr)
    return None


def find_all(value, name):
    """Returns all values under a name, at any depth."""
    if isinstance(value, list):
        return [found for one in value for found in find_all(one, name)]
    if not isinstance(value, dict):
        return []
    found = [value[name]] if name in value else []
    return found + [more for one in value.values() for more in find_all(one, name)]


def check_pod(kind, pod, named):
    problems = []
    volumes = {volume["name"] for volume in pod.get("volumes", [])} | named["claims"]
    for container in pod["containers"]:
        ports = {port["name"] for port in container.get("ports", [])}
        mounts = {mount["name"] for mount in container.get("volumeMounts", [])}
        problems += [f"{kind}: no volume {name}" for name in mounts - volumes]
        for socket in find_all(container, "tcpSocket"):
            if socket["port"] not in ports:
                problems.append(f"{kind}: no port {socket['port']}")
    for source in find_all(pod, "configMap"):
        if source["name"] not in named["ConfigMap"]:
            problems.append(f"{kind}: no ConfigMap {source['name']}")
    for source in find_all(pod, "secret"):
        keys = named["Secret"].get(source["name"], {})
        wanted = [item["key"] for item in source.get("items", [])]
        problems += [f"{kind}: no {key} in its Secret" for key in wanted if key not in keys]
    for source in find_all(pod, "secretKeyRef"):
        if source["key"] not in named["Secret"].get(source["name"], {}):
            problems.append(f"{kind}: no {source['key']} in Secret {source['name']}")
    return problems


def check_manifests(folder):
    objects = []
    for name in sorted(os.listdir(folder)):
        found = objects_of(os.path.join(folder, name))
        if found is None:
            report("manifests # SKIP python3-yaml is not installed", [])
            return
        objects += found
    named = {"claims": set()}
    for one in objects:
        named.setdefault(one["kind"], {})[one["metadata"]["name"]] = one.get(
            "stringData", one.get("data", one)
        )
        named["claims"] |= {
            claim["metadata"]["name"] for claim in one.get("spec", {}).get("volumeClaimTemplates", [])
        }
    problems = []
    labels = [template["metadata"]["labels"] for template in find_all(objects, "template")
              if "labels" in template.get("metadata", {})]
    for selector in find_all(objects, "matchLabels") + [
        one["spec"]["selector"] for one in objects if one["kind"] == "Service"
    ]:
        if selector not in labels:
            problems.append(f"no pod has the labels {selector}")
    for one in objects:
        for template in find_all(one, "template"):
            if "containers" in template.get("spec", {}):
                problems += check_pod(one["kind"], template["spec"], named)
    for masters in named["StatefulSet"].values():
        problems += check_masters(masters, named)
    report("manifests", problems)


def check_masters(masters, named):
    spec = masters["spec"]
    name = masters["metadata"]["name"]
    problems = []
    if spec["serviceName"] not in named["Service"]:
        problems.append(f"no Service {spec['serviceName']}")
    if spec["minReadySeconds"] <= MAX_TTL_S:
        problems.append("an update takes the next master before the last one counts")
    hosts = [f"@{name}-{i}.{spec['serviceName']}:6379" for i in range(spec["replicas"])]
    uris = named["Secret"][name]["nodes"].split(",")
    if not all(uri.endswith(host) for uri, host in zip(uris, hosts)) or len(uris) != len(hosts):
        problems.append(f"the URIs are not those of {', '.join(hosts)}")
    return problems


# ----------------------------------------------------------------------------------------- masters


def block_of(text, key):
    """Returns a text that YAML has as a block ("key: |")."""
    lines = text.split(f"  {key}: |\n")[1].splitlines()
    block = []
    for line in lines:
        if line and not line.startswith("    "):
            break
        block.append(line[4:])
    return "\n".join(block).rstrip() + "\n"


def check_server(sources, redlock):
    manifest = read(sources, "lib/doc/kubernetes/masters.yaml")
    settings = block_of(manifest, "masters.conf")
    users = block_of(manifest, "users.acl")
    for name, text in (("masters.conf", settings), ("users.acl", users)):
        same = text == read(sources, "lib/doc", name)
        report(f"{name} is that of lib/doc", [] if same else ["they differ"])
    server = shutil.which(os.environ.get("REDLOCK_SERVER", "redis-server")) or shutil.which(
        "valkey-server"
    )
    port = free_port()
    with tempfile.TemporaryDirectory() as work:
        for name, text in (("conf", settings), ("users.acl", users)):
            with open(os.path.join(work, name), "w", encoding="utf-8") as file:
                file.write(text)
        with open(os.path.join(work, "log"), "wb") as log:
            master = subprocess.Popen(
                [server, f"{work}/conf", "--aclfile", f"{work}/users.acl", "--dir", work,
                 "--port", str(port), "--bind", "127.0.0.1"],
                stdout=log, stderr=log,
            )
        try:
            try_server(redlock, port, master)
        finally:
            master.send_signal(signal.SIGKILL)
            master.wait()


def try_server(redlock, port, master):
    uri = f"redis://locks:change-me@127.0.0.1:{port}?durable=yes"
    begun = time.monotonic()
    while True:
        told = subprocess.run(
            [redlock, "doctor", "-n", uri], capture_output=True, text=True, check=False
        )
        if "its user has all rights" in told.stdout and told.returncode == 0:
            break
        if time.monotonic() - begun > TIMEOUT_S or master.poll() is not None:
            report("the user has all rights", (told.stdout + told.stderr).splitlines())
            return
        time.sleep(0.05)
    report("the user has all rights", [])
    for options in ([], ["--fence"], ["--shared"], ["--permits", "2"]):
        held = subprocess.run(
            [redlock, "run", "-n", uri, *options, "orders", "--", "echo", "held"],
            capture_output=True, text=True, check=False,
        )
        problems = [] if held.stdout == "held\n" and not held.stderr else held.stderr.splitlines()
        report(f"the user gets a lock {' '.join(options)}".strip(), problems)
    stranger = subprocess.run(
        [redlock, "run", "-n", f"redis://127.0.0.1:{port}", "--wait", "1s", "a", "--", "true"],
        capture_output=True, text=True, check=False,
    )
    report("a stranger gets none", [] if stranger.returncode == 77 else [stranger.stderr])


def main():
    sources, *programs = map(os.path.abspath, sys.argv[1:])
    check_units(os.path.join(sources, "lib/doc/systemd"), programs)
    check_manifests(os.path.join(sources, "lib/doc/kubernetes"))
    check_server(sources, programs[0])
    print(f"1..{count}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
