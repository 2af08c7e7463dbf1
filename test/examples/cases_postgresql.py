"""examples/cases/postgresql.sql in the test's own PostgreSQL, if it is installed."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile

from stand import adopt, run, skip, start, until

FILE = os.path.join(os.environ["SOURCES"], "examples", "cases", "postgresql.sql")
BIN = shutil.which("initdb") or max(glob.glob("/usr/lib/postgresql/*/bin/initdb"), default="")


class Database:
    """A server in a temporary folder, without a port. It refuses to run as root."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="redlock-postgresql-")
        self.server = None
        adopt(self)
        self.user = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self.user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        data = os.path.join(self.folder, "data")
        self.call("initdb", "-D", data, "-U", "test", "-A", "trust", "--no-sync")
        options = ["-D", data, "-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        self.server = start(
            [self.program("postgres"), *options],
            cwd=self.folder,
            stderr=subprocess.DEVNULL,
            **self.user,
        )
        until(lambda: self.call("pg_isready", "-h", self.folder, check=False) == 0, "it is ready")

    @staticmethod
    def program(name):
        return os.path.join(os.path.dirname(os.path.realpath(BIN)), name)

    def call(self, name, *arguments, check=True):
        return subprocess.run(
            [self.program(name), *arguments],
            cwd=self.folder,
            check=check,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self.user,
        ).returncode

    def end(self):
        if self.server is not None:
            self.server.terminate()
            self.server.wait()
        shutil.rmtree(self.folder)


class Session:
    """A connection that has run the file, and executes one statement at a time."""

    def __init__(self, database):
        self.process = start(
            ["psql", "-h", database.folder, "-U", "test", "-d", "postgres", "-XqAt"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        adopt(self)
        assert self.ask("\\set VERBOSITY terse\nSET client_min_messages = error;") == []
        assert self.ask(f"\\i {FILE}") == []

    def begin_asking(self, statements):
        self.process.stdin.write(f"{statements}\n\\echo end\n")
        self.process.stdin.flush()

    def answer(self):
        return list(iter(lambda: self.process.stdout.readline().rstrip("\n"), "end"))

    def ask(self, statements):
        self.begin_asking(statements)
        return self.answer()

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def a_holder_reads_and_writes():
    session = Session(Database())
    assert session.ask("EXECUTE read_balance('a', 5);") == ["0"]
    assert session.ask("EXECUTE write_balance('a', 5, 70);") == ["70"]
    assert session.ask("EXECUTE write_balance('a', 5, 80);") == ["80"]
    assert session.ask("EXECUTE read_balance('a', 9007199254740991);") == ["80"]


def an_old_fence_is_refused():
    database = Database()
    old, new = Session(database), Session(database)
    assert old.ask("EXECUTE read_balance('a', 5);") == ["0"]
    assert new.ask("EXECUTE read_balance('a', 6);") == ["0"]
    assert old.ask("EXECUTE write_balance('a', 5, 70);") == []
    assert old.ask("EXECUTE read_balance('a', 5);") == []
    assert new.ask("EXECUTE write_balance('a', 6, 1);") == ["1"]
    assert new.ask("SELECT balance, fence FROM accounts;") == ["1|6"]


def has_blocked(database):
    watcher = Session(database)
    return lambda: watcher.ask("SELECT count(*) FROM pg_locks WHERE NOT granted;") != ["0"]


def an_old_fence_is_refused_after_a_transaction_that_is_not_committed():
    database = Database()
    is_blocked = has_blocked(database)
    for level, answer in (
        ("READ COMMITTED", []),
        ("REPEATABLE READ", ["ERROR:  could not serialize access due to concurrent update"]),
        ("SERIALIZABLE", ["ERROR:  could not serialize access due to concurrent update"]),
    ):
        for statement in ("write_balance('a', 5, 70)", "read_balance('a', 5)"):
            old, new = Session(database), Session(database)
            old.ask("DELETE FROM accounts;")
            assert old.ask("EXECUTE read_balance('a', 5);") == ["0"]
            old.ask(f"BEGIN ISOLATION LEVEL {level}; SELECT 1;")
            assert new.ask("BEGIN; EXECUTE read_balance('a', 6);") == ["0"]
            old.begin_asking(f"EXECUTE {statement};")
            until(is_blocked, "the old one waits for the new one")
            assert new.ask("EXECUTE write_balance('a', 6, 1); COMMIT;") == ["1"]
            said = [line.split("<stdin>:")[-1].lstrip("0123456789: ") for line in old.answer()]
            assert said == answer, (level, statement, said)
            old.ask("ROLLBACK;")
            assert new.ask("SELECT balance, fence FROM accounts;") == ["1|6"]


if __name__ == "__main__":
    if not BIN or not shutil.which("psql"):
        skip("PostgreSQL is not installed (postgresql)")
    run(
        a_holder_reads_and_writes,
        an_old_fence_is_refused,
        an_old_fence_is_refused_after_a_transaction_that_is_not_committed,
    )
