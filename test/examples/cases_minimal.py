"""The minimum that a careful program does."""

from program import Program, refuses
from stand import Masters, run, until


def it_acquires_and_releases():
    masters = Masters()
    program = Program("minimal", "k", masters=masters)
    program.wait(0)
    assert program.printed() == "acquired\nreleased\n", program.printed()
    until(lambda: masters.has("k") == 0, "the key is free")


def a_minority_that_is_dead_or_hangs_is_no_matter():
    masters = Masters(5)
    masters.order("kill", 0)
    masters.order("stop", 1)
    Program("minimal", "k", masters=masters).wait(0)
    masters.order("continue", 1)


def it_waits_for_masters_that_come():
    masters = Masters()
    masters.order_all("kill")
    program = Program("minimal", "k", masters=masters)
    masters.order_all("restart")
    program.wait(0)


def mistakes_are_reported():
    refuses("minimal", word="usage")
    refuses("minimal", "k", word="usage")
    refuses("minimal", "k", "http://localhost", word="nodes[0]")
    refuses("minimal", "", "redis://127.0.0.1:1", word="key")
    refuses("minimal", "k::fence", "redis://127.0.0.1:1", word="key")


if __name__ == "__main__":
    run(
        it_acquires_and_releases,
        a_minority_that_is_dead_or_hangs_is_no_matter,
        it_waits_for_masters_that_come,
        mistakes_are_reported,
    )
