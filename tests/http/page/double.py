"""A double of musterd's HTTP: it serves the page, /api/v1 and its stream, as a test says.

double.py STORY [--port PORT]   shows a story of `stories.py` to browsers, until it is ended
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

from world import Json, World, now_ms

PAGE = Path(__file__).resolve().parents[3] / "src/server/http/page.html"
LOGIN = ('<!doctype html><html lang="en"><title>musterd</title><h1>musterd</h1><form method="post" '
         'action="/login"><label>Token <input name="token" type="password"></label>'
         "<button>Log in</button></form></html>")


def hash_of(page: str, tag: str) -> str:
    """What a policy says to allow the one element of that kind."""
    [text] = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", page, re.DOTALL)
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def policy_of(page: str) -> str:
    return (f"default-src 'none'; script-src {hash_of(page, 'script')}; "
            f"style-src {hash_of(page, 'style')}; connect-src 'self'; img-src data:; "
            "base-uri 'none'; form-action 'self'; frame-ancestors 'none'")


def change_between(old: Json, new: Json) -> Json:
    """What differs, as a viewer is told that has the old; groups by name, events by serial."""
    plain = ("server", "limits", "sessions", "keys", "waits", "rates", "groups_left_out")
    change = {name: new[name] for name in plain if new[name] != old[name]}

    def by_name(whole: Json) -> dict[tuple[str, ...], Json]:
        return {(group["namespace"], group["name"], *([group["name_base64"]] if "name_base64"
                in group else [])): group for group in whole["groups"]}

    before, after = by_name(old), by_name(new)
    change["groups"] = [group for key, group in after.items() if before.get(key) != group]
    change["gone"] = [list(key) for key in before if key not in after]
    known = {event["serial"]: event["count"] for event in old["events"]}
    change["events"] = [event for event in new["events"]
                        if known.get(event["serial"]) != event["count"]]
    return {name: value for name, value in change.items() if value}


class Double:
    """Serves what `world` has been at the last `publish`."""

    def __init__(self, world: World, port: int = 0, token: str = ""):
        self.world, self.token = world, token
        self.comment_ms = 15000
        self.refuses = 0  # the status with which the stream is refused
        self.is_over = False
        self.is_mute = False  # streams stay open and tell nothing
        self.asked: list[str] = []
        self.forms: list[tuple[str, dict[str, str]]] = []  # path and head of each POST
        self.cookies: set[str] = set()
        self.changed = threading.Condition()
        self.version, self.era = 0, 0
        self.viewers = 0
        self.latest: Json = json.loads(json.dumps(world.whole()))
        page = PAGE.read_text()
        self.page, self.policy = page.encode(), policy_of(page)
        double = self

        class Bound(Handler):
            of = double

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Bound)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def publish(self) -> bool:
        """Whether anything differs, so that viewers are told of it."""
        latest = json.loads(json.dumps(self.world.whole()))
        with self.changed:
            is_other = bool(change_between(self.latest, latest))
            self.latest = latest
            self.version += 1
            self.changed.notify_all()
        return is_other

    def drop(self) -> None:
        """All streams end."""
        with self.changed:
            self.era += 1
            self.changed.notify_all()

    def stop(self) -> None:
        self.is_over = True
        self.drop()
        self.server.shutdown()
        self.server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    of: Double

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def tell(self, status: int, kind: str, body: bytes, **fields: str) -> None:
        self.send_response(status)
        head = {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store",
                "Content-Security-Policy": self.of.policy, "Referrer-Policy": "same-origin",
                "X-Content-Type-Options": "nosniff"}
        for name, value in {**head, **fields}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def tell_json(self, document: Json) -> None:
        self.tell(200, "application/json", json.dumps(document).encode())

    def is_known(self) -> bool:
        cookie = re.search(r"muster=(\w+)", self.headers.get("Cookie", ""))
        return not self.of.token or bool(cookie and cookie[1] in self.of.cookies)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        self.of.forms.append((self.path, {name.lower(): value
                                          for name, value in self.headers.items()}))
        cookie = ""
        if self.path == "/login" and parse_qs(body).get("token") == [self.of.token]:
            cookie = f"c{time.monotonic_ns()}"
            self.of.cookies.add(cookie)
        elif self.path == "/logout":
            self.of.cookies.clear()
        else:
            return self.tell(401, "text/html", LOGIN.encode())
        self.tell(303, "text/plain", b"", Location="/",
                  Set_Cookie=f"muster={cookie}; Path=/; HttpOnly; SameSite=Strict")

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if self.of.is_over:  # on a connection that was kept
            self.close_connection = True
            return
        self.of.asked.append(self.path)
        if not self.is_known():
            return self.tell(401, "text/html", LOGIN.encode())
        if url.path == "/":
            return self.tell(200, "text/html; charset=utf-8", self.of.page)
        if url.path == "/api/v1/stream":
            return self.stream()
        query = {}
        for field in url.query.split("&"):
            name, _, value = field.partition("=")
            query[name] = unquote_to_bytes(value)
        answer = API.get(url.path.removeprefix("/api/v1/"))
        document = answer(self.of, query) if answer else None
        if document is None:
            return self.tell(404, "application/json", b'{"error": {"code": "not_found"}}')
        self.tell_json(document)

    def stream(self) -> None:
        if self.of.refuses:
            return self.tell(self.of.refuses, "text/plain", b"no", Retry_After="1")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if self.of.token:
            self.send_header("Muster-Session", "1")
        self.end_headers()
        self.close_connection = True
        self.of.viewers += 1
        try:
            self.follow()
        except OSError:
            pass
        finally:
            self.of.viewers -= 1

    def send(self, kind: str, message: Json) -> None:
        message["now"] = now_ms()
        if "events" in message:
            message["events"] = [World.aged(event) for event in message["events"]]
        self.wfile.write(f"event: {kind}\ndata: {json.dumps(message)}\n\n".encode())

    def follow(self) -> None:
        of = self.of
        with of.changed:
            told, version, era = of.latest, of.version, of.era
        self.send("whole", {**told, "comment_ms": of.comment_ms})
        while True:
            with of.changed:
                is_new = of.changed.wait_for(lambda: of.version != version or of.era != era,
                                             of.comment_ms / 1000)
                if of.era != era:
                    return
                latest, version = of.latest, of.version
            if of.is_mute:
                continue
            change = change_between(told, latest) if is_new else {}
            told = latest
            if change:
                self.send("change", change)
            elif not is_new:
                self.wfile.write(b": still there\n\n")


def sessions(of: Double, query: dict[str, bytes]) -> Json:
    space = query.get("namespace", b"").decode()
    made: list[Json] = []
    for group in of.world.groups:
        if group.namespace != space:
            continue
        for member in group.members():
            made.append({"session": len(made) + 1, **{name: member[name] for name in
                                                      ("host", "pid", "label", "process")},
                         "connected": member["state"] not in ("away", "lost"),
                         "silence_s": member["silence_s"], "groups": 1, "waiting": 0})
    return made


def group_of(of: Double, query: dict[str, bytes]) -> Json:
    group = of.world.find(query.get("namespace", b"").decode(), query.get("name", b""))
    return group.report() if group else None


def events(of: Double, query: dict[str, bytes]) -> Json:
    name = query.get("group", b"").decode("utf-8", "replace")
    made = [World.aged(event) for event in of.world.events
            if not name or (event["group"] == name and
                            event["namespace"] == query.get("namespace", b"").decode())]
    return {"events": made, "forgotten": 0, "known_for_s": of.world.known_for_s}


def namespaces(of: Double, query: dict[str, bytes]) -> Json:
    names = sorted({"", *(group.namespace for group in of.world.groups)})
    return [{"namespace": name, "keys": 0, "memory_bytes": 0, "groups": 1, "sessions": 1,
             "made_by": None, "idle_s": None} for name in names]


def prefixes(of: Double, query: dict[str, bytes]) -> Json:
    space = query.get("namespace", b"").decode()
    depth = int(query.get("depth", b"1"))
    made = [{"prefix": entry["prefix"] + "".join(f"part{level}/" for level in range(1, depth)),
             "count": entry["count"], "bytes": entry["bytes"]}
            for entry in of.world.prefixes if entry["namespace"] == space]
    return {"prefixes": made, "others": {"count": 0, "bytes": 0}}


API: dict[str, Callable[[Double, dict[str, bytes]], Json]] = {
    "server": lambda of, _: {**of.world.server, "limits": of.world.limits},
    "namespaces": namespaces,
    "sessions": sessions,
    "groups": lambda of, _: [group.summary() for group in of.world.groups],
    "group": group_of,
    "why": group_of,
    "waiters": lambda of, _: [],
    "events": events,
    "prefixes": prefixes,
}


def main() -> None:
    import stories

    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("story", choices=sorted(stories.STORIES))
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    world = World()
    moves = stories.STORIES[options.story](world)
    double = Double(world, options.port)
    print(double.url, flush=True)
    while True:
        time.sleep(0.5)
        next(moves, None)
        double.publish()


if __name__ == "__main__":
    main()
