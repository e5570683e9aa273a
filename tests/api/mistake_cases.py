"""What is easily written wrong, how it is meant, and what the compiler says. For mistakes.py."""

import dataclasses

PRELUDE = """
using namespace std::chrono_literals;
"""
PARAMETERS = "[[maybe_unused]] muster::Store& store"


@dataclasses.dataclass(frozen=True)
class Case:
    """`sentence` is a part of the one error that `wrong` gives."""

    name: str
    wrong: str
    right: str
    sentence: str
    headers: tuple = ("muster/store.h",)
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
         VERDICT, headers=("muster/process_group.h",)),
    Case("a verdict of the host's own",
         "muster::Result<Vote> vote = Vote(); if (vote) return;",
         "muster::Result<Vote> vote = Vote(); if (vote.has_value() && vote->passed) return;",
         VERDICT, types="struct Vote { bool passed = false; };"
         "template <> inline constexpr bool muster::is_verdict<Vote> = true;"),
)

CASES = VERDICTS
