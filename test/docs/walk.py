"""Walks through a page as a reader does, and prints TAP:

    walk.py SOURCES BUILD PAGE

Runs all blocks of the page that are marked `sh`, in order, in one shell, in a copy of the sources.
A command that fails ends the walk. A block that is marked `output` is the output of the block
before it: each of its lines must be printed, in this order; "..." matches any text, several spaces
count as one, and there may be lines in between that the page leaves out. `redlock` and the other
programs of BUILD are in PATH, unless the page installs them itself: then the page names "meson
install".

In the copy, free ports replace the page's ports 7000 to 7099. A system that has only valkey-server
gets it under the names redis-server and redis-cli. All processes that the page leaves are ended.
"""

import ctypes
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 500  # for all blocks together
PR_SET_CHILD_SUBREAPER = 36


def blocks_of(text):
    """Returns [(line, kind, text)] of all blocks that are marked `sh` or `output`."""
    blocks = []
    kind = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if kind is None:
                kind, begun, lines = line[3:].strip() or "text", number, []
            else:
                if kind in ("sh", "output"):
                    blocks.append((begun, kind, "\n".join(lines) + "\n"))
                kind = None
        elif kind is not None:
            lines.append(line)
    return blocks


def steps_of(text):
    """Returns [(line, commands, expected)]: each block of commands with the lines it must print."""
    steps = []
    for line, kind, block in blocks_of(text):
        if kind == "sh":
            steps.append((line, block, []))
        elif steps and not steps[-1][2]:
            steps[-1][2].extend(block.splitlines())
        else:
            raise SystemExit(f"line {line}: output of which block?")
    return steps


RESERVED = []  # sockets that keep these ports reserved until the test ends


def free_port():
    """
    Returns a port below those that the kernel assigns. It stays reserved: other programs, such as a
    test that runs at the same time, cannot bind it, except servers that set SO_REUSEADDR, as ours.
    """
    while True:
        reserved = socket.socket()
        port = random.randrange(20000, 32000)
        try:
            reserved.bind(("127.0.0.1", port))
        except OSError:
            reserved.close()
            continue
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        RESERVED.append(reserved)
        return port


def with_free_ports(text):
    ports = {}

    def replace(match):
        if match[0] not in ports:
            ports[match[0]] = str(free_port())
        return ports[match[0]]

    return re.sub(r"\b70[0-9][0-9]\b", replace, text)


def copy_sources(sources, copy):
    """Copies the files that git does not ignore; without git, all but build folders."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=sources,
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        skipped = shutil.ignore_patterns("build*", ".git")
        shutil.copytree(sources, copy, ignore=skipped, symlinks=True)
        return
    for name in filter(None, listed.stdout.decode().split("\0")):
        source = os.path.join(sources, name)
        if os.path.isfile(source):
            os.makedirs(os.path.dirname(os.path.join(copy, name)), exist_ok=True)
            shutil.copy(source, os.path.join(copy, name))


def stand_in(work):
    """Returns a folder in which programs of Valkey have the names of missing programs of Redis."""
    folder = os.path.join(work, "bin")
    os.mkdir(folder)
    for part in ("server", "cli"):
        valkey = shutil.which(f"valkey-{part}")
        if shutil.which(f"redis-{part}") is None and valkey is not None:
            os.symlink(valkey, os.path.join(folder, f"redis-{part}"))
    return folder


def environment(build, work, page):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("REDLOCK_")}
    folders = [stand_in(work), kept["PATH"]]
    if "meson install" not in page:
        for part in ("examples/redlock", "examples/gateway", "examples/cases", "bench"):
            folders.insert(0, os.path.join(build, part))
    kept["PATH"] = ":".join(folders)
    kept["CFLAGS"] = "-O0"  # what a page builds need not be fast
    return kept


def children():
    """Returns our child processes, including adopted ones."""
    ours = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stat:
                state, parent = stat.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z":
            ours.append(int(name))
    return ours


def end_children():
    """Ends all processes that the page has left, and those that these leave in turn."""
    while children():
        for process in children():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def run(steps, copy, env, work):
    """Runs all steps in one shell. Returns the output of each, up to the one that failed."""
    mark = f"walked-{random.getrandbits(64):016x}"
    script = ["set -e"]
    for number, (_, commands, _) in enumerate(steps):
        block = os.path.join(work, f"block-{number}")
        with open(block, "w", encoding="utf-8") as file:
            file.write(commands)
        script.append(f". {block}\nprintf '\\n{mark}\\n'")
    log = os.path.join(work, "log")
    with open(log, "wb") as out:
        shell = subprocess.Popen(
            ["sh", "-c", "\n".join(script)],
            cwd=copy,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            shell.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            out.write(f"\nnot at its end after {TIMEOUT_S} s\n".encode())
    with open(log, encoding="utf-8", errors="replace") as file:
        return file.read().split(f"\n{mark}\n")


def missing_line(expected, printed):
    """Returns the first expected line that is missing, or None."""
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    for line in filter(str.strip, expected):
        pattern = ".*".join(map(re.escape, " ".join(line.split()).split("...")))
        if not any(re.fullmatch(pattern, said) for said in lines):
            return line
    return None


def report(steps, said):
    failed = False
    for number, (line, _, expected) in enumerate(steps):
        problem = None
        if number >= len(said) - 1:
            problem = "it failed" if number == len(said) - 1 else "it was not reached"
        else:
            missing = missing_line(expected, said[number])
            if missing is not None:
                problem = f"it does not print: {missing}"
        print(f"{'not ok' if problem else 'ok'} {number + 1} - line {line}")
        if problem:
            failed = True
            print(f"# {problem}")
            if number < len(said):
                for told in said[number].splitlines()[-40:]:
                    print(f"# {told}")
    print(f"1..{len(steps)}")
    return failed


def main():
    sources, build, page = map(os.path.abspath, sys.argv[1:4])
    with open(page, encoding="utf-8") as file:
        text = with_free_ports(file.read())
    server = os.environ.get("REDLOCK_SERVER", "redis-server")
    text = text.replace("install.sh build redis-server", f"install.sh build {server}")
    steps = steps_of(text)
    if not steps:
        raise SystemExit("the page has no commands")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as work:
        copy = os.path.join(work, "copy")
        copy_sources(sources, copy)
        try:
            said = run(steps, copy, environment(build, work, text), work)
        finally:
            end_children()
        return report(steps, said)


if __name__ == "__main__":
    sys.exit(main())
