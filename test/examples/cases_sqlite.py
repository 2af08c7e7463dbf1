"""Accounts in SQLite: only the newest holder can pay into them."""

import os
import signal
import sqlite3
import tempfile

from program import Program, refuses
from stand import Masters, adopt, run, until


class Bank:
    """A database in its own folder."""

    def __init__(self, masters):
        self.masters = masters
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "bank.db")
        adopt(self)

    def pay(self, amount):
        return Program("sqlite", self.path, "alice", str(amount), masters=self.masters)

    def row(self):
        """Returns (balance, fence), or None."""
        with sqlite3.connect(self.path) as database:
            try:
                return database.execute("SELECT balance, fence FROM accounts").fetchone()
            except sqlite3.OperationalError:  # there is no table yet
                return None
            finally:
                database.rollback()

    def end(self):
        self.folder.cleanup()


def no_payment_is_lost_among_many():
    masters = Masters()
    bank = Bank(masters)
    programs = [bank.pay(amount) for amount in (1, 20, 300, 4000)]
    for program in programs:
        program.wait(0)
    assert bank.row()[0] == 4321
    until(lambda: masters.has("alice") == 0, "the key is free")


def a_holder_that_hung_is_refused():
    masters = Masters()

    def is_refused():
        bank = Bank(masters)
        hung = bank.pay(1)
        until(lambda: bank.row() or not hung.is_running(), "it has read")
        hung.stop()
        # While the process hangs, its key expires, and another process pays.
        bank.pay(20).wait(0)
        hung.signal(signal.SIGCONT)
        code = hung.wait(0, 1)
        balance = bank.row()[0]
        # On a busy host it may be stopped too late, or notice the loss first.
        assert balance == (21 if code == 0 else 20), (code, balance)
        return code == 1 and "refused" in hung.said()

    until(is_refused, "the write of the one that hung is refused")


def one_that_is_killed_pays_nothing():
    masters = Masters()
    bank = Bank(masters)
    killed = bank.pay(1)
    until(bank.row, "it has read")
    killed.signal(signal.SIGKILL)
    bank.pay(20).wait(0)
    assert bank.row()[0] in (20, 21)


def masters_that_die_spare_the_work_or_leave_it_to_the_fence():
    masters = Masters()
    bank = Bank(masters)
    program = bank.pay(1)
    until(bank.row, "it has read")
    masters.order_all("kill")
    code = program.wait(0, 1)
    assert bank.row()[0] == (1 if code == 0 else 0)


def what_is_no_database_is_reported():
    masters = Masters(1)
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"this is no database, whatever its name " * 100)
        file.flush()
        program = Program("sqlite", file.name, "alice", "1", masters=masters)
        program.wait(2)
        assert "not a database" in program.said(), program.said()
    program = Program("sqlite", "/nowhere/bank.db", "alice", "1", masters=masters)
    program.wait(2)
    assert "unable to open" in program.said(), program.said()


def mistakes_are_reported():
    refuses("sqlite", word="usage")
    refuses("sqlite", ":memory:", "alice", "1", word="usage")
    for amount in ("abc", "1x", "9999999999", "99999999999999999999"):
        refuses("sqlite", ":memory:", "alice", amount, "localhost", word="usage")
    refuses("sqlite", ":memory:", "alice", "1", "localhost", word="nodes[0]")


if __name__ == "__main__":
    run(
        no_payment_is_lost_among_many,
        a_holder_that_hung_is_refused,
        one_that_is_killed_pays_nothing,
        masters_that_die_spare_the_work_or_leave_it_to_the_fence,
        what_is_no_database_is_reported,
        mistakes_are_reported,
    )
