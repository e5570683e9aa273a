#include "muster/codec_cereal.h"
#include "muster/codec_json.h"
#include "support/ranks.h"

// What calls on objects say of streams, and what they leave for the next call.

namespace muster::test {
namespace {

using Group = StatelessProcessGroup;

/// A group of one: this rank sends to itself.
struct Alone {
  Server server = start_server();
  Store store = connect(server);
  Group group = join(store, "g", 0, 1);
};

StreamPosition at(std::uint64_t tag, std::uint64_t sequence) { return {0, 0, tag, sequence}; }

TEST_CASE("a receive without an object says which tags have some") {
  Alone alone;
  Group& group = alone.group;
  must(group.send_obj(Rank{0}, 1));
  must(group.send_obj(Rank{0}, 2, Tag{7}));
  must(group.send_obj(Rank{0}, 3, Tag{7}));
  const Error late = must_fail(group.recv_obj<int>(Rank{0}, Tag{30}, 50ms));
  CHECK(late.code == ErrorCode::timed_out);
  CHECK(late.detail.find("tag 0 has 1 object") != std::string::npos);
  CHECK(late.detail.find("tag 7 has 2 objects") != std::string::npos);
  const Error absent = must_fail(group.recv_obj<int>(Rank{0}, Tag{30}, 0s));
  CHECK(absent.code == ErrorCode::not_found);
  CHECK(absent.detail.find("tag 0 has 1 object") != std::string::npos);
  CHECK(must(group.recv_obj<int>(Rank{0})) == 1);
  CHECK(must(group.recv_obj<int>(Rank{0}, Tag{7})) == 2);
  // What was received is not told of, though it is not acknowledged yet.
  const Error later = must_fail(group.recv_obj<int>(Rank{0}, Tag{30}, 0s));
  CHECK(later.detail.find("tag 0") == std::string::npos);
  CHECK(later.detail.find("tag 7 has 1 object") != std::string::npos);
}

TEST_CASE("every error of a stream says where in the stream the call was") {
  Alone alone;
  Group& group = alone.group;
  must(group.send_obj(Rank{0}, 1, Tag{7}));
  must(group.recv_obj<int>(Rank{0}, Tag{7}));
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{7}, 0s)).stream == at(7, 1));
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{7}, 50ms)).stream == at(7, 1));
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{7}, -5s)).stream == at(7, 1));
  const std::string large(alone.store.limits().value_bytes_max, 'x');
  CHECK(must_fail(group.send_obj(Rank{0}, large, Tag{7})).stream == at(7, 1));
  CHECK(must_fail(group.send_obj<JsonCodec>(Rank{0}, "\xff", Tag{7})).stream == at(7, 1));
  // Of a rank that is not there, there is no stream.
  CHECK_FALSE(must_fail(group.recv_obj<int>(Rank{1})).stream.has_value());
  CHECK_FALSE(must_fail(group.barrier(-5s)).stream.has_value());

  Call waiting = group.recv_bytes_async(Rank{0}, codec_id::raw, Tag{8}, 20s, [](const auto&) {});
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{8})).code == ErrorCode::busy);
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{8})).stream == at(8, 0));
  waiting.cancel();
  must(group.leave());
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{7})).stream == at(7, 1));
  CHECK(must_fail(group.send_obj(Rank{0}, 1, Tag{7})).stream == at(7, 1));
}

}  // namespace
}  // namespace muster::test
