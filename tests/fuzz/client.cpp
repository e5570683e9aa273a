#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "any_request.h"
#include "fuzz.h"
#include "golden/again.h"
#include "unit/client/conversation.h"

// The client's protocol with a server that says anything, at any time, while its application calls
// anything: every call ends once, and by its deadline and the slack; what is sent is what a server
// can read, within the limits that it gave; and nothing keeps the client busy.

using namespace muster;
using namespace muster::client::protocol;
using fuzz::require;
using ProtocolInput = client::protocol::Input;

namespace {

Options options() {
  Options options;
  options.where = "server";
  return options;
}

/// Reads what the client sends on one connection.
class Reader {
 public:
  void begin() {
    is_greeted_ = false;
    rest_.clear();
  }

  void read(std::string_view bytes, const wire::ServerLimits& limits) {
    rest_ += bytes;
    if (!is_greeted_) {
      require(rest_.size() >= wire::client_hello_bytes, "the hello is first, and whole");
      require(wire::decode_client_hello(rest_.substr(0, wire::client_hello_bytes)).has_value(),
              "it is a hello");
      rest_.erase(0, wire::client_hello_bytes);
      is_greeted_ = true;
    }
    for (;;) {
      const auto frame = wire::cut_frame(rest_, limits.request_bytes_max());
      require(frame.has_value(), "what is sent are frames within the limits");
      if (!*frame) break;
      const golden::Again again = golden::again_from_client((*frame)->header);
      require(again != nullptr, "they are of a kind that clients send");
      const std::size_t bytes_of_frame = wire::frame_header_bytes + (*frame)->body.size();
      const std::string_view whole = std::string_view(rest_).substr(0, bytes_of_frame);
      const Result<std::string> encoded = again(whole);
      require(encoded.has_value() && *encoded == whole, "a server can read them");
      rest_.erase(0, bytes_of_frame);
    }
    require(rest_.empty(), "they are whole");
  }

 private:
  bool is_greeted_ = false;
  std::string rest_;
};

class Play {
 public:
  explicit Play(fuzz::Input& input) : input_(input), protocol_(options()) {
    protocol_.open(now_);
    look();
  }

  void step() {
    switch (input_.below(18)) {
      case 0: return apply(Connected{"server"});
      case 1: return apply(ConnectFailed{static_cast<ConnectFailure>(input_.below(3)), ""});
      case 2: return receive(input_.bytes(input_.byte()));
      case 3:
      case 4: return greet();
      case 5:
      case 6: return reply(0);
      case 7: return receive(error_bytes(any_id(), any_code()));
      case 8: return receive(event_bytes(any_kind(), any_code()));
      case 9: return frame(wire::FrameType::heartbeat_reply, 0, input_.wild());
      case 10: return frame(wire::FrameType::part, 0, any_id());
      case 11: return frame(static_cast<wire::FrameType>(input_.byte()), any_number(), any_id());
      case 12: return apply(Disconnected{input_.below(2) == 0, ""});
      case 13:
      case 14: return pass();
      case 15: return end();
      default: return submit();
    }
  }

  void finish() {
    Instant last = now_;
    for (const auto& [id, deadline] : pending_) last = std::max(last, deadline);
    now_ = last + slack_max_ + Duration(1);
    apply(Advance{});
    require(pending_.empty(), "no call is left behind its deadline");
    protocol_.close(now_);
    look();
    pending_.emplace(protocol_.submit(wire::Get{"k"}, Duration(1), now_), now_);
    look();
    require(pending_.empty(), "calls of a closed store fail at once");
    require(protocol_.next_deadline() > now_, "a closed store waits for nothing");
  }

 private:
  std::uint64_t any_id() {
    const std::size_t id = input_.below(32);
    return id < 31 ? id : input_.wild();
  }
  std::uint16_t any_number() { return static_cast<std::uint16_t>(input_.wild()); }
  ErrorCode any_code() { return static_cast<ErrorCode>(input_.byte() % 100); }
  wire::EventKind any_kind() { return static_cast<wire::EventKind>(1 + input_.below(3)); }
  std::uint32_t any_limit(std::uint32_t usual) {
    return input_.below(8) == 7 ? static_cast<std::uint32_t>(input_.wild()) : usual;
  }

  void greet() {
    wire::ServerHello hello;
    hello.session_id = 1 + input_.below(2);
    hello.incarnation = 100 + input_.below(2);
    hello.resumed = input_.below(2) == 1;
    if (input_.below(8) == 7) hello.status = any_number();
    wire::ServerLimits& limits = hello.limits;
    limits.key_bytes_max = any_limit(limits.key_bytes_max);
    limits.value_bytes_max = any_limit(limits.value_bytes_max);
    limits.round_bytes_max = any_limit(1U << 20);
    limits.keys_per_operation_max = any_limit(limits.keys_per_operation_max);
    limits.cached_results_max = any_limit(3);
    limits.world_size_max = any_limit(limits.world_size_max);
    limits.heartbeat = Duration(any_limit(1'000'000));
    limits.session_timeout = Duration(any_limit(15'000'000));
    limits.slack = Duration(any_limit(500'000));
    if (input_.below(4) == 3) hello.hosting_process.id.bytes[0] = 1;
    std::string bytes;
    wire::append_server_hello(bytes, hello);
    receive(bytes, true);
  }

  void reply(std::uint16_t code) { frame(wire::FrameType::reply, code, any_id()); }
  void frame(wire::FrameType type, std::uint16_t code, std::uint64_t id) {
    receive(frame_bytes(type, code, id, input_.bytes(input_.below(32))));
  }

  /// In two pieces.
  void receive(std::string_view bytes, bool of_attempt = false) {
    const std::size_t first = std::min(input_.below(64), bytes.size());
    apply(Received{bytes.substr(0, first), of_attempt});
    apply(Received{bytes.substr(first), of_attempt});
  }

  void pass() {
    constexpr std::array<Duration, 6> steps = {Duration(1),          Duration(50'000),
                                               Duration(300'000),    Duration(1'000'000),
                                               Duration(15'000'000), Duration(3600'000'000)};
    const std::size_t index = input_.below(12);
    const Duration step = steps[index % steps.size()];
    if (index >= steps.size()) {
      now_ += step;  // the process did not run
      return apply(Advance{});
    }
    const Instant end = now_ + std::min(step, Duration(2'000'000));
    int looks = 0;
    while (protocol_.next_deadline() <= end) {
      now_ = std::max(now_, protocol_.next_deadline());
      apply(Advance{});
      require(++looks < 1000, "nothing keeps it busy");
    }
    now_ = end;
  }

  void submit() {
    constexpr std::array<Duration, 4> timeouts = {Duration(0), Duration(200'000),
                                                  Duration(5'000'000), Duration::max()};
    const Duration timeout = timeouts[input_.below(timeouts.size())];
    const wire::RequestBody body = fuzz::any_request(input_, epochs_);
    const CallId id = protocol_.submit(body, timeout, now_);
    require(pending_.emplace(id, base::deadline_after(now_, timeout)).second, "ids are new");
    look();
  }

  void end() {
    switch (input_.below(8)) {
      case 0: protocol_.open(now_); break;
      case 1: protocol_.close(now_); break;
      case 2: protocol_.open(now_); break;
      default: protocol_.cancel(any_id(), now_); break;
    }
    look();
  }

  void apply(const ProtocolInput& input) {
    protocol_.apply(input, now_);
    look();
    for (const auto& [id, deadline] : pending_) {
      require(now_ <= deadline + slack_max_, "no call waits past its deadline and the slack");
    }
  }

  void look() {
    std::vector<Effect> effects = protocol_.effects().take();
    submitted_ = std::max(submitted_, pending_.empty() ? 0 : pending_.rbegin()->first);
    // Each call may end and be sent, and each may be acknowledged or abandoned.
    require(effects.size() <= 64 + 4 * submitted_, "effects are bounded");
    for (const Effect& effect : effects) {
      std::visit([this](const auto& one) { look_at(one); }, effect);
    }
    require(protocol_.requests().count() == pending_.size(), "the calls are those that wait");
  }

  void look_at(const Complete& over) {
    require(pending_.erase(over.call) == 1, "a call ends once");
    if (over.reply.has_value()) require(over.fate == Fate::answered, "a value is an answer");
  }
  void look_at(const Transmit& sent) {
    Reader& reader = sent.of_attempt ? reader_of_attempt_ : reader_;
    reader.read(sent.bytes, protocol_.session().server().limits);
  }
  void look_at(const Established&) {
    reader_ = reader_of_attempt_;
    slack_max_ = std::max(slack_max_, protocol_.session().server().limits.slack);
  }
  void look_at(const Connect&) { reader_of_attempt_.begin(); }
  void look_at(const Disconnect&) {}
  void look_at(const Notify&) {}
  void look_at(const Log&) {}

  fuzz::Input& input_;
  Protocol protocol_;
  Instant now_{std::chrono::seconds(1000)};
  std::vector<std::uint64_t> epochs_{7};
  std::map<CallId, Instant> pending_;
  CallId submitted_ = 0;
  Duration slack_max_ = wire::ServerLimits{}.slack;
  Reader reader_;
  Reader reader_of_attempt_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Play play(input);
  while (!input.is_over()) play.step();
  play.finish();
  return 0;
}
