"""What /api/v1/... answers: what musterctl tells, in the form that docs/openapi.json describes."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from conftest import PATIENCE, token_in, until

jsonschema = pytest.importorskip("jsonschema")

OPENAPI = json.loads(Path(os.environ["OPENAPI"]).read_text(encoding="utf-8"))
PAGE = Path(os.environ["PAGE"]).read_bytes()


def plain_schema(part: Any) -> Any:
    """As JSON Schema has it: OpenAPI 3.0 says by a word of its own that something may be null."""
    if isinstance(part, list):
        return [plain_schema(each) for each in part]
    if not isinstance(part, dict):
        return part
    made = {name: plain_schema(each) for name, each in part.items() if name != "nullable"}
    if part.get("nullable") is True and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    return made


SCHEMAS = plain_schema(OPENAPI["components"]["schemas"])


def check(document: Any, schema: Any) -> None:
    whole = {**plain_schema(schema), "components": {"schemas": SCHEMAS}}
    jsonschema.Draft7Validator(whole).validate(document)


def ask(server, target, accept="application/json"):
    client = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)
    client.request("GET", target, headers={"Accept": accept})
    answer = client.getresponse()
    body = answer.read()
    client.close()
    return answer.status, dict(answer.getheaders()), body


def api(server, target, status=200):
    """The document, which is as it is described."""
    told, fields, body = ask(server, f"/api/v1/{target}")
    assert told == status, body
    assert fields["Content-Type"] == "application/json; charset=utf-8"
    path = "/api/v1/" + target.split("?")[0]
    document = json.loads(body)
    described = OPENAPI["paths"][path]["get"]["responses"][str(status)]
    check(document, described["content"]["application/json"]["schema"])
    return document


def musterctl(server, *arguments, namespace=""):
    done = subprocess.run([os.environ["MUSTERCTL"], "--server", server.address, "--json",
                           "--namespace", namespace, *arguments],
                          stdout=subprocess.PIPE, timeout=PATIENCE)
    return json.loads(done.stdout)


MOVES = {"age_s", "silence_s", "round_age_s", "left_s", "idle_s", "held_up_s", "known_for_s",
         "explanation", "lasted_s", "hangs"}


def still(document: Any) -> Any:
    """Without what time alone changes."""
    if isinstance(document, list):
        return [still(each) for each in document]
    if not isinstance(document, dict):
        return document
    return {name: still(each) for name, each in document.items() if name not in MOVES}


@pytest.fixture
def server(musterd):
    return musterd("--grace", "200ms")


def form(server, ranks, group, count, namespace=""):
    members = [ranks(server, group, rank, count, namespace=namespace) for rank in range(count)]
    for member in members:
        assert member.heard() == "joined"
    return members


def test_what_is_told_is_what_musterctl_tells(server, ranks):
    members = form(server, ranks, "trainer", 3, namespace="job")
    forming = ranks(server, "late", 1, 4, namespace="job")
    members[0].call("barrier")
    members[0].call("wait never")
    assert forming.process.poll() is None

    def waits() -> bool:
        report = api(server, "group?namespace=job&name=trainer")
        return "round" in report and len(api(server, "waiters?namespace=job")) == 3

    until(waits)
    for target, command in (("group?namespace=job&name=trainer", ["why", "trainer"]),
                            ("why?namespace=job&name=trainer", ["why", "trainer"]),
                            ("group?namespace=job&name=late", ["why", "late"]),
                            ("groups?namespace=job", ["groups"]),
                            ("waiters?namespace=job", ["waiters"]),
                            ("events?namespace=job", ["events"]),
                            ("events?namespace=job&group=trainer", ["events", "trainer"])):
        told = api(server, target)
        assert still(told) == still(musterctl(server, *command, namespace="job")), target
    told = api(server, "why?namespace=job")
    assert [each["group"] for each in told["groups"]] == ["late", "trainer"]
    asked = musterctl(server, "why", namespace="job")
    elsewhere = {"other_namespaces_waiting", "other_namespaces_waiting_count",
                 "tcpstore_disconnected"}
    assert still(told) == still({name: asked[name] for name in asked.keys() - elsewhere})
    # musterctl is a session itself.
    sessions = api(server, "sessions?namespace=job")
    labels = sorted(session["label"] for session in sessions)
    assert labels == ["rank-0", "rank-1", "rank-1", "rank-2"]
    listed = [each for each in musterctl(server, "sessions", namespace="job")
              if each["label"].startswith("rank-")]
    assert still(sorted(listed, key=str)) == still(sorted(sessions, key=str))
    names = [each["namespace"] for each in api(server, "namespaces")]
    assert "job" in names
    report = api(server, "group?namespace=job&name=trainer")
    assert report["round"]["missing"] == [1, 2] and report["round"]["called"] == [0]


def test_groups_of_all_namespaces_are_told_with_their_own(server, ranks):
    form(server, ranks, "a", 1, namespace="one")
    form(server, ranks, "b", 1, namespace="two")
    form(server, ranks, "c", 1)
    until(lambda: len(api(server, "groups")) == 3)
    told = {(group["namespace"], group["group"]) for group in api(server, "groups")}
    assert told == {("one", "a"), ("two", "b"), ("", "c")}
    assert [group["group"] for group in api(server, "groups?namespace=two")] == ["b"]
    assert "namespace" not in api(server, "groups?namespace=two")[0]


def test_names_are_any_bytes(server, ranks):
    for name in ("<img src=x onerror=alert(1)>", "a&b=c%20+/?#", "\u202eevil", "\udcff\udcfe"):
        form(server, ranks, name, 1)
        exact = os.fsencode(name)
        escaped = "".join(f"%{byte:02x}" for byte in exact)
        report = api(server, f"group?name={escaped}")
        if exact.decode("utf-8", "ignore").encode() == exact:
            assert report["group"] == name
        else:
            assert base64.b64decode(report["group_base64"]) == exact
    assert len(api(server, "groups")) == 4


def test_a_wrong_question_is_told_so(server):
    assert api(server, "group", 400)["error"]["code"] == "invalid_argument"
    assert api(server, "group?name=", 400)["error"]["code"] == "invalid_argument"
    assert api(server, "group?name=none", 404)["error"]["code"] == "not_found"
    assert api(server, "groups?namespace=none", 404)["error"]["code"] == "not_found"
    for query in ("depth=0", "depth=5", "depth=x", "depth=-1", "depth=", "namespace=%zz",
                  "depth=99999999999999999999999"):
        assert api(server, f"prefixes?{query}", 400)["error"]["code"] == "invalid_argument"
    for query in ("after=x", "group=%f", "namespace=%"):
        assert api(server, f"events?{query}", 400)["error"]["code"] == "invalid_argument"
    for query, word in (("namespce=x", "namespce"), ("namespace=a&namespace=b", "twice"),
                        ("depth=1&a=b&depth=1", "'a'"), ("depth=9", "1 to 4")):
        error = api(server, f"prefixes?{query}", 400)["error"]
        assert error["code"] == "invalid_argument" and word in error["detail"], error
    assert api(server, "server?x", 400)["error"]["code"] == "invalid_argument"
    assert api(server, "groups?&namespace=&") == []
    assert ask(server, "/api/v1/none")[0] == 404
    assert ask(server, "/api/v1/")[0] == 404
    assert ask(server, "/api/v1/groups/x")[0] == 404


def test_the_default_namespace_may_be_empty(server):
    for target in ("groups", "groups?namespace=", "sessions", "waiters", "namespaces"):
        assert api(server, target) == []
    assert api(server, "events")["events"] == []
    assert api(server, "prefixes")["prefixes"] == []


def test_the_server_tells_of_itself_and_its_limits(server):
    told = api(server, "server")
    assert told["pid"] == server.process.pid
    assert not told["credentials"] and not told["draining"]
    limits = {limit["name"]: limit for limit in told["limits"]}
    assert limits["sessions_max"]["max"] == 16384
    assert 0 < limits["memory_bytes_max"]["max"]


def test_keys_are_counted_by_their_prefixes(server):
    def put(key, value):
        subprocess.run([os.environ["MUSTERCTL"], "--server", server.address, "--namespace", "job",
                        "set", key, value], check=True, timeout=PATIENCE)

    for key in ("a/b/c", "a/b/d", "a/x", "plain", "b/"):
        put(key, "12345")
    until(lambda: len(api(server, "prefixes?namespace=job")["prefixes"]) == 3)
    told = {each["prefix"]: (each["count"], each["bytes"])
            for each in api(server, "prefixes?namespace=job")["prefixes"]}
    assert told == {"a/": (3, 15), "": (1, 5), "b/": (1, 5)}
    told = {each["prefix"]: each["count"]
            for each in api(server, "prefixes?namespace=job&depth=2")["prefixes"]}
    assert told == {"a/b/": 2, "a/": 1, "": 1, "b/": 1}


def test_events_can_be_asked_for_from_one_on(server, ranks):
    form(server, ranks, "g", 2)[0].stop()
    until(lambda: any(event["what"] == "rank_lost" for event in api(server, "events")["events"]))
    told = api(server, "events")["events"]
    assert told[0]["what"] == "formed"
    later = api(server, f"events?after={told[0]['serial']}")["events"]
    assert later[0]["what"] == "rank_lost"
    assert later[0]["error"]["ranks"][0]["label"] == "rank-0"


def test_everything_that_is_described_is_there_and_nothing_else(server):
    described = json.loads(ask(server, "/api/v1/openapi.json")[2])
    assert described == OPENAPI
    for path in described["paths"]:
        if path != "/api/v1/stream":
            assert ask(server, path)[0] in (200, 400), path
    source = Path(__file__).parents[2] / "tools/musterd/live/api.cpp"
    names = set(re.findall(r'route\("([a-z]+)"', source.read_text(encoding="utf-8")))
    assert {f"/api/v1/{name}" for name in names} | {"/api/v1/openapi.json"} == set(
        described["paths"])


def test_the_page_is_sent_with_a_policy_that_allows_its_own_script_and_style_alone(server):
    status, fields, body = ask(server, "/", "text/html")
    assert (status, fields["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert body == PAGE
    assert len(PAGE) <= 150 * 1024
    policy = dict(part.strip().split(" ", 1)
                  for part in fields["Content-Security-Policy"].split(";"))
    for kind in ("script", "style"):
        allowed = set(policy[f"{kind}-src"].split())
        found = re.findall(rf"<{kind}(?:\s[^>]*)?>(.*?)</{kind}>".encode(), body, re.DOTALL)
        digests = {f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"
                   for text in found}
        assert allowed == digests, kind
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    # Nothing of it is elsewhere, and none of it is by an attribute, which the policy would stop.
    text = body.decode()
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)
    assert not re.search(r"<[a-z][^>]*\s(?:on[a-z]+|style)\s*=", text)


def test_it_is_told_to_those_who_may_read(musterd, tmp_path):
    token, file = token_in(tmp_path)
    server = musterd("--http-tokens", str(file))
    for path in [*OPENAPI["paths"], "/"]:
        assert ask(server, path)[0] == 401, path
    client = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)
    client.request("GET", "/api/v1/groups?namespace=" + quote(""),
                   headers={"Authorization": f"Bearer {token}"})
    assert client.getresponse().status == 200
    client.close()
