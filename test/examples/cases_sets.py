"""Keys spread over several sets of masters, which come, go and fail."""

import contextlib
import hashlib
import itertools
import os

from program import Program, refuses
from stand import Masters, run, until

KEYS = [f"orders:{number}" for number in range(5000)] + [f"{number}/cart" for number in range(5000)]


def tag(key):
    return key.split("/")[0]


def chosen(names, key):
    """Chooses a set as the page says."""
    return max(names, key=lambda name: hashlib.blake2b(f"{name}\0{tag(key)}".encode()).digest())


def key_of(name, names, after=()):
    """Returns a key of that set: the first, or the first that is at `after[0]` of the sets `after`."""
    return next(
        key
        for key in (f"orders:{number}" for number in itertools.count())
        if chosen(names, key) == name and (not after or chosen(after[1], key) == after[0])
    )


def sets_of(masters, marks):
    """Returns the arguments for sets with one master each: "=a", "=b" and so on."""
    pairs = zip(marks, masters.uris)
    return [argument for pair in pairs for argument in pair]


def places(program):
    """Returns where the program has locked keys: {key: "a", or "a and b"}."""
    return dict(line.split(" at ") for line in program.printed().splitlines())


def placed(masters, *marks):
    program = Program("sets", *sets_of(masters, marks), "--", *KEYS)
    program.wait(0)
    return places(program)


def assert_spread(counts, share):
    """Asserts that a binomial distribution of all keys has such a count within 4 deviations."""
    bound = 4 * (len(KEYS) * share * (1 - share)) ** 0.5
    assert abs(counts - len(KEYS) * share) < bound, f"{counts} of {len(KEYS)}, not {share}"


def keys_are_spread_evenly_and_move_only_to_a_new_set():
    masters = Masters(5)
    names = ["a", "b", "c", "d", "e"]
    before = {}
    for count in (2, 3, 5):
        now = placed(masters, *("=" + name for name in names[:count]))
        assert now == {key: chosen(names[:count], key) for key in KEYS}
        for name in names[:count]:
            assert_spread(list(now.values()).count(name), 1 / count)
        new = names[len(set(before.values())) : count]
        if before:
            moved = [key for key in KEYS if now[key] != before[key]]
            assert all(now[key] in new for key in moved)
            assert_spread(len(moved), len(new) / count)
        before = now
    assert placed(masters, "=e", "=c", "=a", "=d", "=b") == before, "the order does not matter"


def a_key_that_moves_is_locked_at_both_sets():
    masters = Masters(3)
    before = placed(masters, "=a", "=b")
    after = placed(masters, "=a", "=b", "=c")
    joint = {
        key: before[key] if before[key] == after[key] else f"{before[key]} and {after[key]}"
        for key in KEYS
    }
    assert placed(masters, "=a", "=b", "+c") == joint
    back = {key: " and ".join(reversed(joint[key].split(" and "))) for key in KEYS}
    assert placed(masters, "=a", "=b", "-c") == back


def processes_one_step_apart_exclude_each_other():
    """A foreign client has the key by one list; programs know both lists, or the other one only."""
    a, b = Masters(), Masters()
    key = key_of("a", ["a"], after=("b", ["a", "b"]))
    for holders, others in ((a, b), (b, a)):
        for index in range(3):
            holders.ask(index, "SET", key, "theirs", "PX", "600000")
        Program("sets", "=one", *others.uris, "--", key).wait(0)  # two steps apart: not excluded
        joint = Program("sets", "=a", *a.uris, "+b", *b.uris, "--", key)
        until(lambda: holders.has(key + "::queue") > 0, "it has asked, and waits")
        assert joint.printed() == ""
        holders.delete(key)
        joint.wait(0)
        assert places(joint) == {key: "a and b"}


def keys_with_one_tag_are_one_lock():
    masters = Masters(2)
    keys = ["cart:7/items", "cart:7/total", "cart:7", "cart:8/items", "cart:8/total"]
    program = Program("sets", *sets_of(masters, ["=a", "=b"]), "--", *keys)
    program.wait(0)
    both = ["a", "b"]
    assert places(program) == {key: chosen(both, key) for key in (keys[0], keys[3])}

    masters.ask(both.index(chosen(both, keys[1])), "SET", keys[1], "theirs", "PX", "600000")
    program = Program("sets", *sets_of(masters, ["=a", "=b"]), "--", *keys[:2])
    until(lambda: masters.has(keys[1] + "::queue"), "it waits for the second key")
    assert masters.has(keys[0]) == 0 and program.printed() == ""
    masters.delete(keys[1])
    program.wait(0)


def a_lost_lock_is_reported():
    """The program's work takes as long as a pipe is full."""
    a, b = Masters(), Masters()
    key = key_of("b", "ab")
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    program = Program("sets", "=a", *a.uris, "=b", *b.uris, "--", key, stdout=writer)
    os.close(writer)
    until(lambda: b.has(key) == 3, "it works")
    b.delete(key)
    with open(reader, encoding="ascii") as pipe:
        assert pipe.read().lstrip("x") == f"{key} at b\n"
    program.wait(1)
    assert program.said().startswith(f"{key}: lost"), program.said()


def a_master_of_one_set_fails():
    a, b = Masters(), Masters()
    program = Program("sets", "=a", *a.uris, "=b", *b.uris, "--", *KEYS)
    until(program.printed, "locks are granted")
    a.order("kill", 1)
    program.wait(0)
    program = Program("sets", "=a", *a.uris, "=b", *b.uris, "--", *KEYS)
    program.wait(0)
    assert places(program) == {key: chosen(["a", "b"], key) for key in KEYS}


def a_set_that_is_down_concerns_only_its_own_keys():
    a, b = Masters(), Masters()
    b.order_all("kill")
    keys = KEYS[:100]
    program = Program("sets", "=a", *a.uris, "=b", *b.uris, "--", *keys)
    until(lambda: len(places(program)) == len([k for k in keys if chosen("ab", k) == "a"]), "a works")
    assert program.is_running()  # and waits for b
    b.order_all("restart")
    program.wait(0)
    assert places(program) == {key: chosen("ab", key) for key in keys}


def a_set_that_stays_down_is_reported():
    a, b = Masters(), Masters()
    b.order_all("kill")
    key = key_of("b", "ab")
    program = Program("sets", "=a", *a.uris, "=b", *b.uris, "--", key, key_of("a", "ab"))
    program.wait(1)
    assert list(places(program).values()) == ["a"]
    assert key in program.said() and "nodes" in program.said(), program.said()


def mistakes_are_reported():
    node = "redis://127.0.0.1:1"
    refuses("sets", word="usage")
    refuses("sets", "=a", node, word="usage")
    refuses("sets", "--", "orders:1", word="usage")
    refuses("sets", *(f"={name}" for name in "abcdefghi"), "--", "orders:1", word="usage")
    refuses("sets", "=a", "--", "orders:1", word="node_count")
    refuses("sets", "=a", "localhost", "--", "orders:1", word="nodes[0]")
    refuses("sets", "=a", node, "--", "bad::fence", word="::fence")
    refuses("sets", "-a", node, "+b", "localhost", "--", "orders:1", word="nodes[0]")


if __name__ == "__main__":
    run(
        keys_are_spread_evenly_and_move_only_to_a_new_set,
        a_key_that_moves_is_locked_at_both_sets,
        processes_one_step_apart_exclude_each_other,
        keys_with_one_tag_are_one_lock,
        a_lost_lock_is_reported,
        a_master_of_one_set_fails,
        a_set_that_is_down_concerns_only_its_own_keys,
        a_set_that_stays_down_is_reported,
        mistakes_are_reported,
    )
