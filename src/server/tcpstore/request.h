#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "muster/result.h"

// What a client of TCPStore, the store of PyTorch's torch.distributed, says: a byte that tells
// which command it is, and the fields of that. Integers are little-endian; keys and values have
// their length before them, in 64 bits. A request has neither a length nor an id.

namespace muster::server::tcpstore {

enum class Command : std::uint8_t {
  validate,
  set,
  compare_set,
  get,
  add,
  check,
  wait,
  count_keys,
  delete_key,
  append,
  multi_get,
  multi_set,
  cancel_wait,
  ping,
  queue_push,
  queue_pop,
  queue_length,
  list_keys,
  barrier,
  watch_key,
};

/// As PyTorch's sources name it.
std::string_view name_of(Command command);

/// Whether the command changes nothing, so that it is for its answer alone.
bool only_asks(Command command);

/// How clients number their commands.
enum class Dialect : std::uint8_t {
  first,   ///< of PyTorch 1 and 2.0
  second,  ///< of PyTorch 2.1: other numbers from 7 on
  newest,  ///< which says VALIDATE before anything else
};

struct RequestLimits {
  std::uint32_t key_bytes_max = 0;
  std::uint32_t value_bytes_max = 0;
  std::uint32_t keys_max = 0;  ///< of one request
  std::uint64_t request_bytes_max = UINT64_MAX;
};

/// One request. Its views point into the bytes that it was read from.
struct Request {
  Command command = Command::ping;
  Dialect dialect = Dialect::newest;
  std::vector<std::string_view> keys;
  std::vector<std::string_view> values;  ///< of each key; of compare_set: expected, desired
  std::int64_t number = 0;               ///< what is added, a barrier's world_size, a ping's nonce
};

/// Reads the requests of one connection, whose bytes come in any pieces. It keeps no bytes, and
/// looks at each of them twice at most.
class RequestReader {
 public:
  /// fallback  of clients that do not begin with VALIDATE
  RequestReader(Dialect fallback, const RequestLimits& limits)
      : fallback_(fallback), limits_(limits) {}

  /// Reads the request with which `bytes` begin. While it is not whole, the same bytes come again,
  /// with more behind them.
  ///
  /// returns  how many bytes it has; 0: more have to come
  /// errors   protocol_error (no client says this), too_large (limit, actual). Nothing is read
  ///          any more
  Result<std::size_t> read(std::string_view bytes, Request& into);

  /// How many bytes the request that is not whole yet has at least.
  std::size_t bytes_min() const { return progress_.at + wanted_; }
  /// Of them, those of the field that is not whole yet.
  std::size_t field_bytes() const { return wanted_; }

 private:
  /// How far a request has been looked at.
  struct Progress {
    std::size_t at = 0;        ///< so many bytes; 0: its command is not known
    std::size_t field = 0;     ///< which is next
    std::uint64_t items = 0;   ///< of the list that is looked at, and are still to come
    bool is_in_list = false;   ///< its count is known
    bool is_at_value = false;  ///< the key of an entry was looked at
    Command command = Command::ping;
  };
  class Walk;

  std::optional<Error> choose_dialect(std::string_view bytes);

  const Dialect fallback_;
  const RequestLimits limits_;
  std::optional<Dialect> dialect_;  ///< nothing: too little has come
  Progress progress_;
  std::size_t wanted_ = 1;  ///< bytes behind `progress_.at`, to go on
};

}  // namespace muster::server::tcpstore
