"""Leaders that are asked to end, die, hang, or lose the masters: no item is lost or done twice."""

import os
import signal
import tempfile

from program import Program, refuses
from stand import Masters, adopt, run, until


class Company:
    """Several processes that want to lead, and their journal."""

    def __init__(self, masters, count=3):
        self.masters = masters
        self.folder = tempfile.TemporaryDirectory()
        self.journal = os.path.join(self.folder.name, "journal")
        self.programs = []
        adopt(self)
        for _ in range(count):
            self.join()

    def join(self):
        self.programs.append(Program("leader", self.journal, masters=self.masters))

    def records(self):
        """Reads the journal, and asserts that it has each item once, in order."""
        try:
            with open(self.journal, encoding="ascii") as file:
                lines = file.read().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        records = [tuple(map(int, line.split())) for line in lines if line.endswith("\n")]
        fence = done = 0
        for record in records:
            follows = record == (fence, done + 1) or (record[0] > fence and record[1] == done)
            assert follows, f"{record} follows {(fence, done)} in {records}"
            fence, done = record
        return records

    def await_progress(self, of_another=None):
        """Waits until items are done, by a leader with another fence; returns the fence."""
        begun = len(self.records())

        def fence():
            records = self.records()
            if len(records) > begun + 3 and records[-1][0] == records[-3][0] != of_another:
                return records[-1][0]
            return 0

        return until(fence, f"items are done by another than {of_another}")

    def leader(self):
        """Returns the process that leads."""
        [leader] = [p for p in self.programs if p.is_running() and p.said() == "leads\n"]
        return leader

    def dismiss(self):
        for program in self.programs:
            if program.is_running():
                has_led = bool(program.said())
                program.signal(signal.SIGTERM)
                program.wait(0, *([] if has_led else [-signal.SIGTERM]))  # had hardly begun
        assert self.records()
        until(lambda: self.masters.has("leader") == 0, "the lock is free")

    def end(self):
        self.folder.cleanup()


def a_leader_that_is_asked_to_end_hands_over():
    company = Company(Masters())
    for _ in range(2):
        fence = company.await_progress()
        leader = company.leader()
        leader.signal(signal.SIGTERM)
        leader.wait(0)
        company.await_progress(of_another=fence)
    company.dismiss()


def a_leader_that_is_killed_is_followed():
    company = Company(Masters())
    for _ in range(3):
        fence = company.await_progress()
        company.join()
        company.leader().signal(signal.SIGKILL)
        company.await_progress(of_another=fence)
    company.dismiss()


def a_leader_that_hung_is_refused():
    company = Company(Masters())
    refused = 0
    # Usually the next item is written before the loss is noticed, and the journal refuses it. If
    # the process was stopped before it read a master's answer, it may notice the loss first.
    for _ in range(10):
        fence = company.await_progress()
        company.join()
        leader = company.leader()
        leader.stop()
        company.await_progress(of_another=fence)
        leader.signal(signal.SIGCONT)
        leader.wait(1)
        refused += "refused" in leader.said()
        if refused:
            break
    assert refused
    company.dismiss()


def masters_that_die_end_the_leader_and_no_item_is_lost():
    masters = Masters()
    company = Company(masters, count=2)
    masters.order("kill", 0)
    fence = company.await_progress()
    leader = company.leader()
    masters.order_all("kill")
    leader.wait(1)
    company.join()
    masters.order_all("restart")
    company.await_progress(of_another=fence)
    company.dismiss()


def a_journal_that_cannot_be_written_ends_the_leader():
    masters = Masters(1)
    program = Program("leader", "/nowhere/journal", masters=masters)
    program.wait(1)
    assert "cannot open the journal" in program.said()
    program = Program("leader", "/dev/full", masters=masters)
    program.wait(1)
    assert "cannot" in program.said(), program.said()


def mistakes_are_reported():
    refuses("leader", word="usage")
    refuses("leader", "journal", word="usage")
    refuses("leader", "journal", "localhost", word="nodes[0]")


if __name__ == "__main__":
    run(
        a_leader_that_is_asked_to_end_hands_over,
        a_leader_that_is_killed_is_followed,
        a_leader_that_hung_is_refused,
        masters_that_die_end_the_leader_and_no_item_is_lost,
        a_journal_that_cannot_be_written_ends_the_leader,
        mistakes_are_reported,
    )
