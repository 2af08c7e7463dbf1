"""Thousands of jobs, each under a lock."""

import re

from program import Program, refuses
from stand import Masters, run, until

CUSTOMERS = 100


def result(program):
    """Returns the numbers of jobs: done, failed, and at most at once."""
    match = re.fullmatch(r"(\d+) done, (\d+) failed, at most (\d+) at once\n", program.printed())
    assert match, program.printed()
    return tuple(map(int, match.groups()))


def are_free(masters):
    return all(masters.has(f"customer:{number}") == 0 for number in range(CUSTOMERS))


def thousands_of_jobs_end_well():
    masters = Masters()
    program = Program("pool", "5000", masters=masters)
    program.wait(0)
    assert result(program) == (5000, 0, 200)
    until(lambda: are_free(masters), "all keys are free")


def two_pools_share_the_customers():
    masters = Masters()
    programs = [Program("pool", "2000", masters=masters) for _ in range(2)]
    for program in programs:
        program.wait(0)
        assert result(program) == (2000, 0, 200)
    until(lambda: are_free(masters), "all keys are free")


def fewer_jobs_than_workers():
    program = Program("pool", "3", masters=Masters())
    program.wait(0)
    assert result(program) == (3, 0, 3)


def a_master_that_dies_fails_no_job():
    masters = Masters()
    program = Program("pool", "20000", masters=masters)
    until(lambda: any(masters.has(f"customer:{i}") for i in range(3)), "jobs have begun")
    masters.order("kill", 0)
    assert program.is_running()
    masters.order("restart", 0)
    masters.order("stop", 1)
    masters.order("continue", 1)
    program.wait(0)
    assert result(program)[:2] == (20000, 0)


def each_job_is_counted_without_masters():
    masters = Masters()
    masters.order_all("kill")
    program = Program("pool", "100", masters=masters)
    program.wait(1)
    assert result(program) == (0, 100, 100), program.printed()


def mistakes_are_reported():
    refuses("pool", word="usage")
    refuses("pool", "10", word="usage")
    refuses("pool", "x", "redis://127.0.0.1:1", word="usage")
    refuses("pool", "10", "localhost", word="nodes[0]")


if __name__ == "__main__":
    run(
        thousands_of_jobs_end_well,
        two_pools_share_the_customers,
        fewer_jobs_than_workers,
        a_master_that_dies_fails_no_job,
        each_job_is_counted_without_masters,
        mistakes_are_reported,
    )
