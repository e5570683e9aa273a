#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/memory/payload.h"
#include "core/session/backlog.h"
#include "core/session/effects.h"

namespace muster::core {

/// A part of a long copy: a text, then the bytes of a payload, if any.
struct CopyPart {
  std::string text;
  Payload value;

  std::size_t size() const { return text.size() + (value ? value->view().size() : 0); }
};

/// Payloads that are put together from others and take longer than one event. Each is there at
/// once, as long as it will be, and its bytes follow, one payload after the other. Who gets one has
/// its reply when it is whole.
class LongCopies final : public Backlog::Job {
 public:
  static constexpr std::uint64_t bytes_per_step = 4096;

  /// All outlive it. What is done is added to `work`, replies that become due to `effects`.
  LongCopies(Backlog& backlog, std::vector<Effect>& effects, std::uint64_t& work)
      : backlog_(backlog), effects_(effects), work_(work) {}

  /// Begins one. Null: the quota refuses, or the system.
  ///
  /// charging  always: charged as its bytes come, while the parts give back what they are charged.
  ///           Of all copies only one grows at a time, so that at most one part is there twice;
  ///           else as a whole, now
  Payload begin(Quota& quota, std::vector<CopyPart> parts, Charging charging);

  bool empty() const { return copies_.empty(); }
  /// For whoever needs its bytes now.
  void make_whole(const Payload& payload);
  /// Holds the reply back if it has a payload that is not whole. Returns whether it does.
  bool hold(SendReply& reply);
  /// The connection is over.
  void forget(ConnectionId connection);
  /// Lets go of everything; what was begun stays as it is.
  void clear();

  int work(int work_max) override;

 private:
  class Growing;
  struct Copy {
    std::shared_ptr<Growing> whole;
    std::vector<CopyPart> parts;
    std::size_t part = 0;  ///< that is being copied
    std::size_t done = 0;  ///< bytes of it
    std::vector<SendReply> held;
  };
  using Copies = std::list<Copy>;

  static std::size_t copy_some(Copy& copy, std::size_t bytes_max);
  void finish(Copies::iterator copy);

  Backlog& backlog_;
  std::vector<Effect>& effects_;
  std::uint64_t& work_;
  Copies copies_;  ///< those before one have what it is made of
  std::unordered_map<const ChargedBytes*, Copies::iterator> by_payload_;
};

}  // namespace muster::core
