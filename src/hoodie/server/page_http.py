"""Pages, figures and readiness over HTTP, and how a browser shows that its reader knows the token.

1. A browser cannot send a token in a header by itself. `?token=...` is taken once: it is compared, answered with a
   cookie and a redirect to the same address without it, so that it stays in no address, no link and no log.
2. The cookie holds no token but a time and a signature made with it: it ends after `COOKIE_S` seconds, and with the
   token. No script can read it, no page of another site makes the browser send it, and only pages take it: what
   clients ask, and figures, need the token itself.
3. Pages may load and run nothing but what is in them (`content_policy`), stand in no frame, and are stored nowhere.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from hoodie.env import Env
from hoodie.present.page.document import content_policy
from hoodie.present.page.messages import message_page, token_page
from hoodie.present.page.parts import Place
from hoodie.server.metrics import CONTENT_TYPE, Metrics
from hoodie.server.packing import pack
from hoodie.server.pages import HOME, PARTITION, TABLE, Pages
from hoodie.server.places import Lane
from hoodie.server.readiness import Readiness
from hoodie.server.turns import Turns

log = logging.getLogger(__name__)

COOKIE_S = 12 * 3600
READY_S = 5.0

_TOKEN = "token"


def page_routes(pages: Pages, turns: Turns, token: str | None, tells_token: Callable[[Headers], bool]) -> list[Route]:
    """Routes of the pages. `token`: the one that readers must know; `tells_token`: whether a request has it in its
    header.
    """

    async def page(request: Request) -> Response:
        said = dict(request.query_params)
        told = said.pop(_TOKEN, None)
        if told is not None:
            return _entered(Place(request.url.path, said), told, token, pages.env)
        if token is not None and not (tells_token(request.headers) or _has_cookie(request, token, pages.env)):
            return _html(token_page(request.url.path), 401)
        place, path, accepted = said.get("basepath", ""), request.url.path, request.headers.get("accept-encoding", "")

        def answer_packed() -> Response:
            found = pages.answer(path, said)
            return pack(_html(found.body, found.status), accepted)

        try:
            return await turns.run(Lane(place, "pages"), answer_packed)
        except TimeoutError:
            log.warning("no page about %s in time", place)
            return _html(message_page("No answer", "The table does not answer in time."), 503)

    return [Route(path, page) for path in (HOME, TABLE, PARTITION)]


def figure_routes(
    metrics: Metrics, readiness: Readiness, turns: Turns, tells_token: Callable[[Headers], bool]
) -> list[Route]:
    """Routes of the figures, which need the token, and of readiness, which anybody may ask."""

    async def figures(request: Request) -> Response:
        if not tells_token(request.headers):
            return PlainTextResponse("A token is needed", 401, {"WWW-Authenticate": "Bearer"})
        accepted = request.headers.get("accept-encoding", "")
        # Stores may be on a disk.
        return await asyncio.to_thread(lambda: pack(Response(metrics.text(), media_type=CONTENT_TYPE), accepted))

    async def health(_: Request) -> Response:
        try:
            said = await asyncio.wait_for(turns.run(Lane("readiness", "readiness"), readiness.said), READY_S)
        except TimeoutError:
            said = {"status": "unready", "reason": f"the roots do not answer within {READY_S:.0f} s"}
        return JSONResponse(said, 200 if said["status"] == "ready" else 503, {"Cache-Control": "no-store"})

    return [Route("/metrics", figures), Route("/health", health)]


def _entered(place: Place, told: str, token: str | None, env: Env) -> Response:
    """The same address without the token, with a cookie where it was right."""
    if token is not None and not hmac.compare_digest(told.encode(), token.encode()):
        return _html(token_page(place.path), 401)
    answer = RedirectResponse(place.address().removesuffix("?"), 303, _HEADERS)
    if token is not None:
        value = _signed(token, _now_s(env) + COOKIE_S)
        answer.set_cookie(_cookie_name(token), value, max_age=COOKIE_S, path="/", httponly=True, samesite="strict")
    return answer


def _has_cookie(request: Request, token: str, env: Env) -> bool:
    value = request.cookies.get(_cookie_name(token), "")
    until = value.partition(".")[0]
    if not (until.isascii() and until.isdigit() and len(until) < 16) or int(until) < _now_s(env):
        return False
    return hmac.compare_digest(value.encode(), _signed(token, int(until)).encode())


def _signed(token: str, until: int) -> str:
    signature = hmac.new(token.encode(), f"pages until {until}".encode(), hashlib.sha256).hexdigest()
    return f"{until}.{signature}"


def _now_s(env: Env) -> int:
    return int(env.now().timestamp())


def _cookie_name(token: str) -> str:
    """Browsers share cookies between the ports of a host: each service has its own."""
    return f"hoodie-{hmac.new(token.encode(), b'name of the cookie', hashlib.sha256).hexdigest()[:8]}"


def _html(page: str | bytes, status: int) -> Response:
    return HTMLResponse(page, status, _HEADERS)


_HEADERS = {
    "Content-Security-Policy": f"{content_policy()}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
