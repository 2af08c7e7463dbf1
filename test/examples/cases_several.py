"""Programs that move files between folders, in opposite directions."""

import os
import signal
import tempfile

from program import Program, refuses
from stand import Masters, adopt, run, until

FILES = 500


class Folders:
    """Two folders, one with files."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        adopt(self)
        self.a, self.b = (os.path.join(self.folder.name, name) for name in "ab")
        for path in (self.a, self.b):
            os.mkdir(path)
        for number in range(FILES):
            with open(os.path.join(self.a, str(number)), "w", encoding="ascii"):
                pass

    def counts(self):
        return len(os.listdir(self.a)), len(os.listdir(self.b))

    def end(self):
        self.folder.cleanup()


def all_files_are_moved():
    masters = Masters()
    folders = Folders()
    program = Program("several", folders.a, folders.b, masters=masters)
    program.wait(0)
    assert program.printed().endswith(f"moved {FILES} files\n"), program.printed()
    assert folders.counts() == (0, FILES)
    until(lambda: masters.has(folders.a) == 0 == masters.has(folders.b), "both keys are free")


def opposite_orders_neither_wait_for_ever_nor_see_half_of_the_files():
    masters = Masters()
    folders = Folders()
    ways = [(folders.a, folders.b), (folders.b, folders.a)]
    programs = [Program("several", *ways[i % 2], masters=masters) for i in range(10)]
    moves = 0
    for program in programs:
        program.wait(0)
        moved = int(program.printed().split()[-2])
        assert moved in (0, FILES), program.printed()
        moves += moved == FILES
    assert folders.counts() == ((0, FILES) if moves % 2 else (FILES, 0))


def the_run_after_a_kill_moves_the_rest():
    masters = Masters()
    folders = Folders()
    program = Program("several", folders.a, folders.b, masters=masters)
    until(lambda: folders.counts()[1] > 0, "it moves")
    program.signal(signal.SIGKILL)
    Program("several", folders.a, folders.b, masters=masters).wait(0)
    assert folders.counts() == (0, FILES)


def without_masters_nothing_is_moved():
    masters = Masters()
    folders = Folders()
    masters.order_all("kill")
    program = Program("several", folders.a, folders.b, masters=masters)
    program.signal(signal.SIGSTOP)
    assert folders.counts() == (FILES, 0)
    program.signal(signal.SIGCONT)
    masters.order_all("restart")
    program.wait(0)
    assert folders.counts() == (0, FILES)


def mistakes_are_reported():
    node = "redis://127.0.0.1:1"
    refuses("several", word="usage")
    refuses("several", "/tmp", "/nowhere", node, word="folder")
    refuses("several", "/tmp", "/tmp", node, word="keys")
    refuses("several", "/tmp", "/", "localhost", word="nodes[0]")


if __name__ == "__main__":
    run(
        all_files_are_moved,
        opposite_orders_neither_wait_for_ever_nor_see_half_of_the_files,
        the_run_after_a_kill_moves_the_rest,
        without_masters_nothing_is_moved,
        mistakes_are_reported,
    )
