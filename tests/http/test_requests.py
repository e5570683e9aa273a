"""What is answered to requests, and to what is none."""

from __future__ import annotations

import email.utils
import http.client
import select
import socket
import time

import pytest

from conftest import PATIENCE, until

GET = "GET /healthz HTTP/1.1\r\nHost: localhost"


@pytest.fixture
def server(musterd):
    return musterd()


def test_a_server_that_is_well_says_so(server):
    for path in ("/healthz", "/readyz"):
        client = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)
        client.request("GET", path)
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (200, b"ok\n")
        client.close()


def test_every_answer_has_the_fields_that_protect_browsers(server):
    for head in (GET, "GET /none HTTP/1.1\r\nHost: localhost", "POST / HTTP/1.1\r\nHost: localhost",
                 "GET / HTTP/1.1\r\nHost: somebody.example", "nonsense"):
        with server.raw() as connection:
            connection.send(head + "\r\n\r\n")
            _, fields, _ = connection.answer()
        assert fields["cache-control"] == "no-store"
        assert fields["x-content-type-options"] == "nosniff"
        assert fields["referrer-policy"] == "same-origin"  # else a form has no Origin
        assert "default-src 'none'" in fields["content-security-policy"]
        assert "frame-ancestors 'none'" in fields["content-security-policy"]
        date = email.utils.parsedate_to_datetime(fields["date"]).timestamp()
        assert abs(date - time.time()) < 60
        assert "server" not in fields


@pytest.mark.parametrize("head, status", [
    (GET, 200),
    ("HEAD /healthz HTTP/1.1\r\nHost: localhost", 200),
    ("GET /healthz HTTP/1.0", 200),
    ("GET /healthz?a=b HTTP/1.1\r\nHost: localhost", 200),
    ("GET /%68ealthz HTTP/1.1\r\nHost: localhost", 200),
    ("GET /none HTTP/1.1\r\nHost: localhost", 404),
    ("GET /healthz/ HTTP/1.1\r\nHost: localhost", 404),
    ("POST /healthz HTTP/1.1\r\nHost: localhost", 405),
    ("OPTIONS * HTTP/1.1\r\nHost: localhost", 405),
    ("CONNECT localhost:1 HTTP/1.1\r\nHost: localhost", 405),
    ("BREW / HTTP/1.1\r\nHost: localhost", 405),
    (GET + "\r\nContent-Length: 0", 200),
    (GET + "\r\nContent-Length: 5", 413),
    (GET + "\r\nContent-Length: 99999999999999999999", 400),
    (GET + "\r\nTransfer-Encoding: chunked", 413),
    (GET + "\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", 400),
    ("GET /healthz HTTP/1.1", 400),
    (GET + "\r\nHost: localhost", 400),
    ("GET /healthz HTTP/1.1\r\nHost:", 421),
    ("GET /healthz HTTP/2.0\r\nHost: localhost", 505),
    ("GET /healthz HTTP/1.7\r\nHost: localhost", 505),
    ("GET http://localhost/healthz HTTP/1.1\r\nHost: localhost", 200),
    ("GET http://localhost:80/healthz HTTP/1.1\r\nHost: somebody.example", 200),
    ("GET http://somebody.example/healthz HTTP/1.1\r\nHost: localhost", 421),
    ("GET http://localhost HTTP/1.1\r\nHost: localhost", 400),
    ("GET ftp://localhost/healthz HTTP/1.1\r\nHost: localhost", 400),
    ("GET /%zz HTTP/1.1\r\nHost: localhost", 400),
    ("GET /%00 HTTP/1.1\r\nHost: localhost", 400),
    ("GET /%0d%0aa HTTP/1.1\r\nHost: localhost", 400),
    ("GET healthz HTTP/1.1\r\nHost: localhost", 400),
    (GET + "\r\nNo colon", 400),
    (GET + "\r\nA B: c", 400),
    (GET + "\r\n: c", 400),
    ("GET  /healthz HTTP/1.1\r\nHost: localhost", 400),
    ("GET /healthz\r\nHost: localhost", 400),
    ("get /healthz HTTP/1.1\r\nHost: localhost", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (b"\0\0\0\0", 400),
    ("GET /" + "a" * 4096 + " HTTP/1.1\r\nHost: localhost", 414),
    ("GET /" + "a" * 9000 + " HTTP/1.1\r\nHost: localhost", 414),
    (GET + "\r\nA: " + "a" * 9000, 431),
    (GET + "\r\nA: b" * 2000, 431),
])
def test_a_request_gets_its_status(server, head, status):
    assert server.status(head) == status
    assert server.status(GET) == 200


@pytest.mark.parametrize("head, words", [
    ("DELETE / HTTP/1.1\r\nHost: localhost", b"GET and HEAD"),
    (GET + "\r\nContent-Length: 5", b"no body"),
    ("GET /none HTTP/1.1\r\nHost: localhost", b"/api/v1/openapi.json"),
    ("GET / HTTP/1.1\r\nHost: somebody.example", b"--http-host"),
    ("GET /%zz HTTP/1.1\r\nHost: localhost", b"escape"),
    ("GET / HTTP/1.1", b"Host: NAME"),
    ("GET / HTTP/2.0\r\nHost: localhost", b"HTTP/1.1"),
    ("GET /" + "a" * 4096 + " HTTP/1.1\r\nHost: localhost", b"4096 bytes"),
    (GET + "\r\nA: " + "a" * 9000, b"8192 bytes"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"TLS"),
    (b"\0\0\0\0", b"METHOD TARGET HTTP/1.1"),
])
def test_a_refusal_says_what_is_wrong(server, head, words):
    if isinstance(head, str):
        head = head.encode("latin-1")
    assert words in server.say_once(head + b"\r\n\r\n")


def test_other_methods_are_told_which_there_are(server):
    with server.raw() as connection:
        connection.send("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, fields, _ = connection.answer()
    assert (status, fields["allow"]) == (405, "get, head")


def test_head_has_the_fields_of_get_and_no_body(server):
    with server.raw() as connection:
        connection.send("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        told = connection.rest()
    assert told.endswith(b"\r\n\r\n") and b"Content-Length: 3\r\n" in told


def test_requests_that_come_together_are_answered_in_their_order(server):
    many = 50
    pair = GET + "\r\n\r\n" + "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with server.raw() as connection:
        connection.send(pair * many)
        found = [connection.answer()[0] for _ in range(2 * many)]
    assert found == [200, 404] * many


def test_a_request_may_come_byte_by_byte(server):
    with server.raw() as connection:
        for byte in GET + "\r\n\r\n":
            connection.send(byte)
        assert connection.answer()[0] == 200


def test_a_connection_is_kept_as_the_client_says(server):
    for version, field, is_kept in (("1.1", "keep-alive", True), ("1.1", "close", False),
                                    ("1.0", "close", False), ("1.0", "keep-alive", True)):
        with server.raw() as connection:
            head = f"GET /healthz HTTP/{version}\r\nHost: localhost\r\nConnection: {field}\r\n\r\n"
            connection.send(head)
            _, fields, _ = connection.answer()
            assert fields["connection"] == ("keep-alive" if is_kept else "close")
            if is_kept:
                connection.send(head)
                assert connection.answer()[0] == 200
            else:
                assert connection.is_ended_within(PATIENCE)


def test_a_body_is_not_taken_for_the_next_request(server):
    hidden = GET + "\r\n\r\n"
    told = server.say_once(GET + f"\r\nContent-Length: {len(hidden)}\r\n\r\n" + hidden)
    assert told.count(b"HTTP/1.1 ") == 1 and told.startswith(b"HTTP/1.1 413 ")


def test_what_follows_a_refusal_does_not_take_the_answer_back(server):
    for _ in range(20):
        with server.raw() as connection:
            connection.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n")
            connection.send("x" * 60000)
            assert connection.answer()[0] == 405
    with server.raw() as connection:
        connection.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n")
        assert select.select([connection.socket], [], [], PATIENCE)[0], "no answer"
        for _ in range(20):  # had the server closed it, its peer could not write any more
            connection.send("x" * 3000)
        assert connection.answer()[0] == 405


@pytest.mark.parametrize("name, status", [
    ("localhost", 200), ("LOCALHOST:1", 200), ("localhost.", 200), ("127.0.0.1:8080", 200),
    ("[::1]:9400", 200), ("muster.example:80", 200),
    ("somebody.example", 421), ("127.0.0.1.somebody.example", 421), ("localhost.example", 421),
    ("localhost:port", 421), ("[::1", 421), ("[::1]x", 421), ("10.0.0.1", 421), ("a b", 421),
    ("localhost@somebody.example", 421), ("muster.example.somebody.example", 421),
])
def test_the_server_answers_to_its_own_names_alone(musterd, name, status):
    server = musterd("--http-host", "muster.example", "--http-host", "other.example")
    assert server.status(f"GET /healthz HTTP/1.1\r\nHost: {name}") == status


def test_the_address_that_was_connected_to_is_a_name(musterd):
    server = musterd(http="127.0.0.7:0")
    assert server.status("GET /healthz HTTP/1.1\r\nHost: 127.0.0.7") == 200
    assert server.status("GET /healthz HTTP/1.1\r\nHost: 127.0.0.8") == 421


def test_the_machine_is_known_by_its_name_where_it_listens_everywhere(musterd):
    own = socket.gethostname()
    everywhere = musterd("--allow-unauthenticated", http="0.0.0.0:0")
    assert everywhere.host == own.lower()
    everywhere.host = "127.0.0.1"
    assert everywhere.status(f"GET /healthz HTTP/1.1\r\nHost: {own}:1") == 200
    if own.lower() != "localhost":
        alone = musterd(http="127.0.0.1:0")
        assert alone.status(f"GET /healthz HTTP/1.1\r\nHost: {own}") == 421
    named = musterd("--http-host", "muster.example:80", "--allow-unauthenticated", http="0.0.0.0:0")
    assert named.host == "muster.example"


def test_handlers_are_found_by_their_paths(host):
    server = host()

    def asked(target, more=""):
        with server.raw() as connection:
            connection.send(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n")
            status, fields, body = connection.answer()
        return status, fields.get("content-type"), body.decode()

    assert asked("/echo?a=%20b", "Accept: text/x\r\n") == (
        200, "text/plain", "/echo|a=%20b|text/x|1")
    assert asked("/echo/")[0] == 404
    assert asked("/below/one/two") == (200, "text/plain", "/below/one/two|||1")
    assert asked("/below/more/two") == (200, "text/html", "more")
    assert asked("/below")[0] == 404
    assert asked("/admin")[0] == 403
    assert asked("/throws")[0] == 500
    assert asked("/echo")[0] == 200
    assert len(asked("/large?5000000")[2]) == 5000000


def test_health_and_readiness_follow_the_server(host):
    server = host("stall_ms=1500")

    def asked(path):
        return server.say_once(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert b" 200 OK\r\n" in asked("/healthz")
    assert b" 503 " in asked("/readyz")
    server.say("serving")
    until(lambda: b" 200 OK\r\n" in asked("/readyz"))
    until(lambda: b" 503 " in asked("/healthz"))
    server.say("turn")
    until(lambda: b" 200 OK\r\n" in asked("/healthz"))
    server.say("ending it is late")
    until(lambda: b" 503 " in asked("/readyz") and asked("/readyz").endswith(b"it is late\n"))
