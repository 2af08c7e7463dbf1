"""A client for each thread."""

import tempfile

from program import Program, refuses
from stand import Masters, run, until


def keys(count):
    """Makes a file of jobs for 20 keys."""
    file = tempfile.TemporaryFile(mode="w+")
    file.writelines(f"key:{number % 20}\n" for number in range(count))
    file.seek(0)
    return file


def thousands_of_jobs_are_done():
    masters = Masters()
    program = Program("threads", masters=masters, stdin=keys(4000))
    program.wait(0)
    assert program.printed() == "4000 of 4000 jobs done\n", program.printed()
    until(lambda: not any(masters.has(f"key:{i}") for i in range(20)), "all keys are free")


def no_jobs_are_no_mistake():
    program = Program("threads", masters=Masters(1))
    program.wait(0)
    assert program.printed() == "0 of 0 jobs done\n"


def a_master_that_dies_fails_no_job():
    masters = Masters()
    program = Program("threads", masters=masters, stdin=keys(10000))
    until(lambda: any(masters.has(f"key:{i}") for i in range(20)), "jobs have begun")
    masters.order("kill", 0)
    program.wait(0)


def refused_jobs_are_counted():
    with tempfile.TemporaryFile(mode="w+") as file:
        file.write("good\nbad::fence\nbetter\n")
        file.seek(0)
        program = Program("threads", masters=Masters(1), stdin=file)
        program.wait(1)
    assert program.printed() == "2 of 3 jobs done\n", program.printed()
    assert "::fence" in program.said(), program.said()


def a_key_that_is_too_long_is_reported():
    with tempfile.TemporaryFile(mode="w+") as file:
        file.write("k" * 300)
        file.seek(0)
        program = Program("threads", masters=Masters(1), stdin=file)
        program.wait(2)
    assert "longer than 255" in program.said(), program.said()


def mistakes_are_reported():
    refuses("threads", word="node_count")
    refuses("threads", "localhost", word="nodes[0]")


if __name__ == "__main__":
    run(
        thousands_of_jobs_are_done,
        no_jobs_are_no_mistake,
        a_master_that_dies_fails_no_job,
        refused_jobs_are_counted,
        a_key_that_is_too_long_is_reported,
        mistakes_are_reported,
    )
