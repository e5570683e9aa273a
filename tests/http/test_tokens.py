"""Who asks: tokens, TLS, and where the port may be."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import urllib.parse
from pathlib import Path

import pytest

from conftest import PATIENCE, until

MUSTERD, MUSTERCTL = os.environ["MUSTERD"], os.environ["MUSTERCTL"]


def keygen(*arguments):
    told = subprocess.run([MUSTERCTL, "keygen", "--http", *arguments], capture_output=True,
                          text=True, timeout=PATIENCE, check=True)
    token, line = told.stdout.splitlines()
    return token, line


def write_secret(path, *lines):
    path.write_text("".join(line + "\n" for line in lines))
    path.chmod(0o600)
    return str(path)


def status(server, token=None, path="/none"):
    field = "" if token is None else f"\r\nAuthorization: Bearer {token}"
    return server.status(f"GET {path} HTTP/1.1\r\nHost: localhost{field}")


def refusal(*flags):
    """Exit code and errors of one that does not start."""
    told = subprocess.run([MUSTERD, "--listen", "127.0.0.1:0", *flags], capture_output=True,
                          text=True, timeout=PATIENCE, check=False)
    return told.returncode, told.stderr


def until_logged(server, text):
    """The next line of its log that has the text."""
    return next(line for line in server.process.stderr if text in line)


def test_keygen_prints_a_token_and_the_line_for_it():
    token, line = keygen("prometheus")
    assert token.startswith("muster-http-") and len(token) == len("muster-http-") + 43
    assert line.startswith("prometheus read sha256:") and token not in line
    assert keygen("prometheus")[0] != token
    assert keygen("me", "--right", "admin")[1].startswith("me admin sha256:")
    told = subprocess.run([MUSTERCTL, "--json", "keygen", "--http", "me"], capture_output=True,
                          text=True, timeout=PATIENCE, check=True)
    document = json.loads(told.stdout)
    assert document["line"].startswith("me read ") and document["token"].startswith("muster-http-")
    wrong = [["a/b"], ["me", "--right", "all"], ["me", "--rights", "all"]]
    for arguments in wrong:
        assert subprocess.run([MUSTERCTL, "keygen", "--http", *arguments], timeout=PATIENCE,
                              capture_output=True, check=False).returncode != 0


def test_only_those_with_a_token_are_answered(musterd, tmp_path):
    (token, line), (_, other) = keygen("one"), keygen("two", "--right", "admin")
    server = musterd("--http-tokens", write_secret(tmp_path / "tokens", "# who", line, other))
    assert status(server, token) == 404  # there is nothing, but it may ask
    assert status(server) == 401
    assert status(server, path="/healthz") == status(server, path="/readyz") == 200
    for wrong in ("", " ", token[:-1], token + "a", token.upper(), line.split(":")[1]):
        assert status(server, wrong) in (401, 429)
    with server.raw() as connection:
        connection.send("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.answer()[1]["www-authenticate"].startswith("bearer ")
    for scheme, expected in (("bearer", 404), ("BEARER", 404), ("Basic", 401), ("Bearer:", 401)):
        head = f"GET /none HTTP/1.1\r\nHost: localhost\r\nAuthorization: {scheme} {token}"
        assert server.status(head) == expected
    twice = f"\r\nAuthorization: Bearer {token}" * 2
    assert server.status("GET /none HTTP/1.1\r\nHost: localhost" + twice) == 400


def test_who_guesses_is_told_to_wait_and_locks_nobody_out(musterd, tmp_path):
    token, line = keygen("one")
    tokens = write_secret(tmp_path / "tokens", line)
    server = musterd("--http-tokens", tokens, errors=subprocess.PIPE)
    assert [status(server, f"muster-http-guess{number}") for number in range(12)] == (
        [401] * 10 + [429] * 2)
    assert status(server, token) == 404
    assert status(server) == 401
    server.process.send_signal(signal.SIGTERM)
    log = server.process.communicate(timeout=PATIENCE)[1]
    assert log.count("a wrong token came from 127.0.0.1") == 10
    assert "guess" not in log and token not in log


def log_in(client, token, **fields):
    """A browser that sends the form; its answer, and the cookie."""
    form = urllib.parse.urlencode({"token": token})
    client.request("POST", "/login", form, {
        "Content-Type": "application/x-www-form-urlencoded", **fields})
    answer = client.getresponse()
    answer.read()
    return answer.status, (answer.getheader("Set-Cookie") or "").split(";")[0]


def test_a_browser_logs_in_by_a_form(musterd, tmp_path):
    token, line = keygen("one")
    tokens = write_secret(tmp_path / "tokens", line)
    server = musterd("--http-tokens", tokens)
    client = http.client.HTTPConnection("localhost", server.port, timeout=PATIENCE)

    def status_with(cookie):
        client.request("GET", "/none", headers={"Cookie": cookie})
        answer = client.getresponse()
        answer.read()
        return answer.status

    client.request("GET", "/", headers={"Accept": "text/html"})
    answer = client.getresponse()
    page = answer.read()
    assert answer.status == 401 and b"<form method=\"post\" action=\"/login\">" in page
    for tag in (b"style", b"script"):
        [text] = re.findall(b"<%s>(.*?)</%s>" % (tag, tag), page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text).digest()).decode()
        assert f"{tag.decode()}-src 'sha256-{digest}';" in answer.headers["Content-Security-Policy"]
    assert log_in(client, "muster-http-guess") == (401, "")
    assert log_in(client, token, Origin="http://somebody.example")[0] == 403
    status, cookie = log_in(client, token, Origin=f"http://localhost:{server.port}")
    assert status == 303 and cookie.startswith("muster=") and len(cookie) == len("muster=") + 43
    assert status_with(cookie) == 404
    assert status_with(cookie[:-1]) == 401
    assert log_in(client, token)[1] != cookie
    write_secret(tmp_path / "tokens", keygen("two")[1])
    server.process.send_signal(signal.SIGHUP)
    until(lambda: status_with(cookie) == 401)
    client.close()


def test_a_body_may_come_in_pieces_and_not_be_large(musterd, tmp_path):
    token, line = keygen("one")
    server = musterd("--http-tokens", write_secret(tmp_path / "tokens", line))
    head = ("POST /login HTTP/1.1\r\nHost: localhost\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n")
    body = "token=" + token
    with server.raw() as connection:
        for byte in head.format(len(body)) + body:
            connection.send(byte)
        assert connection.answer()[0] == 303
        connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.answer()[0] == 200
    for size in (1025, 999999, 9999999):
        assert b" 405 " in server.say_once(head.format(size))


def test_tokens_are_read_again_at_a_hang_up(musterd, tmp_path):
    (old, old_line), (new, new_line) = keygen("one"), keygen("one")
    path = tmp_path / "tokens"
    server = musterd("--http-tokens", write_secret(path, old_line))
    assert (status(server, old), status(server, new)) == (404, 401)
    write_secret(path, new_line)
    server.process.send_signal(signal.SIGHUP)
    until(lambda: status(server, new) == 404)
    assert status(server, old) == 401
    write_secret(path, "nonsense")
    server.process.send_signal(signal.SIGHUP)
    write_secret(path, new_line, old_line)
    server.process.send_signal(signal.SIGHUP)
    until(lambda: status(server, old) == 404)
    assert status(server, new) == 404


def test_a_file_without_tokens_is_told(musterd, tmp_path):
    token, line = keygen("one")
    path = tmp_path / "tokens"
    server = musterd("--http-tokens", write_secret(path, "# none yet"), errors=subprocess.PIPE)
    said = f"{path} has no token: nobody may ask at --http; musterctl keygen --http makes one"
    assert "warning" in until_logged(server, said)
    assert status(server, token) == 401
    write_secret(path, line)
    server.process.send_signal(signal.SIGHUP)
    assert "read: 1" in until_logged(server, "tokens for http were read")
    assert status(server, token) == 404
    write_secret(path)
    server.process.send_signal(signal.SIGHUP)
    assert "warning" in until_logged(server, said)


@pytest.mark.parametrize("lines, mode, said", [
    (["one read"], 0o600, "line 1: "),
    (["# none", "one write sha256:" + "0" * 64], 0o600, "line 2: "),
    (["one read sha256:" + "0" * 63], 0o600, "line 1: "),
    (["one read sha256:" + "0" * 64 + " more"], 0o600, "line 1: "),
    (["a/b read sha256:" + "0" * 64], 0o600, "line 1: "),
    (["one read sha256:" + "0" * 64, "two read sha256:" + "0" * 64], 0o600, "line 2: "),
    (["one read sha256:" + "0" * 64], 0o644, "chmod 600"),
])
def test_a_file_of_tokens_that_is_wrong_is_refused(tmp_path, lines, mode, said):
    path = tmp_path / "tokens"
    write_secret(path, *lines)
    path.chmod(mode)
    code, errors = refusal("--http", "127.0.0.1:0", "--http-tokens", str(path))
    assert code == 2 and said in errors and "--http-tokens" in errors
    assert "0000" not in errors


def test_what_belongs_together_is_asked_for(tmp_path):
    for flags in (["--http-host", "a"], ["--http-tokens", "a"], ["--http-cert", "a"],
                  ["--http", "127.0.0.1:0", "--http-key", "a"],
                  ["--http", "127.0.0.1:0", "--http-client-ca", "a"],
                  ["--http", "127.0.0.1"], ["--http", "127.0.0.1:x"], ["--http", "127.0.0.1:70000"],
                  ["--http", "::1:80"]):
        assert refusal(*flags)[0] == 2, flags
    missing = str(tmp_path / "missing")
    assert refusal("--http", "127.0.0.1:0", "--http-tokens", missing)[0] == 2


def test_other_machines_reach_it_only_if_that_is_meant(musterd, tmp_path, certificates):
    tokens = write_secret(tmp_path / "tokens", keygen("one")[1])
    tls = ["--http-cert", certificates["server"], "--http-key", certificates["server_key"]]
    everywhere = ["--http", "0.0.0.0:0"]
    for flags in ([], ["--http-tokens", tokens], tls):
        code, errors = refusal(*everywhere, *flags)
        assert code == 4 and "--allow-unauthenticated" in errors
    assert musterd(*tls, "--http-tokens", tokens, http="0.0.0.0:0").scheme == "https"
    musterd(*tls, "--http-client-ca", certificates["authority"], http="0.0.0.0:0")
    musterd("--allow-unauthenticated", http="0.0.0.0:0")


def test_a_port_that_is_taken_is_told(musterd):
    server = musterd()
    code, errors = refusal("--http", f"127.0.0.1:{server.port}")
    assert code == 3 and str(server.port) in errors


def https(server, context):
    client = http.client.HTTPSConnection("localhost", server.port, timeout=PATIENCE,
                                         context=context)
    client.request("GET", "/healthz")
    answer = client.getresponse()
    told = answer.status, client.sock.version()
    answer.read()
    client.request("HEAD", "/none")
    assert client.getresponse().status == 404
    client.close()
    return told


def test_tls_shows_the_certificate(musterd, certificates):
    server = musterd("--http-cert", certificates["server"], "--http-key",
                     certificates["server_key"])
    context = ssl.create_default_context(cafile=certificates["authority"])
    assert https(server, context) == (200, "TLSv1.3")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        https(server, context)
    with server.raw() as connection:  # who does not speak TLS gets nothing
        connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" not in connection.rest()


def test_certificates_of_clients_are_asked_for(musterd, certificates):
    server = musterd("--http-cert", certificates["server"], "--http-key",
                     certificates["server_key"], "--http-client-ca", certificates["authority"])
    context = ssl.create_default_context(cafile=certificates["authority"])
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        https(server, context)
    context.load_cert_chain(certificates["stranger"], certificates["stranger_key"])
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        https(server, context)
    context = ssl.create_default_context(cafile=certificates["authority"])
    context.load_cert_chain(certificates["client"], certificates["client_key"])
    assert https(server, context)[0] == 200


def test_a_certificate_is_read_again_at_a_hang_up(musterd, certificates, tmp_path):
    both = tmp_path / "both"
    write_secret(both, Path(certificates["server"]).read_text(),
                 Path(certificates["server_key"]).read_text())
    server = musterd("--http-cert", str(both))

    def shown():
        return ssl.get_server_certificate((server.host, server.port), timeout=PATIENCE)

    assert shown() in both.read_text()
    fresh = Path(certificates["client"]).read_text()
    write_secret(both, fresh, Path(certificates["client_key"]).read_text())
    server.process.send_signal(signal.SIGHUP)
    until(lambda: shown() in fresh)
    write_secret(both, "nonsense")
    server.process.send_signal(signal.SIGHUP)
    assert shown() in fresh


def test_a_key_that_is_wrong_is_refused(certificates, tmp_path):
    for key in (certificates["client_key"], certificates["server"],
                write_secret(tmp_path / "key", "nonsense")):
        code, errors = refusal("--http", "127.0.0.1:0", "--http-cert", certificates["server"],
                               "--http-key", key)
        assert code == 2 and f"--http-key: {key}: " in errors
    open_key = tmp_path / "open"
    open_key.write_text(Path(certificates["server_key"]).read_text())
    open_key.chmod(0o644)
    code, errors = refusal("--http", "127.0.0.1:0", "--http-cert", certificates["server"],
                           "--http-key", str(open_key))
    assert code == 2 and "chmod 600" in errors


@pytest.mark.parametrize("flag", ["--http-cert", "--http-key", "--http-client-ca"])
@pytest.mark.parametrize("text", ["", "nonsense\n", "-----BEGIN CERTIFICATE-----\nnonsense\n"])
def test_a_file_of_tls_that_cannot_be_used_is_named(certificates, tmp_path, flag, text):
    files = {"--http-cert": certificates["server"], "--http-key": certificates["server_key"],
             "--http-client-ca": certificates["authority"]}
    files[flag] = str(tmp_path / "file of nonsense")
    Path(files[flag]).write_text(text)
    Path(files[flag]).chmod(0o600)
    code, errors = refusal("--http", "127.0.0.1:0", *(word for pair in files.items()
                                                      for word in pair))
    assert code == 2 and f"{flag}: {files[flag]}: " in errors
    assert len(errors.splitlines()) == 1


def test_a_file_of_tls_that_cannot_be_used_is_named_when_it_is_read_again(musterd, certificates,
                                                                          tmp_path):
    both = tmp_path / "both"
    write_secret(both, Path(certificates["server"]).read_text(),
                 Path(certificates["server_key"]).read_text())
    server = musterd("--http-cert", str(both), errors=subprocess.PIPE)
    said = "the certificate for http stays as it was: --http-cert: " + str(both) + ": "
    both.write_text("")
    server.process.send_signal(signal.SIGHUP)
    assert until_logged(server, said)
    write_secret(both, Path(certificates["server"]).read_text(),
                 Path(certificates["client_key"]).read_text())
    server.process.send_signal(signal.SIGHUP)
    assert until_logged(server, said)
    assert https(server, ssl.create_default_context(cafile=certificates["authority"]))[0] == 200
