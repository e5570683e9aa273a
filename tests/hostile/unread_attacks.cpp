// Attacks with values and frames of many lengths: what is queued for a connection, or stored of it,
// must not take more memory than is counted.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/little_endian.h"
#include "hostile/stage.h"

namespace muster::hostile {
namespace {

constexpr int receive_buffer_bytes = 4096;
/// Longer values are asked for fewer times: so many bytes are enough to be held.
constexpr std::uint64_t asked_bytes_max = 4U << 20;
/// Of unfinished requests, by all connections of a wave.
constexpr std::uint64_t sent_bytes_max = 128U << 20;
/// From here on a queued value is not copied; a worst case for what is counted.
constexpr std::uint64_t first_length = 2048;

using Lengths = std::vector<std::uint64_t>;

/// 2^k - 1, 2^k and 2^k + 1 up to `max`, and `count` random ones, in a random order.
Lengths lengths_up_to(std::uint64_t max, std::uint64_t count, std::mt19937_64& random) {
  Lengths lengths;
  for (std::uint64_t power = 1; power <= max; power *= 2) {
    for (const std::uint64_t length : {power - 1, power, power + 1}) {
      if (length <= max) lengths.push_back(length);
    }
  }
  std::uniform_real_distribution<double> exponent(0, std::log2(static_cast<double>(max)));
  for (; count > 0; --count) {
    lengths.push_back(static_cast<std::uint64_t>(std::exp2(exponent(random))));
  }
  std::shuffle(lengths.begin(), lengths.end(), random);
  return lengths;
}

/// How the attack speaks: Muster's protocol or TCPStore's.
class Speech {
 public:
  Speech(Stage& stage, Sources& sources) : stage_(stage), sources_(sources) {}
  virtual ~Speech() = default;

  virtual Client& open() = 0;
  virtual bool is_in(const Client& client) const = 0;
  virtual void set(Client& client, const std::string& key, std::string_view value) = 0;
  virtual void remove(Client& client, const std::string& key) = 0;
  virtual void get(Client& client, const std::string& key, std::uint64_t times) = 0;
  /// All but the last byte of a `set`.
  virtual void begin_set(Client& client, const std::string& key, std::string_view value) = 0;
  /// Whether all that `set` and `remove` have asked for is done.
  virtual bool is_settled(const Client& client) const = 0;

 protected:
  Client& connect() { return stage_.swarm.open(sources_.next(), receive_buffer_bytes); }
  Swarm& swarm() { return stage_.swarm; }
  wire::ClientHello hello() const { return stage_.hello(); }

 private:
  Stage& stage_;
  Sources& sources_;
};

class MusterSpeech final : public Speech {
 public:
  using Speech::Speech;

  Client& open() override {
    Client& client = connect();
    swarm().say_hello(client, hello());
    return client;
  }
  bool is_in(const Client& client) const override { return client.is_welcome(); }
  bool is_settled(const Client& client) const override { return client.in_flight == 0; }
  void set(Client& client, const std::string& key, std::string_view value) override {
    swarm().request(client, wire::Set{key, value, {}, false, false});
  }
  void remove(Client& client, const std::string& key) override {
    swarm().request(client, wire::Remove{{key}});
  }
  void get(Client& client, const std::string& key, std::uint64_t times) override {
    for (; times > 0 && client.is_open(); --times) swarm().request(client, wire::Get{key});
  }
  void begin_set(Client& client, const std::string& key, std::string_view value) override {
    wire::Request request;
    request.id = ++client.last_id;
    request.timeout = std::chrono::seconds(600);
    request.body = wire::Set{key, value, {}, false, false};
    std::string bytes;
    wire::append_request(bytes, request);
    bytes.pop_back();
    swarm().send(client, bytes);
  }
};

class TcpStoreSpeech final : public Speech {
 public:
  using Speech::Speech;

  Client& open() override {
    Client& client = connect();
    swarm().send(client, std::string("\0\xCE\xF7\x85\x3C", 5));
    return client;
  }
  bool is_settled(const Client& client) const override {
    return client.in.size() == client.in_flight * sizeof(std::uint64_t);
  }
  bool is_in(const Client& client) const override {
    return client.state == Client::State::connected;
  }
  void set(Client& client, const std::string& key, std::string_view value) override {
    swarm().send(client, set_request(key, value) + count_keys);  // a set has no answer
    ++client.in_flight;
  }
  void remove(Client& client, const std::string& key) override {
    swarm().send(client, asked(delete_key, key));
    ++client.in_flight;
  }
  void get(Client& client, const std::string& key, std::uint64_t times) override {
    const std::string request = asked(get_value, key);
    std::string all;
    for (; times > 0; --times) all += request;
    swarm().send(client, all);
  }
  void begin_set(Client& client, const std::string& key, std::string_view value) override {
    std::string bytes = set_request(key, value);
    bytes.pop_back();
    swarm().send(client, bytes);
  }

 private:
  static constexpr char set_value = 1;
  static constexpr char get_value = 3;
  static constexpr char count_keys = 7;
  static constexpr char delete_key = 8;

  static void put(std::string& out, std::string_view bytes) {
    const std::size_t at = out.size();
    out.resize(at + sizeof(std::uint64_t));
    base::to_little_endian(static_cast<std::uint64_t>(bytes.size()), out.data() + at);
    out += bytes;
  }
  static std::string asked(char what, const std::string& key) {
    std::string out(1, what);
    put(out, key);
    return out;
  }
  static std::string set_request(const std::string& key, std::string_view value) {
    std::string out = asked(set_value, key);
    put(out, value);
    return out;
  }
};

class Waves {
 public:
  Waves(Stage& stage, Speech& speech)
      : stage_(stage),
        speech_(speech),
        connections_(stage.number("connections", 4000)),
        requests_(stage.number("requests", 600)),
        wave_(stage.number("wave_ms", 1500)) {}

  /// One half of the connections asks for values of these lengths and never reads, the other sends
  /// parts of such values. All are closed when they have done so for a while.
  void run(const Lengths& lengths, bool with_parts) {
    Client& owner = *enter(1).front();
    const std::string bytes(*std::max_element(lengths.begin(), lengths.end()), 'x');
    const auto value = [&](std::uint64_t length) {
      return std::string_view(bytes).substr(0, length);
    };
    for (std::size_t index = 0; index < lengths.size(); ++index) {
      speech_.set(owner, key(index), value(lengths[index]));
    }
    settle(owner);
    const Swarm::Clients readers = enter(connections_);
    most_ = std::max<std::uint64_t>(
        most_,
        static_cast<std::uint64_t>(std::count_if(
            readers.begin(), readers.end(), [&](auto* client) { return speech_.is_in(*client); })));
    std::uint64_t sent_bytes = 0;
    for (std::size_t index = 0; index < readers.size(); ++index) {
      Client& client = *readers[index];
      if (!speech_.is_in(client)) continue;
      stage_.swarm.stop_reading(client);
      const std::size_t which = index / 2 % lengths.size();
      const std::uint64_t length = lengths[which];
      if (with_parts && index % 2 == 1 && sent_bytes + length <= sent_bytes_max) {
        sent_bytes += length;
        speech_.begin_set(client, "part" + std::to_string(index), value(length));
      } else {
        const std::uint64_t enough = asked_bytes_max / (length + 1) + 2;
        speech_.get(client, key(which), std::min(requests_, enough));
      }
      if (index % 64 == 0) stage_.swarm.turn(std::chrono::milliseconds(0));
    }
    pause(wave_);
    stage_.swarm.close(readers);
    for (std::size_t index = 0; index < lengths.size(); ++index) {
      speech_.remove(owner, key(index));
    }
    settle(owner);
    stage_.swarm.close(owner);
  }

  std::uint64_t most() const { return most_; }

 private:
  static std::string key(std::size_t index) { return "unread" + std::to_string(index); }

  Swarm::Clients enter(std::uint64_t count) {
    Swarm::Clients clients;
    for (; count > 0; --count) clients.push_back(&speech_.open());
    stage_.swarm.turn_until(
        [&] {
          return std::all_of(clients.begin(), clients.end(), [&](const Client* client) {
            return !client->is_open() || speech_.is_in(*client);
          });
        },
        std::chrono::seconds(30));
    return clients;
  }

  /// Until all that it has asked for is done.
  void settle(Client& client) {
    stage_.swarm.turn_until(
        [&] { return !client.is_open() || (client.unsent() == 0 && speech_.is_settled(client)); },
        std::chrono::seconds(30));
  }

  void pause(std::chrono::milliseconds length) {
    const auto until = Swarm::Time::now() + length;
    while (Swarm::Time::now() < until) stage_.swarm.turn();
  }

  Stage& stage_;
  Speech& speech_;
  const std::uint64_t connections_;
  const std::uint64_t requests_;
  const std::chrono::milliseconds wave_;
  std::uint64_t most_ = 0;
};

Figures attack(Stage& stage, Speech& speech) {
  const std::uint64_t seed = stage.number("seed", std::random_device()());
  std::mt19937_64 random(seed);
  const Lengths lengths =
      lengths_up_to(stage.number("value_bytes", 16U << 20), stage.number("lengths", 1000), random);
  const std::uint64_t at_once = stage.number("at_once", 200);
  Waves waves(stage, speech);
  stage.ready();
  waves.run({first_length}, false);
  for (std::size_t begin = 0; begin < lengths.size(); begin += at_once) {
    const std::size_t end = std::min<std::size_t>(begin + at_once, lengths.size());
    waves.run({lengths.begin() + static_cast<std::ptrdiff_t>(begin),
               lengths.begin() + static_cast<std::ptrdiff_t>(end)},
              true);
  }
  stage.hold();
  return {{"connections", waves.most()}, {"lengths", lengths.size() + 1}, {"seed", seed}};
}

}  // namespace

/// connections, requests  so many in each wave, which ask so many times or send parts, and read
///                        nothing
/// lengths, value_bytes   of values: powers of two and the numbers beside them, and so many random
///                        ones
/// at_once                the lengths of a wave
Figures unread(Stage& stage) {
  Sources sources = stage.sources();
  if (stage.number("tls", 0) != 0) stage.swarm.use_tls();
  MusterSpeech speech(stage, sources);
  return attack(stage, speech);
}

/// The same at the port for programs that use TCPStore.
Figures tcpstore_unread(Stage& stage) {
  Sources sources = stage.sources();
  TcpStoreSpeech speech(stage, sources);
  return attack(stage, speech);
}

}  // namespace muster::hostile
