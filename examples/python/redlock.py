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
a held lock is lost: of a Client on a thread of the library, which it must not keep waiting. Ctrl-C
and asyncio.CancelledError end a wait; the lock is then not held.
"""

import asyncio
import ctypes
import itertools
import os
import threading

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
_mt_release = _function("redlock_mt_release", _status, _pointer, _error)
_mt_extend = _function("redlock_mt_extend", _status, _pointer, _number, _error)
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


def _failure(status, text):
    """Returns the exception of a status, -1 and less; `text` is its sentence, or empty."""
    return _classes[-1 - status]((text or _strerror(status)).decode(errors="replace"))


def _check(status, error):
    if status != 0:
        raise _failure(status, error.message)


# -------------------------------------------------------------------------------------- settings


def _bytes(value):
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, float):
        return format(value, "f").encode()
    return value if isinstance(value, bytes) else str(value).encode()


def _entries(value):
    return value if isinstance(value, (list, tuple)) else [value]


class _Options:
    """redlock_options, for the time of a `with` block."""

    def __init__(self, nodes, settings):
        self.given = dict(settings, nodes=list(nodes))

    def __enter__(self):
        self.pointer = _options_new()
        error = _ErrorStruct()
        try:
            for name, value in self.given.items():
                for entry in _entries(value):
                    _check(_options_set(self.pointer, name.encode(), _bytes(entry), error), error)
        except BaseException:
            _options_free(self.pointer)
            raise
        return self.pointer

    def __exit__(self, *exception):
        _options_free(self.pointer)


class _Request:
    """redlock_request, likewise."""

    def __init__(self, key, settings):
        self.given = dict(settings) if key is None else dict(settings, key=key)

    def __enter__(self):
        self.pointer = _request_new()
        error = _ErrorStruct()
        try:
            for name, value in self.given.items():
                for entry in _entries(value):
                    data = _bytes(entry)
                    status = _request_set(self.pointer, name.encode(), data, len(data), error)
                    _check(status, error)
        except BaseException:
            _request_free(self.pointer)
            raise
        return self.pointer

    def __exit__(self, *exception):
        _request_free(self.pointer)


# ----------------------------------------------------------------------------------------- calls

_ids = itertools.count(1)
_calls = {}  # number: _Call, of a request under way
_held = {}  # number: lock, of a lock whose loss is to be reported


class _Call:
    """A request of a Client, and its end."""

    def __init__(self):
        self.ended = threading.Event()
        self.status = 0
        self.why = b""


@_mt_callback
def _on_mt_acquired(_handle, status, why, number):
    call = _calls.pop(number)
    call.status, call.why = status, why
    call.ended.set()


@_mt_callback
def _on_mt_lost(_handle, status, why, number):
    _report_loss(number, status, why)


@_callback
def _on_lost(handle, status, number):
    _report_loss(number, status, _explain(handle))


def _report_loss(number, status, why):
    lock = _held.pop(number, None)
    if lock is not None:
        lock.on_lost(lock, _failure(status, why))


class _Lock:
    """Locks of both kinds: the request, and what is read of a handle."""

    def __init__(self, client, key, on_lost, settings):
        self.client = client
        self.on_lost = on_lost
        self._given = (key, settings)
        self._handle = None
        self._number = 0  # in _held

    @property
    def is_held(self):
        """Whether the lock is certain to be held at this moment."""
        return self.validity_ms > 0

    def _take_handle(self):
        """Returns the handle, which belongs to the caller from now on."""
        handle, self._handle = self._handle, None
        _held.pop(self._number, None)
        if handle is None:
            raise Invalid("the lock is not held: it was not acquired, or is released")
        return handle

    def _be_free(self):
        if self._handle is not None:
            raise Invalid("the lock is acquired already")


# --------------------------------------------------------------------------------------- threads


class Lock(_Lock):
    """A lock of a Client: for one `with` block after the other. See Client.lock."""

    def acquire(self):
        """Acquires the lock, and waits until that has ended."""
        self._be_free()
        call, number = _Call(), next(_ids)
        handle, error = _pointer(), _ErrorStruct()
        with _Request(*self._given) as request:
            _calls[number] = call
            status = _mt_begin_acquire(
                self.client._mt, request, _on_mt_acquired, number, handle, error
            )
        if status != 0:
            del _calls[number]
            _check(status, error)
        try:
            call.ended.wait()  # Ctrl-C interrupts it
            _check_call(call)
        except BaseException:
            _mt_begin_release(handle, _no_mt_callback, None)
            raise
        self._handle = handle
        if self.on_lost is not None:
            self._number = number
            _held[number] = self
            _mt_on_lost(handle, _on_mt_lost, number)

    def release(self):
        """Releases the lock. Raises Lost if it was not held to the end."""
        error = _ErrorStruct()
        _check(_mt_release(self._take_handle(), error), error)

    def extend(self, ttl_ms=0):
        """Extends the lock: redlock_extend."""
        error = _ErrorStruct()
        if self._handle is None:
            raise Invalid("the lock is not held")
        _check(_mt_extend(self._handle, ttl_ms, error), error)

    @property
    def validity_ms(self):
        """Time in ms for which the lock is certain to be held; 0: it is not. From any thread."""
        handle = self._handle
        return _mt_validity_ms(handle) if handle is not None else 0

    @property
    def fence(self):
        """Fence of a fenced lock that is held; otherwise 0."""
        handle = self._handle
        return _mt_fence(handle) if handle is not None else 0

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, kind, _exception, _trace):
        try:
            self.release()
        except Error:
            if kind is None:
                raise


def _check_call(call):
    if call.status != 0:
        raise _failure(call.status, call.why)


_no_mt_callback = ctypes.cast(None, _mt_callback)


class Client:
    """A client that all threads of a program share."""

    def __init__(self, nodes, *, log=None, **settings):
        """Connects to the masters. `log` is called with each line, on a thread of the library."""
        self._mt = None
        self._log = _log(lambda _level, line, _arg: log(line.decode(errors="replace")))
        error, mt = _ErrorStruct(), _pointer()
        with _Options(nodes, settings) as options:
            if log is not None:
                _options_set_log(options, self._log, None)
            _check(_mt_create(options, mt, error), error)
        self._mt = mt

    def lock(self, key=None, *, on_lost=None, **settings):
        """Returns a Lock, which is not acquired yet."""
        return Lock(self, key, on_lost, settings)

    def close(self):
        """Ends all requests with Closed, releases all locks, and waits until that is done."""
        _mt_close(self._mt, None)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()

    def __del__(self):  # not in close: other threads may be inside a call
        if self._mt is not None:
            _mt_free(self._mt)


# --------------------------------------------------------------------------------------- asyncio

_futures = {}  # number: future, of a call under way


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
    future = _futures.pop(number)
    if not future.done():
        future.set_result(None)


_no_callback = ctypes.cast(None, _callback)


class AsyncLock(_Lock):
    """A lock of an AsyncClient: for one `async with` block after the other."""

    async def acquire(self):
        """Acquires the lock."""
        self._be_free()
        client = self.client
        client._check_open()
        number, handle = next(_ids), _pointer()
        with _Request(*self._given) as request:
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
        except BaseException:
            _held.pop(number, None)
            if number in _futures:
                _cancel(handle)
            elif not future.cancelled() and future.result()[0] == 0:
                _release(handle, _no_callback, None)
            raise
        self._handle = handle

    async def release(self):
        """Releases the lock. Raises Lost if it was not held to the end."""
        handle = self._take_handle()
        client = self.client
        client._check_open()
        number = next(_ids)
        future = client._begin(number, lambda: _release(handle, _on_status, number))
        status, why = await future
        if status != 0:
            raise _failure(status, why)

    async def extend(self, ttl_ms=0):
        """Extends the lock: redlock_extend."""
        handle, client = self._handle, self.client
        client._check_open()
        if handle is None:
            raise Invalid("the lock is not held")
        number = next(_ids)
        future = client._begin(number, lambda: _extend(handle, ttl_ms, _on_status, number))
        status, why = await future
        if status != 0:
            raise _failure(status, why)

    @property
    def validity_ms(self):
        """Time in ms for which the lock is certain to be held; 0: it is not."""
        is_there = self._handle is not None and not self.client._is_closed
        return _validity_ms(self._handle) if is_there else 0

    @property
    def fence(self):
        """Fence of a fenced lock that is held; otherwise 0."""
        is_there = self._handle is not None and not self.client._is_closed
        return _fence(self._handle) if is_there else 0

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
        self._asyncio = asyncio.get_running_loop()
        self._log = _log(lambda _level, line, _arg: log(line.decode(errors="replace")))
        self._loop = _loop_pollable()
        if self._loop is None:
            raise System("there is no event loop: too many files are open?")
        error, client = _ErrorStruct(), _pointer()
        with _Options(nodes, settings) as options:
            if log is not None:
                _options_set_log(options, self._log, None)
            status = _client_create_on(self._loop, options, client, error)
        if status != 0:
            _loop_free(self._loop)
            _check(status, error)
        self._client = client
        self._is_closed = False
        self._closed = None  # future, once the client closes
        self._asyncio.add_reader(_loop_fd(self._loop), _loop_run, self._loop, 0)

    def lock(self, key=None, *, on_lost=None, **settings):
        """Returns an AsyncLock, which is not acquired yet."""
        return AsyncLock(self, key, on_lost, settings)

    async def close(self):
        """Ends all requests with Closed, releases all locks, and waits until that is done."""
        if self._closed is None:
            number = next(_ids)
            self._closed = _futures[number] = self._asyncio.create_future()
            self._closed.add_done_callback(self._end)
            _client_close(self._client, _on_closed, number)
        await asyncio.shield(self._closed)

    def _end(self, _future):
        self._is_closed = True
        self._asyncio.remove_reader(_loop_fd(self._loop))
        _loop_free(self._loop)

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

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_exception):
        await self.close()
