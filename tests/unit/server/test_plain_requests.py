"""Requests that are answered before the HTTP library: which they are is decided at once, whatever was sent."""

from __future__ import annotations

import time

import pytest

from hoodie.server.plain_requests import plain_request

PLAIN = b"Host: here\r\nAccept:  text/plain \r\n"


@pytest.mark.parametrize("strange", [b"X-B3-TraceId: 1\r\n", b"A: \t\r\n", b"A: \xc3\xa9\r\n", b"no colon\r\n", b""])
def test_many_headers_before_a_strange_one_take_no_time(strange: bytes) -> None:
    many = b"".join(b"X-%s:  plain value \r\n" % (b"a" * number) for number in range(1, 200))
    began = time.perf_counter()
    assert plain_request(b"GET /v1 HTTP/1.1\r\n" + many + strange + b"\r\n") is None
    assert time.perf_counter() - began < 1


def test_blanks_around_a_value_are_no_part_of_it() -> None:
    found = plain_request(b"GET /v1?a=b HTTP/1.1\r\n" + PLAIN + b"\r\n")
    assert found is not None
    assert (found.method, found.target, found.headers["accept"]) == ("GET", b"/v1?a=b", "text/plain")
