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
    right_headers: tuple = ()
    right_types: str = ""
    outside: str = ""  # of any namespace; {} is the one that `types` is in


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
         VERDICT, types="struct Vote { bool passed = false; };",
         outside="template <> inline constexpr bool muster::is_verdict<{}::Vote> = true;"),
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

CEREAL = "CerealCodec cannot take this type: give it `template <class Archive> void serialize"
PLAIN = "struct Plain { int number = 0; };"
MENDED = """struct Plain {
  int number = 0;
  template <class Archive> void serialize(Archive& archive) { archive(number); }
};"""
UNMADE = "an object is made first and read then"
FIXED = """struct Fixed {
  explicit Fixed(int its_number) : number(its_number) {}
  int number;
  template <class Archive> void serialize(Archive& archive) { archive(number); }
};
struct Made : Fixed { Made() : Fixed(0) {} };"""

OUTER = """struct Outer {
  Plain plain;
  template <class Archive> void serialize(Archive& archive) { archive(plain); }
};"""
HEADER = "include its header, such as muster/codec_cereal.h for the default one"

TYPES = (
    Case("a plain struct to send",
         "(void)group.send_obj(muster::Rank{1}, Plain());",
         "(void)group.send_obj(muster::Rank{1}, Plain());",
         CEREAL, headers=OBJECTS, types=PLAIN, right_types=MENDED),
    Case("a plain struct to receive",
         "(void)group.recv_obj<Plain>(muster::Rank{1});",
         "(void)group.recv_obj<Plain>(muster::Rank{1});",
         CEREAL, headers=OBJECTS, types=PLAIN, right_types=MENDED),
    Case("a plain struct that goes both ways",
         "(void)group.all_gather_obj(Plain());", "(void)group.all_gather_obj(Plain());",
         CEREAL, headers=OBJECTS, types=PLAIN, right_types=MENDED),
    Case("a container of plain structs",
         "(void)group.all_gather_obj(std::vector<Plain>());",
         "(void)group.all_gather_obj(std::vector<Plain>());",
         CEREAL, headers=OBJECTS, types=PLAIN, right_types=MENDED),
    Case("a plain struct in another one",
         "(void)group.all_gather_obj(Outer());", "(void)group.all_gather_obj(Outer());",
         CEREAL, headers=OBJECTS,
         types=PLAIN + OUTER, right_types=MENDED + OUTER),
    Case("no default constructor",
         "(void)group.recv_obj<Fixed>(muster::Rank{1});",
         "(void)group.recv_obj<Made>(muster::Rank{1});",
         UNMADE, headers=OBJECTS, types=FIXED),
    Case("no default constructor, both ways",
         "(void)group.all_gather_obj(Fixed(1));", "(void)group.all_gather_obj(Made());",
         UNMADE, headers=OBJECTS, types=FIXED),
    Case("a container of what has no default constructor",
         "(void)group.recv_obj<std::vector<Fixed>>(muster::Rank{1});",
         "(void)group.recv_obj<std::vector<Made>>(muster::Rank{1});",
         UNMADE, headers=OBJECTS, types=FIXED),
    Case("a map of what has no default constructor",
         "(void)group.recv_obj<std::map<int, Fixed>>(muster::Rank{1});",
         "(void)group.recv_obj<std::map<int, Made>>(muster::Rank{1});",
         "an element is made first", headers=OBJECTS, types=FIXED),
    Case("no header of the default codec, to send",
         "(void)group.send_obj(muster::Rank{1}, 7);", "(void)group.send_obj(muster::Rank{1}, 7);",
         HEADER, right_headers=OBJECTS),
    Case("no header of the default codec, to receive",
         "(void)group.recv_obj<int>(muster::Rank{1});",
         "(void)group.recv_obj<int>(muster::Rank{1});",
         HEADER, right_headers=OBJECTS),
    Case("no header of the default codec, both ways",
         "(void)group.broadcast_obj(7, muster::Rank{1});",
         "(void)group.broadcast_obj(7, muster::Rank{1});",
         HEADER, right_headers=OBJECTS),
)

# What did not compile, and does now.
LIST_HEADERS = ("array", "map", "set", "string", "vector", "muster/store.h",
                "muster/process_group.h")
LISTS = (
    "std::vector<std::string> keys; (void)store.multi_get(keys);",
    "std::vector<std::string_view> keys; (void)store.multi_remove(keys, 5s);",
    "std::set<std::string> keys; (void)store.wait(keys); (void)store.multi_exists(keys);",
    "std::array<const char*, 2> keys = {}; (void)store.multi_exists(keys);",
    '(void)store.wait({"a", "b"}); (void)store.multi_get({"a"}, 5s);',
    "std::map<std::string, std::string> entries; (void)store.multi_set(entries);",
    "std::vector<std::pair<std::string, std::string>> entries; (void)store.multi_set(entries);",
    '(void)store.multi_set({{"a", "1"}, {"b", "2"}});',
    "std::vector<std::string> keys; store.multi_get_async(keys, 5s, [](const auto&) {});",
)

CASES = VERDICTS + ARGUMENTS + TYPES + (
    Case("the older ABI of libstdc++", "", "",
         "Muster needs libstdc++'s C++11 ABI: compile without -D_GLIBCXX_USE_CXX11_ABI=0",
         options=("-D_GLIBCXX_USE_CXX11_ABI=0",)),
)
