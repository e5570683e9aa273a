#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/memory/payload.h"

namespace muster::core {

/// What acknowledging a reply sets free, beside the cached reply itself.
struct ReceivedObject {
  std::uint64_t epoch = 0;
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint64_t tag = 0;
  std::uint64_t sequence = 0;
};
struct RoundPart {
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;
  std::uint32_t rank = 0;
};
/// The answer makes its session a member of the epoch. To abandon it means that the client has no
/// handle by it.
struct Membership {
  std::uint64_t epoch = 0;
  bool of_join = false;  ///< else of a regroup: its handle can ask again
};
using OnAcknowledged = std::variant<std::monostate, ReceivedObject, RoundPart, Membership>;

/// What a take or a pop has removed, of which its answer has the value.
class Taken {
 public:
  virtual ~Taken() = default;
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  /// It is there again as if it had never been removed, and those who wait for it are served. Once.
  /// False: it cannot be, since its key has been set again, or there is no memory.
  ///
  /// value  the answer's; null: it is empty
  virtual bool give_back(const Payload& value) = 0;

 protected:
  Taken() = default;
};

/// A reply that is kept until the client says that it came.
struct Answer {
  std::uint16_t code = 0;  ///< 0 or ErrorCode
  std::string head;
  std::string_view value;  ///< follows the head; borrowed from the table until the next event
  Payload tail;            ///< follows the value
  OnAcknowledged on_acknowledged;
  std::unique_ptr<Taken> taken;  ///< null: nothing
  bool owns_tail = false;        ///< nobody else has it
  /// The engine's: against which limit it counts.
  enum class Counts : std::uint8_t { as_answer, as_parked, as_taken } counts = Counts::as_answer;
};

/// The answers of a session that it has not acknowledged, by their requests' ids: chains, in as
/// many buckets as there were answers at most. Whoever takes one out has its memory, and may put
/// another one in with it.
class Answers {
 public:
  struct Kept {
    std::uint64_t request_id = 0;
    Answer answer;
    std::unique_ptr<Kept> next;  ///< in its bucket
  };
  using node_type = std::unique_ptr<Kept>;

  Answers() = default;
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  /// One by one: a chain that destroyed itself would need as deep a stack as it is long.
  ~Answers() {
    drain([](node_type) {});
  }

  /// Null: there is none.
  Answer* find(std::uint64_t request_id);
  const Answer* find(std::uint64_t request_id) const {
    return const_cast<Answers*>(this)->find(request_id);
  }
  /// Of a request that has none yet. Throws std::bad_alloc, and is then as before.
  const Answer& insert(node_type kept);
  /// Null: there is none.
  node_type take(std::uint64_t request_id);
  /// Hands all of them, in any order, to `to`.
  template <class To>
  void drain(To to) {
    for (node_type& first : buckets_) {
      while (node_type kept = std::move(first)) {
        first = std::move(kept->next);
        --size_;
        to(std::move(kept));
      }
    }
  }

  std::size_t size() const { return size_; }

 private:
  std::size_t bucket_of(std::uint64_t request_id) const;
  void grow();

  std::vector<node_type> buckets_;  ///< a power of two of them, or none
  std::size_t size_ = 0;
};

}  // namespace muster::core
