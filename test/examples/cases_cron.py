"""A job that many machines start runs on one of them."""

import os
import signal
import tempfile
import time

from program import Program, refuses
from stand import Masters, run, until

HOLD_S = 10


class Machines:
    """Machines that run the job, which adds a line to a file."""

    def __init__(self, masters):
        self.masters = masters
        self.file = tempfile.NamedTemporaryFile(prefix="redlock-cron-")

    def start(self, count):
        job = f"echo done >>{self.file.name}"
        return [
            Program("cron", "job", str(HOLD_S), job, masters=self.masters) for _ in range(count)
        ]

    def runs(self):
        self.file.seek(0)
        return len(self.file.read().splitlines())

    def is_run_by_first(self):
        """Starts one machine, which a busy host may prevent from asking in time."""
        [first] = self.start(1)
        first.wait(0, 1)
        return self.runs() == 1


def of_five_machines_one_runs_it_in_a_period():
    masters = Masters()
    machines = Machines(masters)
    for period in (1, 2, 3):
        programs = machines.start(5)
        codes = [program.wait(0, 1) for program in programs]
        # A busy host may prevent all five from asking in time; two of them never run it.
        until(lambda: machines.runs() == period or machines.start(1)[0].wait(0, 1) < 0, "it runs")
        others = sum("another machine" in program.printed() for program in programs)
        assert others == codes.count(0) - 1 or 1 in codes, (others, codes)
        until(lambda: masters.has("job") == 0, "the next period can begin")


def machines_whose_clocks_are_behind_do_not_run_it_again():
    masters = Masters()

    def is_shown():
        masters.delete("job")
        machines = Machines(masters)
        begun = time.monotonic()
        if not machines.is_run_by_first():
            return False
        late = machines.start(4)  # the first has long released
        for program in late:
            program.wait(0, 1)
        is_in_time = time.monotonic() - begun < HOLD_S
        assert machines.runs() == 1 or not is_in_time
        return is_in_time

    until(is_shown, "five machines ask within a period")


def the_jobs_exit_code_is_reported():
    masters = Masters()
    until(
        lambda: Program("cron", "job", "1", "exit 7", masters=masters).wait(0, 1, 7) == 7,
        "the job runs, and fails",
    )


def a_job_whose_lock_is_lost_is_stopped():
    masters = Masters()
    with tempfile.NamedTemporaryFile(mode="r", prefix="redlock-cron-") as file:
        job = f"echo $$ >{file.name}; exec sleep 1000"

        def started():
            program = Program("cron", "job", "2", job, masters=masters)
            until(lambda: file.seek(0) or file.read() or not program.is_running(), "it starts")
            return program if program.is_running() else None

        program = until(started, "the job runs")
        file.seek(0)
        child = int(file.read())
        masters.delete("job")
        program.wait(1)
        assert "the job is stopped" in program.said(), program.said()
        assert not os.path.exists(f"/proc/{child}")


def a_job_ends_with_the_program():
    masters = Masters()
    with tempfile.NamedTemporaryFile(mode="r", prefix="redlock-cron-") as file:
        job = f"echo $$ >{file.name}; exec sleep 1000"

        def started():
            program = Program("cron", "job", "2", job, masters=masters)
            until(lambda: file.seek(0) or file.read() or not program.is_running(), "it starts")
            return program if program.is_running() else None

        program = until(started, "the job runs")
        file.seek(0)
        child = int(file.read())
        program.signal(signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{child}"), "the job ends")
        program.wait(-signal.SIGKILL)


def a_signal_ends_all_that_the_job_has_begun():
    masters = Masters()
    with tempfile.NamedTemporaryFile(mode="r", prefix="redlock-cron-") as file:
        job = f"sleep 1000 & echo $! >{file.name}; wait; exit 0"

        def started():
            program = Program("cron", "job", "2", job, masters=masters)
            until(lambda: file.seek(0) or file.read() or not program.is_running(), "it starts")
            return program if program.is_running() else None

        program = until(started, "the job runs")
        file.seek(0)
        grandchild = int(file.read())
        program.signal(signal.SIGTERM)
        program.wait(1)
        until(lambda: not os.path.exists(f"/proc/{grandchild}"), "all of the job ends")


def without_masters_it_does_not_run():
    masters = Masters()
    masters.order_all("kill")
    machines = Machines(masters)
    [program] = machines.start(1)
    program.wait(1)
    assert "not run" in program.said() and machines.runs() == 0, program.said()


def mistakes_are_reported():
    node = "redis://127.0.0.1:1"
    refuses("cron", word="usage")
    refuses("cron", "job", "x", "true", node, word="usage")
    refuses("cron", "job", "1", "true", word="usage")
    refuses("cron", "job", "31", "true", node, word="ttl_ms")
    refuses("cron", "job", "1", "true", "localhost", word="nodes[0]")


if __name__ == "__main__":
    run(
        of_five_machines_one_runs_it_in_a_period,
        machines_whose_clocks_are_behind_do_not_run_it_again,
        the_jobs_exit_code_is_reported,
        a_job_whose_lock_is_lost_is_stopped,
        a_job_ends_with_the_program,
        a_signal_ends_all_that_the_job_has_begun,
        without_masters_it_does_not_run,
        mistakes_are_reported,
    )
