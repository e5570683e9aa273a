// What the errors of every call say of whether it happened, in every way in which a call can end:
// each change, sent and not sent. Of reads nothing is said.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/operate.h"
#include "support/frame_proxy.h"
#include "support/ranks.h"
#include "support/raw_client.h"

namespace muster::test {
namespace {

using Group = StatelessProcessGroup;

/// How the calls of a store ended, by their names.
class Ends {
 public:
  template <class T>
  Handler<T> handler(const std::string& name) {
    return [this, name](Result<T> result) {
      const std::lock_guard lock(mutex_);
      if (!result.has_value()) {
        errors_[name] = result.error();
      } else {
        errors_[name] = std::nullopt;
      }
    };
  }
  std::map<std::string, std::optional<Error>> await_all(std::size_t count) {
    await([&] {
      const std::lock_guard lock(mutex_);
      return errors_.size() == count;
    });
    return std::exchange(errors_, {});
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::optional<Error>> errors_;
};

/// Calls of one kind, each with what it needs: a store, and a group of its own.
struct Subject {
  Store& store;
  Group& group;
  Duration timeout;
  Ends& ends;
};
using Begin = std::function<Call(const std::string& name, Subject& on)>;
using Calls = std::map<std::string, Begin>;

const std::vector<std::string_view> keys = {"a", "b"};
const std::vector<std::pair<std::string_view, std::string_view>> entries = {{"a", "1"}, {"b", "2"}};
const std::vector<std::string> objects = {"x"};
constexpr std::uint32_t codec = 300;

template <class T, class Start>
Begin begun_by(Start start) {
  return
      [start](const std::string& name, Subject& on) { return start(on, on.ends.handler<T>(name)); };
}

Calls changes_of_keys() {
  return {
      {"set", begun_by<bool>([](Subject& on, Handler<bool> handler) {
         return on.store.set_async("k", "v", {}, on.timeout, std::move(handler));
       })},
      {"take", begun_by<std::string>([](Subject& on, Handler<std::string> handler) {
         return on.store.take_async("never", on.timeout, std::move(handler));
       })},
      {"add", begun_by<std::int64_t>([](Subject& on, Handler<std::int64_t> handler) {
         return on.store.add_async("n", 1, on.timeout, std::move(handler));
       })},
      {"compare_set", begun_by<Compared>([](Subject& on, Handler<Compared> handler) {
         return on.store.compare_set_async("k", {}, "v", {}, on.timeout, std::move(handler));
       })},
      {"append", begun_by<std::uint64_t>([](Subject& on, Handler<std::uint64_t> handler) {
         return on.store.append_async("k", "v", on.timeout, std::move(handler));
       })},
      {"touch", begun_by<void>([](Subject& on, Handler<void> handler) {
         return on.store.touch_async("k", {}, on.timeout, std::move(handler));
       })},
      {"remove", begun_by<bool>([](Subject& on, Handler<bool> handler) {
         return on.store.remove_async("k", on.timeout, std::move(handler));
       })},
      {"multi_remove", begun_by<std::uint64_t>([](Subject& on, Handler<std::uint64_t> handler) {
         return on.store.multi_remove_async(keys, on.timeout, std::move(handler));
       })},
      {"multi_set", begun_by<void>([](Subject& on, Handler<void> handler) {
         return on.store.multi_set_async(entries, {}, on.timeout, std::move(handler));
       })},
      {"queue_push", begun_by<std::uint64_t>([](Subject& on, Handler<std::uint64_t> handler) {
         return on.store.queue_push_async("q", "item", on.timeout, std::move(handler));
       })},
      {"queue_pop", begun_by<std::string>([](Subject& on, Handler<std::string> handler) {
         return on.store.queue_pop_async("never", on.timeout, std::move(handler));
       })},
      {"report_dead", begun_by<void>([](Subject& on, Handler<void> handler) {
         return on.store.report_dead_async({{1}}, "", on.timeout, std::move(handler));
       })},
      {"drop_namespace", begun_by<std::uint64_t>([](Subject& on, Handler<std::uint64_t> handler) {
         return on.store.drop_namespace_async("another", on.timeout, std::move(handler));
       })},
  };
}

Calls changes_of_operators() {
  return {
      {"set_setting", begun_by<SettingInfo>([](Subject& on, Handler<SettingInfo> handler) {
         return set_setting_async(on.store, "log-level", 0, on.timeout, std::move(handler));
       })},
      {"end_session", begun_by<std::uint64_t>([](Subject& on, Handler<std::uint64_t> handler) {
         return end_session_async(on.store, 1, "", on.timeout, std::move(handler));
       })},
      {"drain", begun_by<std::uint64_t>([](Subject& on, Handler<std::uint64_t> handler) {
         return drain_async(on.store, std::nullopt, "", on.timeout, std::move(handler));
       })},
  };
}

Calls changes_of_groups() {
  using Values = std::vector<std::string>;
  return {
      {"send_obj", begun_by<void>([](Subject& on, Handler<void> handler) {
         return on.group.send_bytes_async(Rank{0}, codec, "x", Tag(), on.timeout,
                                          std::move(handler));
       })},
      {"barrier", begun_by<BarrierResult>([](Subject& on, Handler<BarrierResult> handler) {
         return on.group.barrier_async(on.timeout, std::move(handler));
       })},
      {"broadcast_obj", begun_by<std::string>([](Subject& on, Handler<std::string> handler) {
         return on.group.broadcast_bytes_async("x", codec, Rank{0}, on.timeout, std::move(handler));
       })},
      {"all_gather_obj", begun_by<Values>([](Subject& on, Handler<Values> handler) {
         return on.group.all_gather_bytes_async("x", codec, on.timeout, std::move(handler));
       })},
      {"gather_obj", begun_by<Values>([](Subject& on, Handler<Values> handler) {
         return on.group.gather_bytes_async("x", codec, Rank{0}, on.timeout, std::move(handler));
       })},
      {"scatter_obj", begun_by<std::string>([](Subject& on, Handler<std::string> handler) {
         return on.group.scatter_bytes_async(objects, codec, Rank{0}, on.timeout,
                                             std::move(handler));
       })},
      {"expire_data", begun_by<std::uint64_t>([](Subject& on, Handler<std::uint64_t> handler) {
         return on.group.expire_data_async({}, on.timeout, std::move(handler));
       })},
      {"interrupt", begun_by<void>([](Subject& on, Handler<void> handler) {
         return on.group.interrupt_async("a test says so", on.timeout, std::move(handler));
       })},
      {"regroup", begun_by<Group>([](Subject& on, Handler<Group> handler) {
         return on.group.regroup_async({}, on.timeout, std::move(handler));
       })},
      {"leave", begun_by<void>([](Subject& on, Handler<void> handler) {
         return on.group.leave_async(on.timeout, std::move(handler));
       })},
      {"create", begun_by<Group>([](Subject& on, Handler<Group> handler) {
         return Group::create_async(on.store, "another", 0, 1, patience(on.timeout),
                                    std::move(handler));
       })},
  };
}

Calls reads() {
  using Flags = std::vector<bool>;
  using Values = std::vector<std::optional<std::string>>;
  return {
      {"get", begun_by<std::string>([](Subject& on, Handler<std::string> handler) {
         return on.store.get_async("never", on.timeout, std::move(handler));
       })},
      {"exists", begun_by<bool>([](Subject& on, Handler<bool> handler) {
         return on.store.exists_async("k", on.timeout, std::move(handler));
       })},
      {"multi_exists", begun_by<Flags>([](Subject& on, Handler<Flags> handler) {
         return on.store.multi_exists_async(keys, on.timeout, std::move(handler));
       })},
      {"wait", begun_by<void>([](Subject& on, Handler<void> handler) {
         return on.store.wait_async(keys, on.timeout, std::move(handler));
       })},
      {"multi_get", begun_by<Values>([](Subject& on, Handler<Values> handler) {
         return on.store.multi_get_async(keys, on.timeout, std::move(handler));
       })},
      {"list", begun_by<KeyPage>([](Subject& on, Handler<KeyPage> handler) {
         return on.store.list_async("", 0, on.timeout, std::move(handler));
       })},
      {"get_settings", begun_by<std::vector<SettingInfo>>([](Subject& on, auto handler) {
         return inspect_settings_async(on.store, {}, on.timeout, std::move(handler));
       })},
      {"members", begun_by<std::vector<MemberInfo>>([](Subject& on, auto handler) {
         return on.group.members_async(on.timeout, std::move(handler));
       })},
      {"recv_obj", begun_by<ReceivedBytes>([](Subject& on, Handler<ReceivedBytes> handler) {
         return on.group.recv_bytes_async(Rank{0}, codec, Tag(), on.timeout, std::move(handler));
       })},
  };
}

Calls all_calls() {
  Calls all = changes_of_keys();
  all.merge(changes_of_operators());
  all.merge(changes_of_groups());
  all.merge(reads());
  return all;
}

/// A store on its way through a proxy, with all calls begun on it, sent or not.
class Scene {
 public:
  enum class Leg { sent, unsent };

  explicit Scene(ServerOptions options) : server_(start_disturbed_server(std::move(options))) {
    proxy_.emplace(server_->addresses().front());
    StoreOptions store_options;
    store_options.logger = [this](LogLevel, std::string_view line) {
      if (line.find(" ended: ") != std::string_view::npos) has_lost_connection_ = true;
    };
    store_.emplace(connect(proxy_->address(), store_options));
    for (const auto& [name, begin] : calls_) groups_.emplace(name, join(*store_, name, 0, 1));
  }

  Store& store() { return *store_; }
  FrameProxy& proxy() { return *proxy_; }
  const Server& server() const { return *server_; }
  std::vector<Call>& begun() { return begun_; }

  /// Nothing passes from here on; `unsent`: nor is there a connection.
  void begin(Leg leg, Duration timeout = 60s) {
    leg_ = leg;
    proxy_->pause();
    if (leg == Leg::unsent) {
      proxy_->cut();
      await([this] { return has_lost_connection_.load(); });
    }
    for (const auto& [name, begin] : calls_) {
      Subject on{*store_, groups_.at(name), timeout, ends_};
      begun_.push_back(begin(name, on));
    }
  }

  /// The next connection that the client makes gets through.
  void let_through() {
    proxy_->cut();
    proxy_->resume();
  }

  /// Another incarnation, at the same address.
  void restart_server() {
    ServerOptions same;
    same.listen = server_->addresses();
    server_.reset();
    server_.emplace(start_disturbed_server(same));
  }

  /// All calls have failed, each with one of the codes, and say what they must.
  void check_ends(const std::vector<ErrorCode>& codes) {
    const Calls unchanging = reads();
    for (const auto& ended : ends_.await_all(calls_.size())) {
      const auto& name = ended.first;
      const auto& error = ended.second;
      CAPTURE(name);
      REQUIRE(error.has_value());
      CAPTURE(error->message());
      CHECK(error->operation == name);
      CHECK(std::find(codes.begin(), codes.end(), error->code) != codes.end());
      const Happened of_change = leg_ == Leg::sent ? Happened::maybe : Happened::no;
      CHECK(error->happened == (unchanging.count(name) == 1 ? Happened::unsaid : of_change));
    }
  }

 private:
  const Calls calls_ = all_calls();
  std::optional<Server> server_;
  std::optional<FrameProxy> proxy_;
  std::atomic<bool> has_lost_connection_{false};
  Ends ends_;
  std::optional<Store> store_;
  std::map<std::string, Group> groups_;
  std::vector<Call> begun_;
  Leg leg_ = Leg::sent;
};

constexpr Scene::Leg both_legs[] = {Scene::Leg::sent, Scene::Leg::unsent};

/// Each loss of a connection costs the session a grace; here that is never what ends it.
ServerOptions patient() {
  ServerOptions options;
  options.grace = 15s;
  return options;
}

}  // namespace

TEST_CASE("a call that is cancelled says whether it happened") {
  for (const auto leg : both_legs) {
    for (const bool one_by_one : {true, false}) {
      Scene scene(patient());
      scene.begin(leg);
      if (one_by_one) {
        for (Call& call : scene.begun()) call.cancel();
      } else {
        scene.store().cancel();
      }
      // Rounds and regroups, which are others' calls, too, and what was sent of them.
      scene.check_ends({ErrorCode::cancelled, ErrorCode::outcome_unknown});
    }
  }
}

TEST_CASE("a call whose store is closed says whether it happened") {
  for (const auto leg : both_legs) {
    Scene scene(patient());
    scene.begin(leg);
    scene.store().close();
    scene.check_ends({ErrorCode::closed});
  }
}

TEST_CASE("a call whose answer does not come in time says whether it happened") {
  for (const auto leg : both_legs) {
    Scene scene(patient());
    scene.begin(leg, 100ms);
    scene.check_ends(
        {leg == Scene::Leg::sent ? ErrorCode::outcome_unknown : ErrorCode::unavailable});
  }
}

TEST_CASE("a call of a store that is cut off says whether it happened") {
  for (const bool is_hosted : {true, false}) {
    for (const auto leg : both_legs) {
      ServerOptions options = patient();
      options.session_timeout = 5s;
      options.grace = 5s;
      options.standalone = !is_hosted;
      Scene scene(options);
      scene.begin(leg);
      scene.check_ends({is_hosted ? ErrorCode::unavailable : ErrorCode::suspended});
    }
  }
}

TEST_CASE("a call whose session is over says whether it happened") {
  for (const auto leg : both_legs) {
    ServerOptions options;
    options.grace = 100ms;
    Scene scene(options);
    auto observer = connect(scene.server());
    scene.begin(leg);
    scene.proxy().cut();
    await([&] { return held_count(observer, "sessions") == 1; });
    scene.proxy().resume();
    scene.check_ends({ErrorCode::session_expired});
  }
}

TEST_CASE("a call of a process that was declared dead says whether it happened") {
  for (const auto leg : both_legs) {
    Scene scene(patient());
    scene.begin(leg);
    RawClient supervisor(scene.server().addresses().front());
    wire::ClientHello hello;
    hello.role = wire::Role::supervisor;
    REQUIRE(supervisor.say_hello(hello).status == 0);
    const wire::ReportDead report{scene.store().process().id, "a test says so"};
    REQUIRE(supervisor.call(report).header.code == 0);
    scene.let_through();
    scene.check_ends({ErrorCode::fenced});
  }
}

TEST_CASE("a call whose server was restarted says whether it happened") {
  for (const auto leg : both_legs) {
    Scene scene(patient());
    scene.begin(leg);
    scene.proxy().cut();
    scene.restart_server();
    scene.let_through();
    scene.check_ends({ErrorCode::server_restarted});
  }
}

TEST_CASE("a call that the server refuses did not happen") {
  ServerOptions options;
  options.memory_bytes_max = 4U << 20;
  auto server = start_disturbed_server(options);
  auto store = connect(server);
  const auto check_refused = [](const Error& error, ErrorCode code) {
    CAPTURE(error.message());
    CHECK(error.code == code);
    CHECK(error.decided_by == "server");
    CHECK(error.happened == Happened::no);
  };
  must(store.set("text", std::string(1'500'000, 'x')));
  const std::string much(3'000'000, 'x');
  check_refused(must_fail(store.set("k", much)), ErrorCode::resource_exhausted);
  check_refused(must_fail(store.multi_set({{"k", much}})), ErrorCode::resource_exhausted);
  check_refused(must_fail(store.append("text", much)), ErrorCode::resource_exhausted);
  check_refused(must_fail(store.compare_set("k", {}, much)), ErrorCode::resource_exhausted);
  check_refused(must_fail(store.add("text", 1)), ErrorCode::not_a_number);
  check_refused(must_fail(store.touch("none", {})), ErrorCode::not_found);
  check_refused(must_fail(store.take("none", 0s)), ErrorCode::not_found);
  check_refused(must_fail(store.take("none", 20ms)), ErrorCode::timed_out);
  check_refused(must_fail(store.report_dead({{1}}, "")), ErrorCode::permission_denied);
  check_refused(must_fail(store.drop_namespace("another")), ErrorCode::permission_denied);
  check_refused(must_fail(set_setting(store, "parked-waits-max", 1)), ErrorCode::permission_denied);
  check_refused(must_fail(end_session(store, 1, "")), ErrorCode::permission_denied);
  check_refused(must_fail(drain(store, std::nullopt, "")), ErrorCode::permission_denied);
  check_refused(must_fail(Group::create(store, "g", 0, 2, patience(20ms))), ErrorCode::timed_out);

  run_ranks(2, [&](int rank) {
    auto own = connect(server);
    Group group = join(own, "g", rank, 2);
    if (rank == 1) return must(own.wait({"over"}));
    check_refused(must_fail(group.barrier(20ms)), ErrorCode::timed_out);
    check_refused(must_fail(group.regroup({}, 20ms)), ErrorCode::timed_out);
    check_refused(must_fail(group.send_bytes(Rank{1}, codec, much)), ErrorCode::resource_exhausted);
    must(store.set("over", ""));
  });
}

/// Refuses what it is to encode, or to decode.
template <bool encodes>
struct RefusingCodec {
  static constexpr std::uint32_t id = codec;
  static Error refusal() {
    Error error;
    error.code = ErrorCode::codec_failure;
    return error;
  }
  template <class T>
  static Result<std::string> encode(const T&) {
    if (!encodes) return refusal();
    return std::string("x");
  }
  template <class T>
  static Result<T> decode(std::string_view) {
    return refusal();
  }
};

TEST_CASE(
    "a call whose codec refuses the object did not happen, one whose answer it does may have") {
  using NoEncoding = RefusingCodec<false>;
  using NoDecoding = RefusingCodec<true>;
  auto server = start_server();
  auto store = connect(server);
  Group group = join(store, "g", 0, 1);
  CHECK(must_fail(group.send_obj<NoEncoding>(Rank{0}, 1)).happened == Happened::no);
  CHECK(must_fail(group.broadcast_obj<NoEncoding>(1, Rank{0})).happened == Happened::no);
  CHECK(must_fail(group.all_gather_obj<NoEncoding>(1)).happened == Happened::no);
  CHECK(must_fail(group.broadcast_obj<NoDecoding>(1, Rank{0})).happened == Happened::maybe);
  CHECK(must_fail(group.gather_obj<NoDecoding>(1, Rank{0})).happened == Happened::maybe);
  must(group.send_obj<NoDecoding>(Rank{0}, 1));
  const Error error = must_fail(group.recv_obj<int, NoDecoding>(Rank{0}));
  CHECK(error.code == ErrorCode::codec_failure);
  CHECK(error.happened == Happened::unsaid);
}

TEST_CASE("a call that is refused before it is sent did not happen") {
  auto server = start_server();
  auto store = connect(server);
  Group group = join(store, "g", 0, 1);
  const auto check_refused = [](const Error& error, ErrorCode code) {
    CAPTURE(error.message());
    CHECK(error.code == code);
    CHECK(error.happened == Happened::no);
  };
  check_refused(must_fail(store.set("", "v")), ErrorCode::invalid_argument);
  check_refused(must_fail(store.add("k", 1, Duration(-2))), ErrorCode::invalid_argument);
  check_refused(must_fail(store.append(std::string(2000, 'k'), "")), ErrorCode::too_large);
  check_refused(must_fail(group.send_bytes(Rank{7}, codec, "")), ErrorCode::invalid_argument);
  check_refused(must_fail(Group::create(store, "g", 3, 2)), ErrorCode::invalid_argument);
  check_refused(must_fail(Group::create("127.0.0.1", 0, 1, 2)), ErrorCode::invalid_argument);
  CHECK(must_fail(store.get("")).happened == Happened::unsaid);
  CHECK(must_fail(Store::connect("no address")).happened == Happened::unsaid);

  Group other = std::move(group);
  check_refused(must_fail(group.barrier()), ErrorCode::closed);
  Store moved = std::move(store);
  check_refused(must_fail(store.remove("k")), ErrorCode::closed);
  CHECK(must_fail(store.get("k")).happened == Happened::unsaid);
  moved.close();
  check_refused(must_fail(moved.take("k")), ErrorCode::closed);
  check_refused(must_fail(other.send_bytes(Rank{0}, codec, "")), ErrorCode::closed);
}

}  // namespace muster::test
