#include <array>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/little_endian.h"
#include "fuzz.h"
#include "support/tcpstore_bytes.h"
#include "support/tcpstore_guest.h"

// Clients of TCPStore's at an engine: some say anything, some only what clients say, all in any
// pieces; there is no room for answers now and then, time passes, connections end. What holds
// whatever they do: those who say what clients say are answered in order, but for waits; as many
// wait as have asked to; nothing is left when all are gone.

using namespace muster;
using namespace std::chrono_literals;
using fuzz::require;
namespace tcpstore = test::tcpstore;

namespace {

using test::TcpStoreGuest;
using test::TcpStoreGuests;
using Dialect = server::tcpstore::Dialect;

core::Options options(std::uint8_t choice) {
  core::Options options;
  options.memory_bytes_max = (choice & 1) != 0 ? 40'000 : 1U << 20;
  options.namespace_memory_bytes_max = (choice & 2) != 0 ? 30'000 : 1U << 20;
  options.limits.parked_waits_max = (choice & 4) != 0 ? 2 : 16;
  options.sessions_max = 5;
  options.list_slots_per_page = 2;
  options.work_per_event_max = 3;
  options.limits.key_bytes_max = 40;
  options.limits.value_bytes_max = 12'000;
  options.guest_keys_max = 5;
  return options;
}

/// What is sent back for a request.
enum class Answer { nothing, byte, nonce, number, text, texts, popped, list, later, cancelled };

struct Asked {
  Answer answer;
  std::size_t count = 1;  ///< of texts
};

/// Whether `bytes` are the answers of `asked`, in their order, with those of waits between them.
class Parse {
 public:
  Parse(std::string_view bytes, const std::vector<Asked>& asked) : bytes_(bytes), asked_(asked) {}

  /// is_complete  all that was asked is answered; else the last answers may be missing
  bool run(bool is_complete) {
    add(0, 0, 0);
    while (!left_.empty()) {
      const auto [index, at, waiting] = left_.back();
      left_.pop_back();
      if (at == bytes_.size() && (index == asked_.size() || !is_complete)) return true;
      if (waiting > 0 && at < bytes_.size() && bytes_[at] == '\0') add(index, at + 1, waiting - 1);
      if (index < asked_.size() && step(index, at, waiting) && !is_complete) return true;
    }
    return false;
  }

 private:
  using State = std::tuple<std::size_t, std::size_t, std::size_t>;

  void add(std::size_t index, std::size_t at, std::size_t waiting) {
    if (seen_.emplace(index, at, waiting).second) left_.emplace_back(index, at, waiting);
  }

  /// returns  whether the bytes end in the midst of the answer
  bool step(std::size_t index, std::size_t at, std::size_t waiting) {
    const Asked& asked = asked_[index];
    at_ = at;
    is_short_ = false;
    switch (asked.answer) {
      case Answer::nothing: break;
      case Answer::later: ++waiting; break;
      case Answer::byte: pass(1); break;
      case Answer::nonce: pass(4); break;
      case Answer::number: pass(8); break;
      case Answer::text: pass_texts(1); break;
      case Answer::texts: pass_texts(asked.count); break;
      case Answer::popped: pass_texts(pass_number() > 0 ? 1 : 0); break;
      case Answer::list: pass_texts(pass_number()); break;
      case Answer::cancelled:
        waiting = 0;
        if (at < bytes_.size() && bytes_[at] != '\1') return false;
        pass(1);
        break;
    }
    if (!is_short_) add(index + 1, at_, waiting);
    return is_short_;
  }

  void pass(std::uint64_t count) {
    is_short_ = is_short_ || bytes_.size() - at_ < count;
    if (!is_short_) at_ += count;
  }
  std::uint64_t pass_number() {
    const std::size_t at = at_;
    pass(8);
    return is_short_ ? 0 : base::from_little_endian<std::uint64_t>(bytes_.data() + at);
  }
  void pass_texts(std::uint64_t count) {
    for (; count > 0 && !is_short_; --count) pass(pass_number());
  }

  const std::string_view bytes_;
  const std::vector<Asked>& asked_;
  std::set<State> seen_;
  std::vector<State> left_;
  std::size_t at_ = 0;
  bool is_short_ = false;
};

struct Client {
  TcpStoreGuest& guest;
  const bool is_wild;
  std::vector<Asked> asked{};
};

class Play {
 public:
  explicit Play(fuzz::Input& input) : Play(input, input.byte()) {}

  void step() {
    const std::size_t kind = input_.below(16);
    if (kind == 0 || clients_.empty()) return connect();
    Client& client = clients_[input_.below(clients_.size())];
    switch (kind) {
      case 1: leave(client); break;
      case 2: guests_.pass(input_.below(4) * 1s); break;
      case 3: client.guest.steps_left = input_.below(4); break;
      case 4: client.guest.has_turns = input_.below(2) != 0; break;
      case 5: guests_.go_on(client.guest); break;
      case 6: guests_.go_on(client.guest, 1); break;
      default: client.is_wild ? say_anything(client) : ask(client); break;
    }
    look();
  }

  void finish() {
    for (Client& client : clients_) {
      client.guest.has_turns = false;
      guests_.go_on(client.guest);
    }
    look();
    for (Client& client : clients_) {
      leave(client);
      guests_.drop(client.guest);
    }
    guests_.pass(10s);
    const core::Counts counts = guests_.engine.counts();
    require(counts.sessions == 0 && counts.connections == 0, "no session is left");
    require(counts.keys == 0, "no key is left");
    require(counts.waits == 0 && counts.cached_results == 0, "no request is left");
    require(counts.timers == 0, "no timer is left");
    require(counts.memory_bytes == 0, "no memory is charged");
  }

 private:
  Play(fuzz::Input& input, std::uint8_t choice)
      : input_(input), guests_(options(choice), static_cast<Dialect>((choice >> 5) % 3)) {
    guests_.terms.idle_lifetime = 2s;
    if ((choice & 16) != 0) guests_.terms.limits.memory_bytes = 20'000;
  }

  void connect() {
    if (clients_.size() == 8) return;
    const bool is_wild = input_.below(4) == 0;
    TcpStoreGuest& guest = guests_.connect(input_.below(4) == 0 ? "other" : "job");
    clients_.push_back(Client{guest, is_wild});
    if (!is_wild || input_.below(2) == 0) say(clients_.back(), tcpstore::validate);
  }

  void leave(Client& client) {
    judge(client);
    guests_.disconnect(client.guest);
  }

  void say(Client& client, std::string_view bytes) {
    for (std::size_t pieces = input_.below(4); pieces > 0 && bytes.size() > 1; --pieces) {
      const std::size_t cut = 1 + input_.below(bytes.size() - 1);
      guests_.say(client.guest, bytes.substr(0, cut));
      bytes.remove_prefix(cut);
    }
    guests_.say(client.guest, bytes);
  }

  void say_anything(Client& client) { say(client, input_.bytes(1 + input_.below(64))); }

  std::string key() {
    constexpr std::array<const char*, 5> keys = {"/a", "/b", "init/", "/prefix/a", "c"};
    return keys[input_.below(keys.size())];
  }
  std::string value() {
    switch (input_.below(6)) {
      case 0: return {};
      case 1: return "word";
      case 2: return std::string(5000, 'v');
      default: return std::to_string(input_.below(3));
    }
  }
  tcpstore::Keys keys() {
    tcpstore::Keys keys(input_.below(5));
    for (std::string& one : keys) one = key();
    return keys;
  }

  void ask(Client& client) {
    const auto say_and_expect = [&](const std::string& bytes, Answer answer,
                                    std::size_t count = 1) {
      if (client.guest.is_open()) client.asked.push_back({answer, count});
      say(client, bytes);
    };
    switch (input_.below(18)) {
      case 0: return say_and_expect(tcpstore::ping(9), Answer::nonce);
      case 1: return say_and_expect(tcpstore::set(key(), value()), Answer::nothing);
      case 2: return say_and_expect(tcpstore::get(key()), Answer::text);
      case 3: return say_and_expect(tcpstore::compare_set(key(), value(), value()), Answer::text);
      case 4: return say_and_expect(tcpstore::add("/n" + key(), 1), Answer::number);
      case 5: return say_and_expect(tcpstore::add(key(), -1), Answer::number);
      case 6: return say_and_expect(tcpstore::check(keys()), Answer::byte);
      case 7: return say_and_expect(tcpstore::wait(keys()), Answer::later);
      case 8: return say_and_expect(tcpstore::count_keys, Answer::number);
      case 9: return say_and_expect(tcpstore::delete_key(key()), Answer::number);
      case 10: return say_and_expect(tcpstore::append(key(), value()), Answer::nothing);
      case 11: {
        const tcpstore::Keys asked = keys();
        return say_and_expect(tcpstore::multi_get(asked), Answer::texts, asked.size());
      }
      case 12: {
        tcpstore::Entries entries;
        for (std::string& one : keys()) entries.emplace_back(std::move(one), value());
        return say_and_expect(tcpstore::multi_set(entries), Answer::nothing);
      }
      case 13: return say_and_expect(tcpstore::cancel_wait, Answer::cancelled);
      case 14: return say_and_expect(tcpstore::push(key(), value()), Answer::nothing);
      case 15: return say_and_expect(tcpstore::pop(key()), Answer::popped);
      case 16: return say_and_expect(tcpstore::list_keys, Answer::list);
      default:
        return say_and_expect(
            tcpstore::barrier("/barrier", static_cast<std::int64_t>(input_.below(8))),
            Answer::later);
    }
  }

  void judge(const Client& client) {
    if (client.is_wild) return;
    const bool is_complete = client.guest.is_open() && !client.guest.is_postponed;
    require(Parse(client.guest.replies.bytes, client.asked).run(is_complete),
            "who says what clients say is answered in order");
  }

  void look() {
    std::uint64_t waiting = 0;
    for (const Client& client : clients_) {
      if (client.guest.is_open()) waiting += client.guest.state.conversation.waits_count();
    }
    require(guests_.engine.counts().waits == waiting, "those wait who have asked to");
  }

  fuzz::Input& input_;
  TcpStoreGuests guests_;
  std::vector<Client> clients_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Play play(input);
  while (!input.is_over()) play.step();
  play.finish();
  return 0;
}
