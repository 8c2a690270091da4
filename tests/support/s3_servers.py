"""S3 servers on the loopback interface, in a thread of the tests' own process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any
from zlib import crc32

import quick

Application = Callable[[Any, Any], list[bytes]]
"""What WSGI calls."""


class OneAtATime:
    """A WSGI application whose requests take turns.

    moto looks for a key and then writes it, so two threads of its server can both create one (9 rounds of 200 with 32
    clients and a switch interval of 50 µs). S3 does it in one step, and so must what stands in for it.
    """

    def __init__(self, application: Any) -> None:
        self.application = application
        self.turn = threading.Lock()

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        with self.turn:
            return list(self.application(environ, start_response))


class IgnoresIfNoneMatch(OneAtATime):
    """An S3 server that never learns of the condition, as some that only resemble S3 do not."""

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        environ.pop("HTTP_IF_NONE_MATCH", None)
        return super().__call__(environ, start_response)


class Refuses(OneAtATime):
    """An S3 server that has no such rights for whoever asks; `methods` are those of HTTP."""

    def __init__(self, application: Any, methods: tuple[str, ...]) -> None:
        super().__init__(application)
        self.methods = methods

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        if environ["REQUEST_METHOD"] not in self.methods:
            return super().__call__(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>AccessDenied</Code><Message>not yours</Message></Error>"]


class ClockIsOff(OneAtATime):
    """An S3 server that refuses whoever's clock is too far from its own, as that of all who ask is."""

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        start_response("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>"]


class CredentialsExpired(OneAtATime):
    """An S3 server to which everybody comes with a session token that has expired; to HEAD it says so without a word, as S3."""

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        start_response("400 Bad Request", [("Content-Type", "application/xml")])
        told = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [told]


class WebSite(OneAtATime):
    """No S3 server: a site that has a page for whatever is asked."""

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/html")])
        return [b"<!doctype html><title>Welcome</title>"]


class SometimesBusy(OneAtATime):
    """An S3 server that refuses a third of all requests, in no order: one with a condition by 409, others by 429 or 503."""

    def __init__(self, application: Any) -> None:
        super().__init__(application)
        self.asked = count()

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        number = crc32(b"%d" % next(self.asked))
        if number % 3:
            return super().__call__(environ, start_response)
        status, code = [("429 Too Many Requests", "TooManyRequests"), ("503 Slow Down", "SlowDown")][number // 3 % 2]
        if "HTTP_IF_NONE_MATCH" in environ:
            status, code = "409 Conflict", "ConditionalRequestConflict"
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start_response(status, [("Content-Type", "application/xml")])
        return [f"<Error><Code>{code}</Code><Message>later</Message></Error>".encode()]


class Truncates(OneAtATime):
    """An S3 server whose connection breaks in the midst of an object, which it had said to be longer."""

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        body = super().__call__(environ, start_response)
        return [part[: len(part) // 2] for part in body] if environ["REQUEST_METHOD"] == "GET" else body


@cache
def _moto() -> Any:
    """moto without what takes two thirds of its time for a request: it lists its own modules, and helps who debugs it."""
    from moto.server import DomainDispatcherApplication, create_backend_app

    def application(service: Any) -> Any:
        made = create_backend_app(service)
        made.debug, made.config["PROPAGATE_EXCEPTIONS"] = False, True
        return made

    dispatcher = DomainDispatcherApplication(application)
    dispatcher.get_backend_for_host = cache(dispatcher.get_backend_for_host)
    return dispatcher


@contextmanager
def serving(turns: Callable[[Any], Application] = OneAtATime, port: int = 0) -> Iterator[str]:
    """The URL of moto's S3 server behind `turns`; all that run in one process show the same buckets."""
    quick.starts_a_server()
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Composes no line that nobody reads."""

    server = make_server("127.0.0.1", port, turns(_moto()), threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, name="s3-server")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
