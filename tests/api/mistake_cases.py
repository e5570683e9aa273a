"""What is easily written wrong, how it is meant, and what the compiler says. For mistakes.py."""

import dataclasses

PRELUDE = """
using namespace std::chrono_literals;
"""
PARAMETERS = ("[[maybe_unused]] muster::Store& store, "
              "[[maybe_unused]] muster::StatelessProcessGroup& group")


@dataclasses.dataclass(frozen=True)
class Case:
    """`sentence` is a part of the one error that `wrong` gives."""

    name: str
    wrong: str
    right: str
    sentence: str
    headers: tuple = ("muster/process_group.h",)
    types: str = ""
    options: tuple = ()


VERDICT = "write result.has_value() to ask whether the call has worked"

VERDICTS = (
    Case("a lock that somebody else holds",
         "muster::SetOptions once; once.only_if_absent = true;"
         'if (store.set("lock", "me", once)) return;',
         "muster::SetOptions once; once.only_if_absent = true;"
         'const auto set = store.set("lock", "me", once);'
         "if (!set.has_value()) return; if (*set) return;",
         VERDICT),
    Case("a key that is absent",
         'if (!store.exists("key")) return;',
         'if (!store.exists("key").value()) return;',
         VERDICT),
    Case("a comparison that failed",
         'if (store.compare_set("key", "a", "b")) return;',
         'const auto compared = store.compare_set("key", "a", "b");'
         "if (compared.has_value() && compared->applied) return;",
         VERDICT),
    Case("a condition of two parts",
         'const bool both = store.remove("a") && store.get("b").has_value(); (void)both;',
         'const bool both = store.remove("a").value() && store.get("b").has_value(); (void)both;',
         VERDICT),
    Case("a verdict that was received",
         "muster::Result<bool> agreed = true; while (agreed) return;",
         "muster::Result<bool> agreed = true; while (agreed.value()) return;",
         VERDICT),
    Case("an optional that was received",
         "muster::Result<std::optional<int>> got = std::optional<int>(); if (got) return;",
         "muster::Result<std::optional<int>> got = std::optional<int>();"
         "if (got.has_value() && got->has_value()) return;",
         VERDICT),
    Case("a round that has failed",
         "muster::Result<muster::RecoveredRound> round = muster::RecoveredRound();"
         "if (round) return;",
         "muster::Result<muster::RecoveredRound> round = muster::RecoveredRound();"
         "if (round.has_value() && !round->error) return;",
         VERDICT),
    Case("a verdict of the host's own",
         "muster::Result<Vote> vote = Vote(); if (vote) return;",
         "muster::Result<Vote> vote = Vote(); if (vote.has_value() && vote->passed) return;",
         VERDICT, types="struct Vote { bool passed = false; };"
         "template <> inline constexpr bool muster::is_verdict<Vote> = true;"),
)

SEND = "write send_obj(Rank{1}, object, Tag{7}, timeout): the destination comes first"
RECEIVE = "write recv_obj<T>(Rank{0}, Tag{7}, timeout): a timeout is a duration, as in 30s"
OBJECTS = ("muster/codec_cereal.h", "muster/process_group.h")

ARGUMENTS = (
    Case("an object and a rank in the order of other libraries",
         "(void)group.send_obj(0, 1);", "(void)group.send_obj(muster::Rank{1}, 0);",
         SEND, headers=OBJECTS),
    Case("the object before its rank",
         'std::string text = "text"; (void)group.send_obj(text, muster::Rank{1});',
         'std::string text = "text"; (void)group.send_obj(muster::Rank{1}, text);',
         SEND, headers=OBJECTS),
    Case("a tag that is a number",
         "(void)group.send_obj(muster::Rank{1}, 0, 7);",
         "(void)group.send_obj(muster::Rank{1}, 0, muster::Tag{7});",
         SEND, headers=OBJECTS),
    Case("a timeout that is a number",
         "(void)group.recv_obj<int>(muster::Rank{0}, 30);",
         "(void)group.recv_obj<int>(muster::Rank{0}, 30s);",
         RECEIVE, headers=OBJECTS),
    Case("a source that is a number",
         "(void)group.recv_obj<int>(0);", "(void)group.recv_obj<int>(muster::Rank{0});",
         RECEIVE, headers=OBJECTS),
    Case("a numbered receive with a number",
         "(void)group.recv_numbered_obj<int>(muster::Rank{0}, 7, 30s);",
         "(void)group.recv_numbered_obj<int>(muster::Rank{0}, muster::Tag{7}, 30s);",
         "write recv_numbered_obj<T>(Rank{0}, Tag{7}, timeout)", headers=OBJECTS),
    Case("a root that is a number",
         "(void)group.broadcast_obj(1, 0);", "(void)group.broadcast_obj(1, muster::Rank{0}, 5s);",
         "write broadcast_obj(object, Rank{0}, timeout)", headers=OBJECTS),
    Case("a gathering root that is a number",
         "(void)group.gather_obj(1, 0, 5s);", "(void)group.gather_obj(1, muster::Rank{0}, 5s);",
         "write gather_obj(object, Rank{0}, timeout)", headers=OBJECTS),
    Case("a scattering root that is a number",
         "(void)group.scatter_obj(std::vector<int>{1}, 0);",
         "(void)group.scatter_obj(std::vector<int>{1}, muster::Rank{0});",
         "write scatter_obj(objects, Rank{0}, timeout)", headers=OBJECTS),
)

CASES = VERDICTS + ARGUMENTS
