"""Distributed locks on independent Redis masters: libredlock for Python 3.7 and later, by ctypes.

Threads share a Client, and asyncio has an AsyncClient:

    nodes = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]

    with Client(nodes) as client:
        with client.lock("orders:42", wait_ms=35000, watchdog=True) as lock:
            ...

    async with AsyncClient(nodes) as client:
        async with client.lock("orders:42", wait_ms=35000, fenced=True) as lock:
            store(lock.fence)

Settings have the names, units and defaults of redlock_options (clients) and redlock_request (locks)
in redlock.h: `ttl_ms=5000`, `guards="lenient"`, `mode="reader"`, `keys=["a", "b"]` in place of a
key. All errors are of class Error; each status has a class of its own, such as Held.

The end of a `with` block releases the lock, and raises Lost if it was not held to the end, unless
the block has raised an exception itself. `on_lost` is called once, with the lock and an Error, when
a held lock is lost: of a Client on a thread of the library, which it must not keep waiting, so that
calls that wait raise Invalid there. Ctrl-C and asyncio.CancelledError end a wait; the lock is then
not held. A lock that nothing refers to any more is released, with a ResourceWarning.
"""

import asyncio
import contextlib
import ctypes
import itertools
import os
import threading
import warnings
import weakref

FOREVER = "forever"  # a value of wait_ms: no limit

_library = ctypes.CDLL(os.environ.get("REDLOCK_LIBRARY", "libredlock.so.0"))

_pointer = ctypes.c_void_p
_out = ctypes.POINTER(_pointer)
_text = ctypes.c_char_p
_size = ctypes.c_size_t
_number = ctypes.c_uint64
_status = ctypes.c_int


class _ErrorStruct(ctypes.Structure):
    _fields_ = [("status", _status), ("message", ctypes.c_char * 256)]


_error = ctypes.POINTER(_ErrorStruct)
_callback = ctypes.CFUNCTYPE(None, _pointer, _status, _pointer)  # redlock_cb
_mt_callback = ctypes.CFUNCTYPE(None, _pointer, _status, _text, _pointer)  # redlock_mt_cb
_closed = ctypes.CFUNCTYPE(None, _pointer)  # redlock_closed_cb
_log = ctypes.CFUNCTYPE(None, ctypes.c_int, _text, _pointer)  # redlock_log_cb


def _function(name, result, *arguments):
    function = getattr(_library, name)
    function.restype = result
    function.argtypes = arguments
    return function


_options_new = _function("redlock_options_new", _pointer)
_options_set = _function("redlock_options_set", _status, _pointer, _text, _text, _error)
_options_set_log = _function("redlock_options_set_log", None, _pointer, _log, _pointer)
_options_free = _function("redlock_options_free", None, _pointer)
_request_new = _function("redlock_request_new", _pointer)
_request_set = _function("redlock_request_set", _status, _pointer, _text, _text, _size, _error)
_request_set_on_lost = _function(
    "redlock_request_set_on_lost", None, _pointer, _callback, _pointer
)
_request_free = _function("redlock_request_free", None, _pointer)

_mt_create = _function("redlock_mt_create", _status, _pointer, _out, _error)
_mt_close = _function("redlock_mt_close", _status, _pointer, ctypes.POINTER(_number))
_mt_free = _function("redlock_mt_free", None, _pointer)
_mt_begin_acquire = _function(
    "redlock_mt_begin_acquire", _status, _pointer, _pointer, _mt_callback, _pointer, _out, _error
)
_mt_begin_release = _function(
    "redlock_mt_begin_release", _status, _pointer, _mt_callback, _pointer
)
_mt_begin_extend = _function(
    "redlock_mt_begin_extend", _status, _pointer, _number, _mt_callback, _pointer, _error
)
_mt_on_lost = _function("redlock_mt_on_lost", _status, _pointer, _mt_callback, _pointer)
_mt_validity_ms = _function("redlock_mt_validity_ms", _number, _pointer)
_mt_fence = _function("redlock_mt_fence", _number, _pointer)

_loop_pollable = _function("redlock_loop_pollable", _pointer)
_loop_fd = _function("redlock_loop_fd", ctypes.c_int, _pointer)
_loop_run = _function("redlock_loop_run", ctypes.c_int, _pointer, ctypes.c_int)
_loop_free = _function("redlock_loop_free", None, _pointer)
_client_create_on = _function(
    "redlock_client_create_on", _status, _pointer, _pointer, _out, _error
)
_client_close = _function("redlock_client_close", None, _pointer, _closed, _pointer)
_client_error = _function("redlock_client_error", _text, _pointer)
_acquire = _function("redlock_acquire", _status, _pointer, _pointer, _callback, _pointer, _out)
_extend = _function("redlock_extend", _status, _pointer, _number, _callback, _pointer)
_release = _function("redlock_release", _status, _pointer, _callback, _pointer)
_cancel = _function("redlock_cancel", _status, _pointer)
_validity_ms = _function("redlock_validity_ms", _number, _pointer)
_fence = _function("redlock_fence", _number, _pointer)
_explain = _function("redlock_explain", _text, _pointer)
_strerror = _function("redlock_strerror", _text, _status)


# ---------------------------------------------------------------------------------------- errors


class Error(Exception):
    """A refusal, a failure or a loss. Its text is one sentence."""


class Invalid(Error):
    """A setting or a call is not valid."""


class NoMemory(Error):
    """The library has no memory left."""


class Held(Error):
    """The key is held by another."""


class NoQuorum(Error):
    """Too few masters answered to decide."""


class Expired(Error):
    """The validity ended first."""


class Lost(Error):
    """A quorum of the masters no longer holds the lock for us."""


class Canceled(Error):
    """The request was canceled."""


class Closed(Error):
    """The client is closed."""


class Busy(Error):
    """Something that is under way has to end first."""


class System(Error):
    """The operating system or a library refused a service."""


class Access(Error):
    """Too many masters refuse the client's login, database or rights."""


_classes = [
    Invalid, NoMemory, Held, NoQuorum, Expired, Lost, Canceled, Closed, Busy, System, Access
]  # fmt: skip


_INVALID = -1


def _failure(status, text):
    """Returns the exception of a status, -1 and less; `text` is its sentence, or empty."""
    return _classes[-1 - status]((text or _strerror(status)).decode(errors="replace"))


def _check(status, error):
    if status != 0:
        raise _failure(status, error.message)


# -------------------------------------------------------------------------------------- settings


_LISTS = ("keys", "nodes")  # the settings that have several entries


def _bytes(name, value):
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, float):
        value = int(value) if value.is_integer() else format(value, ".15f")
    if isinstance(value, (int, str)):
        return str(value).encode(errors="surrogateescape")
    if isinstance(value, bytes):
        return value
    raise Invalid("%s: %r is neither a text nor a number" % (name, value))


def _settings(given):
    """Yields the name and the bytes of each entry. None is the default."""
    for name, value in given.items():
        is_list = name in _LISTS
        if is_list and not isinstance(value, (list, tuple)):
            raise Invalid("%s: %r is not a list" % (name, value))
        for entry in value if is_list else [value]:
            if entry is not None or is_list:
                yield name, _bytes(name, entry)


def _check_callable(name, value):
    if value is not None and not callable(value):
        raise Invalid("%s: %r cannot be called" % (name, value))


def _ttl(value):
    if not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise Invalid("ttl_ms: %r is not a number of milliseconds" % (value,))
    return value


@contextlib.contextmanager
def _struct(new, put, free, given):
    """Yields a struct of the library with these settings, for the time of a `with` block."""
    pointer, error = new(), _ErrorStruct()
    try:
        for name, data in _settings(given):
            _check(put(pointer, name, data, error), error)
        yield pointer
    finally:
        free(pointer)


def _put_option(pointer, name, data, error):
    if b"\0" in data:
        raise Invalid("%s: %r has a NUL byte" % (name, data))
    return _options_set(pointer, name.encode(), data, error)


def _put_term(pointer, name, data, error):
    return _request_set(pointer, name.encode(), data, len(data), error)


def _options(nodes, settings):
    return _struct(_options_new, _put_option, _options_free, dict(settings, nodes=nodes))


def _request(key, settings):
    given = settings if key is None else dict(settings, key=key)
    return _struct(_request_new, _put_term, _request_free, given)


# ----------------------------------------------------------------------------------------- calls

_ids = itertools.count(1)
_calls = {}  # number: _Call, of a request under way
# number: lock, of a lock whose loss is to be reported. The program alone keeps a lock.
_held = weakref.WeakValueDictionary()


_here = threading.local()  # is_callback: whether this is a thread of the library


def _check_may_wait():
    if getattr(_here, "is_callback", False):
        raise Invalid("a callback of a Client must not wait for the Client")


class _Call:
    """A request of a Client, and its end."""

    def __init__(self):
        self.number = next(_ids)
        self.under_way = threading.Lock()  # an Event that Ctrl-C interrupts may stay locked
        self.under_way.acquire()
        self.status = 0
        self.why = b""
        _calls[self.number] = self

    def wait(self):
        self.under_way.acquire()  # Ctrl-C interrupts it
        if self.status != 0:
            raise _failure(self.status, self.why)


@_mt_callback
def _on_mt_ended(_handle, status, why, number):
    _here.is_callback = True  # objects may be collected here, too: see Client.__del__
    call = _calls.pop(number)
    call.status, call.why = status, why
    call.under_way.release()


@_mt_callback
def _on_mt_lost(_handle, status, why, number):
    _here.is_callback = True
    _report_loss(number, status, why)


@_callback
def _on_lost(handle, status, number):
    _report_loss(number, status, _explain(handle))


def _report_loss(number, status, why):
    lock = _held.pop(number, None)
    if lock is not None:
        lock.on_lost(lock, _failure(status, why))


_NOT_HELD = "the lock is not held: it was not acquired, or is released"


class _Lock:
    """Locks of both kinds: the request, and what is read of a handle."""

    def __init__(self, client, key, on_lost, settings):
        self._handle = None
        self._is_in_use = False  # from the begin of acquire to that of release
        _check_callable("on_lost", on_lost)
        self.client = client
        self.on_lost = on_lost
        self._given = (key, settings)
        self._number = 0  # in _held
        self._reading = threading.Lock()  # a call with the handle begins; none may once it is taken

    @property
    def is_held(self):
        """Whether the lock is certain to be held at this moment."""
        return self.validity_ms > 0

    @property
    def validity_ms(self):
        """Time in ms for which the lock is certain to be held; 0: it is not."""
        return self._read(self._get_validity)

    @property
    def fence(self):
        """Fence of a fenced lock that is held; otherwise 0."""
        return self._read(self._get_fence)

    def _begin_use(self):
        with self._reading:
            if self._is_in_use:
                raise Invalid("the lock is acquired already, or another thread or task does that")
            self._is_in_use = True

    def __reduce__(self):
        raise TypeError("a lock cannot be copied")

    def _read(self, function):
        with self._reading:
            return function(self._handle) if self._handle is not None else 0

    def __del__(self):
        if self._handle is not None:
            warnings.warn("a lock was not released", ResourceWarning, source=self)
            self._abandon(self._handle)


# --------------------------------------------------------------------------------------- threads


class Lock(_Lock):
    """A lock of a Client: for one `with` block after the other. Any thread may read it."""

    _get_validity, _get_fence = _mt_validity_ms, _mt_fence

    def acquire(self):
        """Acquires the lock, and waits until that has ended."""
        _check_may_wait()
        self._begin_use()
        call, handle, error = _Call(), _pointer(), _ErrorStruct()
        try:
            with _request(*self._given) as request:
                status = _mt_begin_acquire(
                    self.client._mt, request, _on_mt_ended, call.number, handle, error
                )
            _check(status, error)
            call.wait()
            self._handle = handle
        except BaseException:
            self._handle, self._is_in_use = None, False
            if handle:
                _mt_begin_release(handle, _no_mt_callback, None)
            else:
                _calls.pop(call.number, None)
            raise
        if self.on_lost is not None:
            self._number = call.number
            _held[self._number] = self
            _mt_on_lost(handle, _on_mt_lost, self._number)

    def release(self):
        """Releases the lock. Raises Lost if it was not held to the end."""
        _check_may_wait()
        call = _Call()
        with self._reading:
            handle = self._handle
            status = _INVALID
            if handle is not None:
                # Ctrl-C cannot come between these two lines: Python looks for it after calls.
                self._handle, self._is_in_use = None, False
                status = _mt_begin_release(handle, _on_mt_ended, call.number)
                if status == _INVALID:  # a child of fork(): it is still ours
                    self._handle, self._is_in_use = handle, True
        if status != 0:
            del _calls[call.number]
        if status == _INVALID:
            raise Invalid(_NOT_HELD if handle is None else "the lock is that of a parent (fork)")
        _held.pop(self._number, None)
        if status != 0:
            raise _failure(status, b"")
        call.wait()

    def extend(self, ttl_ms=0):
        """Extends the lock: redlock_extend."""
        _check_may_wait()
        ttl, call, error = _ttl(ttl_ms), _Call(), _ErrorStruct()
        with self._reading:
            status = _INVALID
            if self._handle is not None:
                status = _mt_begin_extend(self._handle, ttl, _on_mt_ended, call.number, error)
        if status != 0:
            del _calls[call.number]
            raise _failure(status, error.message or b"the lock is not held")
        call.wait()

    def _abandon(self, handle):
        _mt_begin_release(handle, _no_mt_callback, None)

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, kind, _exception, _trace):
        try:
            self.release()
        except Error:
            if kind is None:
                raise


def _write_to(log):
    """Returns a redlock_log_cb of a Client, which runs on a thread of the library."""

    def write(_level, line, _arg):
        _here.is_callback = True
        log(line.decode(errors="replace"))

    return _log(write)


_no_mt_callback = ctypes.cast(None, _mt_callback)


class Client:
    """A client that all threads of a program share."""

    def __init__(self, nodes, *, log=None, **settings):
        """Connects to the masters. `log` is called with each line, on a thread of the library."""
        self._mt = None
        _check_callable("log", log)
        self._log = _write_to(log)
        error, mt = _ErrorStruct(), _pointer()
        with _options(nodes, settings) as options:
            if log is not None:
                _options_set_log(options, self._log, None)
            _check(_mt_create(options, mt, error), error)
        self._mt = mt

    def lock(self, key=None, *, on_lost=None, **settings):
        """Returns a Lock, which is not acquired yet."""
        return Lock(self, key, on_lost, settings)

    def close(self):
        """Ends all requests with Closed, releases all locks, and waits until that is done."""
        if _mt_close(self._mt, None) == _INVALID:
            raise Invalid("a client is closed neither in a callback of its own nor after fork()")

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()

    def __del__(self):  # not in close: other threads may be inside a call
        if self._mt is None:
            return
        if getattr(_here, "is_callback", False):  # it would wait for this thread
            threading.Thread(target=_free, args=(self._mt, self._log)).start()
        else:
            _mt_free(self._mt)


def _free(mt, _log_in_use):
    _mt_free(mt)


# --------------------------------------------------------------------------------------- asyncio

_futures = {}  # number: future, of a call under way
_clients = {}  # number: AsyncClient that is open: the library may call its log


@_callback
def _on_status(handle, status, number):
    future = _futures.pop(number)
    if not future.done():
        future.set_result((status, _explain(handle) if status != 0 else b""))


@_callback
def _on_acquired(handle, status, number):
    future = _futures.pop(number)
    if not future.done():
        future.set_result((status, _explain(handle) if status != 0 else b""))
    elif status == 0:  # the task was cancelled just before
        _release(handle, _no_callback, None)


@_closed
def _on_closed(number):
    client = _clients.pop(number)
    client._is_closed = True  # from here on the handles of its locks are no more
    if not client._closed.done():
        client._closed.set_result(None)


_no_callback = ctypes.cast(None, _callback)


class AsyncLock(_Lock):
    """A lock of an AsyncClient: for one `async with` block after the other."""

    _get_validity, _get_fence = _validity_ms, _fence

    async def acquire(self):
        """Acquires the lock."""
        self._begin_use()
        try:
            self._handle = await self._acquired()
        except BaseException:
            self._is_in_use = False
            raise

    async def _acquired(self):
        """Returns the handle of an acquisition, unless that fails."""
        client = self.client
        client._check_open()
        number, handle = next(_ids), _pointer()
        with _request(*self._given) as request:
            if self.on_lost is not None:
                _request_set_on_lost(request, _on_lost, number)
            future = client._begin(
                number, lambda: _acquire(client._client, request, _on_acquired, number, handle)
            )
        if self.on_lost is not None:
            self._number = number
            _held[number] = self
        try:
            status, why = await future
            if status != 0:
                raise _failure(status, why)
            return handle
        except BaseException:
            _held.pop(number, None)
            if number in _futures:
                _cancel(handle)
            elif not future.cancelled() and future.result()[0] == 0 and not client._is_closed:
                _release(handle, _no_callback, None)
            raise

    async def release(self):
        """Releases the lock. Raises Lost if it was not held to the end."""
        handle, client = self._handle, self.client
        if handle is None:
            raise Invalid(_NOT_HELD)
        self._handle, self._is_in_use = None, False
        _held.pop(self._number, None)
        client._check_open()
        await client._ask(lambda number: _release(handle, _on_status, number))

    async def extend(self, ttl_ms=0):
        """Extends the lock: redlock_extend."""
        ttl, handle, client = _ttl(ttl_ms), self._handle, self.client
        client._check_open()
        if handle is None:
            raise Invalid("the lock is not held")
        await client._ask(lambda number: _extend(handle, ttl, _on_status, number))

    def _read(self, function):
        return 0 if self.client._is_closed else super()._read(function)

    def _abandon(self, handle):
        loop = self.client._asyncio
        if not self.client._is_closed and not loop.is_closed():
            loop.call_soon_threadsafe(self.client._drop, handle)

    async def __aenter__(self):
        await self.acquire()
        return self

    async def __aexit__(self, kind, _exception, _trace):
        try:
            await self.release()
        except Error:
            if kind is None:
                raise


class AsyncClient:
    """A client on the running event loop of asyncio, without a thread."""

    def __init__(self, nodes, *, log=None, **settings):
        """Begins to connect to the masters. `log` is called with each line, on the loop."""
        self._is_closed = True
        _check_callable("log", log)
        self._asyncio = asyncio.get_running_loop()
        self._process = os.getpid()
        self._log = _log(lambda _level, line, _arg: log(line.decode(errors="replace")))
        error, client = _ErrorStruct(), _pointer()
        with _options(nodes, settings) as options:
            if log is not None:
                _options_set_log(options, self._log, None)
            self._loop = _loop_pollable()
            if self._loop is None:
                raise System("there is no event loop: too many files are open?")
            status = _client_create_on(self._loop, options, client, error)
        if status != 0:
            _loop_free(self._loop)
            _check(status, error)
        self._client = client
        self._is_closed = False
        self._closed = None  # future, once the client closes
        self._number = next(_ids)
        _clients[self._number] = self
        self._asyncio.add_reader(_loop_fd(self._loop), _loop_run, self._loop, 0)

    def lock(self, key=None, *, on_lost=None, **settings):
        """Returns an AsyncLock, which is not acquired yet."""
        return AsyncLock(self, key, on_lost, settings)

    async def close(self):
        """Ends all requests with Closed, releases all locks, and waits until that is done."""
        if os.getpid() != self._process:
            raise Invalid("the client is that of another process: this one is a child (fork)")
        if self._closed is None:
            self._closed = self._asyncio.create_future()
            self._closed.add_done_callback(self._end)
            _client_close(self._client, _on_closed, self._number)
        await asyncio.shield(self._closed)

    def _end(self, _future):
        self._asyncio.remove_reader(_loop_fd(self._loop))
        _loop_free(self._loop)

    def _drop(self, handle):
        if not self._is_closed:
            _release(handle, _no_callback, None)

    def _check_open(self):
        if self._is_closed:
            raise Closed("the client is closed")

    def _begin(self, number, call):
        """Makes a call that ends in a callback with `number`, and returns the future of its end."""
        future = _futures[number] = self._asyncio.create_future()
        status = call()
        if status != 0:
            del _futures[number]
            raise _failure(status, _client_error(self._client))
        return future

    async def _ask(self, call):
        """Makes a call, which gets the number of its callback, and waits until it has ended."""
        number = next(_ids)
        status, why = await self._begin(number, lambda: call(number))
        if status != 0:
            raise _failure(status, why)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_exception):
        await self.close()
