"""The binding for Python, examples/python/redlock.py, on real masters."""

import asyncio
import contextlib
import copy
import gc
import io
import os
import random
import re
import signal
import threading
import warnings

import redlock
from stand import Masters, run, until


def has_waiter(masters, key):
    """Returns whether a client waits in the queue of a key."""
    return b":1\r\n" in masters.ask(0, "EXISTS", key + "::queue")


def client_of(masters, **settings):
    return redlock.Client(masters.uris, guards="off", **settings)


def raises(kind, call, *arguments, **named):
    """Returns the text of the exception that the call must raise."""
    try:
        call(*arguments, **named)
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


# ---------------------------------------------------------------------------------------- threads


def a_lock_is_held_until_its_block_ends():
    masters = Masters()
    with client_of(masters) as client:
        lock = client.lock("k")
        assert not lock.is_held
        with lock as same:
            assert same is lock and lock.is_held and 0 < lock.validity_ms <= 10000
            until(lambda: masters.has("k") == 3, "all masters have the key")
            lock.extend(20000)
            assert lock.validity_ms > 10000
        assert not lock.is_held
        until(lambda: masters.has("k") == 0, "the key is free")
        with lock:  # once more
            pass


def threads_take_turns():
    masters = Masters()
    count = 0

    def work(client):
        nonlocal count
        for _ in range(25):
            with client.lock("k", wait_ms=redlock.FOREVER, fenced=True) as lock:
                seen = count
                fences.append(lock.fence)
                count = seen + 1

    fences = []
    with client_of(masters) as client:
        threads = [threading.Thread(target=work, args=[client]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert count == 200
    assert fences == sorted(set(fences)) and len(fences) == 200


def a_failure_is_an_exception_of_its_status():
    masters = Masters()
    with client_of(masters) as client, client.lock("k"):
        text = raises(redlock.Held, client.lock("k").acquire)
        assert "held by another" in text, text
        lock = client.lock("k")
        raises(redlock.Invalid, lock.release)
        raises(redlock.Invalid, lock.extend)
        raises(redlock.Error, client.lock("k", wait_ms=1).acquire)


def bad_settings_are_named():
    masters = Masters()
    with client_of(masters) as client:
        for settings, word in [
            ({"ttl": 1}, "ttl: "),
            ({"ttl_ms": "soon"}, "ttl_ms: "),
            ({"ttl_ms": 1 << 40}, "ttl_ms: "),
            ({"mode": "shared"}, "mode: "),
            ({"keys": ["a"]}, "key"),
            ({"keys": {"a"}}, "keys: "),
            ({"owner": bytearray(b"a")}, "owner: "),
            ({"on_lost": 5}, "on_lost: "),
        ]:
            text = raises(redlock.Invalid, lambda: client.lock("k", **settings).acquire())
            assert word in text, text
        for key in ["a", "b"], ("a",), 0.5j, object():
            text = raises(redlock.Invalid, client.lock(key).acquire)
            assert text.startswith("key: "), text
        with client.lock("k", ttl_ms=5000.0, wait_ms=None) as lock:
            for ttl_ms in "5", 5.5, -1, 1 << 64:
                assert "ttl_ms" in raises(redlock.Invalid, lock.extend, ttl_ms)
    text = raises(redlock.Invalid, redlock.Client, ["http://x"])
    assert "nodes[0]" in text, text
    for settings, word in [({"name": "a\0b"}, "NUL"), ({"log": 5}, "log: ")]:
        text = raises(redlock.Invalid, redlock.Client, masters.uris, **settings)
        assert word in text, text
    text = raises(redlock.Invalid, redlock.Client, masters.uris[0])
    assert text.startswith("nodes: ") and text.endswith(" is not a list"), text
    text = raises(redlock.Invalid, redlock.Client, masters.uris, drift=0.75)
    assert "drift" in text, text


def a_lock_of_several_keys_has_all_of_them():
    masters = Masters()
    with client_of(masters) as client, client.lock(keys=[b"a\0", "b"]):
        raises(redlock.Held, client.lock(b"a\0").acquire)
        raises(redlock.Held, client.lock("b").acquire)


def a_loss_is_reported_and_raised():
    masters = Masters()
    losses = []
    settings = {"watchdog": True, "watch_key": True, "on_lost": lambda *loss: losses.append(loss)}
    with client_of(masters) as client:
        lock = client.lock("k", **settings)
        lock.acquire()
        masters.delete("k")
        until(lambda: losses, "the loss is reported")
        assert losses[0][0] is lock and isinstance(losses[0][1], redlock.Lost)
        assert not lock.is_held
        raises(redlock.Lost, lock.release)
        assert len(losses) == 1
        try:
            with lock:
                masters.order_all("kill")
                raise KeyError("of the block")
        except KeyError:
            pass  # rather than the failure of the release


def a_callback_does_not_wait_for_its_client():
    masters = Masters()
    texts = []

    def on_lost(lock, _error):
        for call in lock.release, lock.extend, client.close, client.lock("j").acquire:
            texts.append(raises(redlock.Invalid, call))

    with client_of(masters) as client:
        lock = client.lock("k", watchdog=True, watch_key=True, on_lost=on_lost)
        lock.acquire()
        masters.delete("k")
        until(lambda: len(texts) == 4, "the loss is reported")
        assert all("callback" in text for text in texts), texts
        raises(redlock.Lost, lock.release)


def threads_of_the_library():
    names = []
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/comm") as name:
            names.append(name.read().strip())
    return names.count("redlock")


def a_client_may_be_dropped_in_its_callback():
    masters = Masters()
    there = {}

    def on_lost(_lock, _error):
        there.clear()

    before = threads_of_the_library()
    there["client"] = client_of(masters)
    there["lock"] = there["client"].lock("k", watchdog=True, watch_key=True, on_lost=on_lost)
    there["lock"].acquire()
    masters.delete("k")
    until(lambda: not there, "the loss is reported")
    until(lambda: threads_of_the_library() == before, "the thread of the library ends")


def a_lock_that_is_forgotten_is_released():
    masters = Masters()
    with client_of(masters) as client:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            client.lock("k", on_lost=print).acquire()
            gc.collect()
        assert [warning.category for warning in caught] == [ResourceWarning]
        until(lambda: masters.has("k") == 0, "the key is free")


def a_lock_may_be_read_while_it_is_released():
    masters = Masters()
    there = {"lock": None}
    seen = []

    def read():
        while there["lock"] is not False:
            lock = there["lock"]
            if lock:
                seen.append(lock.is_held and lock.fence > 0)
                with contextlib.suppress(redlock.Error):
                    lock.extend()

    with client_of(masters, node_timeout_ms=8000) as client:
        reader = threading.Thread(target=read)
        reader.start()
        for cycles in range(30):
            with client.lock("k", wait_ms=redlock.FOREVER, fenced=True) as there["lock"]:
                until(lambda count=cycles: sum(seen) > count, "the lock is seen held")
        there["lock"] = False
        reader.join()


def a_lock_serves_one_thread_at_a_time():
    masters = Masters()
    with client_of(masters) as holder, holder.lock("k"), client_of(masters) as client:
        lock = client.lock("k", wait_ms=redlock.FOREVER)
        failures = []

        def wait():
            try:
                lock.acquire()
            except redlock.Closed as failure:
                failures.append(failure)

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: has_waiter(masters, "k"), "the lock is waited for")
        raises(redlock.Invalid, lock.acquire)
        raises(redlock.Invalid, lock.release)
        raises(TypeError, copy.copy, lock)
        client.close()
        thread.join()
        assert failures
        raises(redlock.Closed, lock.acquire)  # it is free again


def ctrl_c_at_any_instant_leaves_no_lock():
    masters = Masters()
    interrupted = 0
    is_due = False

    def interrupt(_number, _frame):
        nonlocal is_due
        if is_due:
            is_due = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    with client_of(masters) as client:
        for _ in range(100):
            lock = client.lock("k", wait_ms=redlock.FOREVER, watchdog=True)
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 2e-3))
            try:
                is_due = True
                with lock:
                    pass
                is_due = False
            except KeyboardInterrupt:
                interrupted += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lock = None
        assert interrupted > 0
        with client.lock("k", wait_ms=redlock.FOREVER):
            pass
    assert masters.has("k") == 0


def ctrl_c_ends_a_wait():
    masters = Masters()
    with client_of(masters) as client, client.lock("k"), client_of(masters) as other:

        def interrupt():
            until(lambda: has_waiter(masters, "k"), "the lock is waited for")
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        raises(KeyboardInterrupt, other.lock("k", wait_ms=redlock.FOREVER).acquire)
        thread.join()
        until(lambda: not has_waiter(masters, "k"), "the queue is empty")


def a_close_ends_the_waits_of_other_threads():
    masters = Masters()
    failures = []

    def work(client):
        try:
            client.lock("k", wait_ms=redlock.FOREVER).acquire()
        except redlock.Closed as failure:
            failures.append(failure)

    with client_of(masters) as holder, holder.lock("k"):
        client = client_of(masters)
        threads = [threading.Thread(target=work, args=[client]) for _ in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: has_waiter(masters, "k"), "the lock is waited for")
        client.close()
        for thread in threads:
            thread.join()
        client.close()
        raises(redlock.Closed, client.lock("k").acquire)
    assert len(failures) == 4


def a_child_of_fork_is_refused():
    masters = Masters()
    with client_of(masters) as client, client.lock("k") as lock:
        child = os.fork()
        if child == 0:
            text = raises(redlock.Invalid, client.lock("j").acquire)
            text += raises(redlock.Invalid, client.close)
            os._exit(0 if text.count("fork") == 2 and not lock.is_held else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert lock.is_held


def the_log_is_a_call():
    masters = Masters()
    lines = []
    with client_of(masters, log=lines.append, log_level="debug") as client, client.lock("k"):
        pass
    assert any("acquired" in line for line in lines), lines


# ---------------------------------------------------------------------------------------- asyncio


def tasks_take_turns():
    masters = Masters()
    count = 0

    async def work(client):
        nonlocal count
        for _ in range(25):
            async with client.lock("k", wait_ms=redlock.FOREVER, fenced=True) as lock:
                seen = count
                assert lock.is_held and lock.fence > 0
                await asyncio.sleep(0)
                count = seen + 1

    async def main():
        async with redlock.AsyncClient(masters.uris, guards="off") as client:
            await asyncio.gather(*[work(client) for _ in range(8)])

    asyncio.run(main())
    assert count == 200


def a_task_that_is_cancelled_waits_no_longer():
    masters = Masters()

    async def main():
        async with redlock.AsyncClient(masters.uris, guards="off") as client:
            async with client.lock("k"):
                task = asyncio.ensure_future(client.lock("k", wait_ms=redlock.FOREVER).acquire())
                while not has_waiter(masters, "k"):
                    await asyncio.sleep(0.005)
                task.cancel()
                try:
                    await task
                    raise AssertionError("it was acquired")
                except asyncio.CancelledError:
                    pass
            async with client.lock("k", wait_ms=redlock.FOREVER) as lock:  # no other task has it
                await lock.extend(20000)
                assert lock.validity_ms > 10000

    asyncio.run(main())
    assert masters.has("k") == 0


def tasks_that_are_cancelled_at_any_instant_leave_no_lock():
    masters = Masters()

    async def main():
        async with redlock.AsyncClient(masters.uris, guards="off") as client:
            for turns in range(200):
                lock = client.lock("k", wait_ms=redlock.FOREVER)
                task = asyncio.ensure_future(lock.acquire())
                for _ in range(turns % 20):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    await lock.release()

    asyncio.run(main())
    assert masters.has("k") == 0


def a_loss_is_reported_to_a_task():
    masters = Masters()

    async def main():
        lost = asyncio.get_running_loop().create_future()
        settings = {"watchdog": True, "watch_key": True}
        async with redlock.AsyncClient(masters.uris, guards="off") as client:
            try:
                async with client.lock(
                    "k", on_lost=lambda lock, error: lost.set_result(error), **settings
                ) as lock:
                    masters.delete("k")
                    assert isinstance(await lost, redlock.Lost)
                    assert not lock.is_held
                raise AssertionError("Lost was not raised")
            except redlock.Lost:
                pass

    asyncio.run(main())


def a_close_ends_the_waits_of_tasks():
    masters = Masters()

    async def main():
        holder = redlock.AsyncClient(masters.uris, guards="off")
        client = redlock.AsyncClient(masters.uris, guards="off")
        lock = holder.lock("k")
        await lock.acquire()
        tasks = [
            asyncio.ensure_future(client.lock("k", wait_ms=redlock.FOREVER).acquire()) for _ in range(4)
        ]
        while not has_waiter(masters, "k"):
            await asyncio.sleep(0.005)
        await asyncio.gather(client.close(), client.close())
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(result, redlock.Closed), result
        try:
            await client.lock("k").acquire()
            raise AssertionError("it was acquired")
        except redlock.Closed:
            pass
        await holder.close()

    asyncio.run(main())
    assert masters.has("k") == 0


def a_closed_client_has_no_locks():
    masters = Masters()

    async def main():
        client = redlock.AsyncClient(masters.uris, guards="off", close_timeout_ms=50)
        lock = client.lock("k", fenced=True)
        await lock.acquire()
        masters.order_all("stop")
        looks = []

        def look():
            looks.append((client._is_closed, lock.is_held))
            if not closing.done():
                asyncio.get_running_loop().call_soon(look)

        closing = asyncio.ensure_future(client.close())
        look()
        await closing
        assert (True, True) not in looks
        for call in lock.release(), client.lock("k").acquire():
            try:
                await call
                raise AssertionError("it was not refused")
            except redlock.Closed:
                pass
        masters.order_all("continue")

    asyncio.run(main())


def a_task_may_forget_its_client():
    masters = Masters()
    lines = []

    async def main():
        redlock.AsyncClient(masters.uris, guards="off", log=lines.append, log_level="debug")
        client = redlock.AsyncClient(masters.uris, guards="off")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await client.lock("k").acquire()
            gc.collect()
        while masters.has("k") > 0:
            await asyncio.sleep(0.005)
        while not any("connected" in line for line in lines):
            await asyncio.sleep(0.005)
        await client.close()

    asyncio.run(main())


def a_refusal_leaves_no_descriptor():
    masters = Masters()

    async def main():
        for settings in {"drift": 0.75}, {"name": 1j}, {"colour": 1}:
            before = len(os.listdir("/proc/self/fd"))
            raises(redlock.Invalid, redlock.AsyncClient, masters.uris, **settings)
            assert len(os.listdir("/proc/self/fd")) == before

    asyncio.run(main())


def a_child_cannot_close_the_client_of_tasks():
    masters = Masters()

    async def main():
        async with redlock.AsyncClient(masters.uris, guards="off") as client:
            child = os.fork()
            if child == 0:
                try:
                    client.close().send(None)
                except redlock.Invalid as failure:
                    os._exit(0 if "fork" in str(failure) else 1)
                os._exit(1)
            assert os.waitpid(child, 0)[1] == 0

    asyncio.run(main())


# ------------------------------------------------------------------------------------------- page


def the_programs_of_the_page_run():
    masters = Masters()
    with open(os.path.join(os.environ["SOURCES"], "lib/doc/bindings.md"), encoding="utf-8") as page:
        programs = re.findall(r"```python\n(.*?)```", page.read(), re.S)
    assert len(programs) == 2
    for program in programs:
        for index, uri in enumerate(masters.uris):
            program = program.replace(f"redis://10.0.0.{index + 1}", uri)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(program, "bindings.md", "exec"), {"__name__": "__main__"})
        assert output.getvalue().startswith("acquired"), output.getvalue()


run(
    a_lock_is_held_until_its_block_ends,
    threads_take_turns,
    a_failure_is_an_exception_of_its_status,
    bad_settings_are_named,
    a_lock_of_several_keys_has_all_of_them,
    a_loss_is_reported_and_raised,
    a_callback_does_not_wait_for_its_client,
    a_client_may_be_dropped_in_its_callback,
    a_lock_that_is_forgotten_is_released,
    a_lock_may_be_read_while_it_is_released,
    a_lock_serves_one_thread_at_a_time,
    ctrl_c_ends_a_wait,
    ctrl_c_at_any_instant_leaves_no_lock,
    a_close_ends_the_waits_of_other_threads,
    a_child_of_fork_is_refused,
    the_log_is_a_call,
    tasks_take_turns,
    a_task_that_is_cancelled_waits_no_longer,
    tasks_that_are_cancelled_at_any_instant_leave_no_lock,
    a_loss_is_reported_to_a_task,
    a_close_ends_the_waits_of_tasks,
    a_closed_client_has_no_locks,
    a_task_may_forget_its_client,
    a_refusal_leaves_no_descriptor,
    a_child_cannot_close_the_client_of_tasks,
    the_programs_of_the_page_run,
)
