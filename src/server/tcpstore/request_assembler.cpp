#include "server/tcpstore/request_assembler.h"

#include <algorithm>
#include <utility>

#include "core/session/failure.h"

namespace muster::server::tcpstore {
namespace {

/// A longer field is a value, with which its request ends.
constexpr std::size_t list_field_bytes = 4096;

}  // namespace

Result<std::size_t> RequestAssembler::next(Request& into) {
  drop_cut();
  if (!stored().empty()) return next_stored(into);
  const Result<std::size_t> read = reader_.read(given(), into);
  if (!read) return read.error();
  if (*read != 0) {
    cut_given(*read);
    return *read;
  }
  if (given().empty()) return 0;
  return next_stored(into);
}

/// Completes the request that is stored in part, from what was given. No byte of the next one is
/// stored with it, so that its value can be taken over.
Result<std::size_t> RequestAssembler::next_stored(Request& into) {
  for (;;) {
    const std::size_t wanted = reader_.bytes_min();
    if (stored().size() < wanted) {
      if (given().empty()) return 0;
      const std::size_t missing = wanted - stored().size();
      // Of a list nobody knows how long it will be: its memory doubles.
      const bool is_list = reader_.field_bytes() < list_field_bytes;
      const std::size_t expected = is_list ? std::max(wanted, 2 * stored().size()) : wanted;
      if (!store(missing, expected, core::Charging::normal)) {
        return core::memory_exhausted(quota(), wanted);
      }
      if (stored().size() < wanted) return 0;
    }
    const Result<std::size_t> read = reader_.read(stored(), into);
    if (!read) return read.error();
    if (*read == 0) continue;
    cut_stored(*read);
    return *read;
  }
}

std::span<char> RequestAssembler::room() {
  drop_cut();
  const std::size_t wanted = reader_.bytes_min();
  if (!given().empty() || wanted < stored().size()) return {};
  return room_for(wanted - stored().size());
}

bool RequestAssembler::has_part_only() const {
  return not_cut().size() + given().size() < reader_.bytes_min();
}

}  // namespace muster::server::tcpstore
