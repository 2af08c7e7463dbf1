"""The commands of examples/README.md print what the page says, and its statements on files hold."""

import glob
import os
import re
import socket
import subprocess
import tempfile

from stand import Masters, run, until

SOURCES = os.environ["SOURCES"]
CASES = os.path.join(SOURCES, "examples", "cases")
SERVERS = os.path.join(SOURCES, "examples", "servers")


def read(*path):
    with open(os.path.join(SOURCES, *path), encoding="utf-8") as file:
        return file.read()


def blocks(kind):
    """Returns [(commands, output)] of the page's `sh` blocks, or the texts of another kind."""
    page = read("examples", "README.md")
    if kind != "sh":
        return re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)
    found = re.findall(r"```sh\n(.*?)```(?:\n\n```output\n(.*?)```)?", page, re.DOTALL)
    return [block for block in found if " dev " not in block[0]]


def with_free_ports(commands):
    """Replaces the page's ports with free ones."""
    for port in set(re.findall(r"\b80\d\d\b", commands)):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            commands = re.sub(rf"\b{port}\b", str(probe.getsockname()[1]), commands)
    return commands


def each_command_prints_what_the_page_says():
    masters = Masters()
    environment = dict(os.environ, REDLOCK_NODES=",".join(masters.uris))
    [(preparation, _), *rest] = blocks("sh")
    for commands, expected in rest:
        assert expected, f"the page does not say what this prints: {commands}"
        if "sqlite" in commands and not os.path.exists(
            os.path.join(os.environ["BUILD"], "examples", "cases", "sqlite")
        ):
            continue

        def is_as_expected():
            with tempfile.TemporaryDirectory() as folder:
                os.symlink(os.environ["BUILD"], os.path.join(folder, "build"))
                ended = subprocess.run(
                    ["timeout", "60", "sh", "-c", preparation + with_free_ports(commands) + "wait\n"],
                    cwd=folder,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
            print("".join(f"# {line}\n" for line in ended.stdout.splitlines()), end="")
            masters.delete("nightly")  # an attempt that is repeated must not find it
            return ended.stdout == expected

        until(is_as_expected, f"the page is right about {commands}")  # on a busy host, too


def each_file_is_short_and_on_the_page():
    files = glob.glob(os.path.join(CASES, "*.c")) + glob.glob(os.path.join(CASES, "*.sql"))
    assert len(files) > 9
    page = read("examples", "README.md")
    for file in files:
        name = os.path.basename(file)
        assert f"(cases/{name})" in page, name
        assert read(file).count("\n") < 120, name
    for file in glob.glob(os.path.join(SERVERS, "*.c")):
        assert f"(servers/{os.path.basename(file)})" in page, file


def each_file_builds_with_the_command_that_it_names():
    environment = dict(
        os.environ,
        PKG_CONFIG_PATH=os.path.join(os.environ["BUILD"], "meson-uninstalled"),
        CPATH=os.path.join(SOURCES, "include"),
    )
    with tempfile.TemporaryDirectory() as folder:
        files = glob.glob(os.path.join(CASES, "*.c")) + glob.glob(os.path.join(SERVERS, "*.c"))
        for file in files:
            if not os.path.exists(file[:-2].replace(SOURCES, os.environ["BUILD"])):
                continue  # a library is not installed
            [command] = re.findall(r"^ \*     (cc .*)$", read(file), re.MULTILINE)
            name = os.path.basename(file)[:-2]
            os.symlink(file, os.path.join(folder, name + ".c"))
            subprocess.run(
                ["sh", "-c", command.replace("cc ", "$CC $SANITIZE -Wall -Wextra -Werror ", 1)],
                cwd=folder,
                env=environment,
                check=True,
            )
            assert os.path.exists(os.path.join(folder, name)), command


def the_statements_of_the_page_are_those_of_the_file():
    [statements] = blocks("sql")
    for statement in statements.strip().split("\n\n"):
        assert statement in read("examples", "cases", "postgresql.sql"), statement


if __name__ == "__main__":
    run(
        each_command_prints_what_the_page_says,
        each_file_is_short_and_on_the_page,
        each_file_builds_with_the_command_that_it_names,
        the_statements_of_the_page_are_those_of_the_file,
    )
