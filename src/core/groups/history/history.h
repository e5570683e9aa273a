#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/session/engine_services.h"
#include "core/session/watch/viewer.h"
#include "muster/error.h"
#include "muster/group_event.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace muster::core {

struct Member;

/// Something that happens to a group.
struct Occurrence {
  GroupEventKind what{};
  std::string_view group;
  std::string_view tenant;  ///< whom the group belongs to
  std::uint64_t epoch = 0;
  std::uint32_t world_size = 0;
  const Error* why = nullptr;            ///< null: there is nothing more to say
  const Member* member = nullptr;        ///< of rank_lost and rank_left: who; null: of another kind
  const ProcessInfo* process = nullptr;  ///< whose join was refused; null: of another kind
};

/// What has occurrence to groups, for those who ask when it is over. It has a limit of its own,
/// beside that of the server's memory: when it is reached, the namespace that has most loses its
/// oldest record, so that nobody can fill it with what concerns himself alone. A group has so many
/// records at most, and what happens again and again is one record that counts.
class History {
 public:
  explicit History(EngineServices& services) : services_(services) {}
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  void record(std::string_view name_space, const Occurrence& occurrence);

  /// A page of the records of a namespace that the viewer may see, the oldest first.
  wire::HistoryReply page(std::string_view name_space, const Viewer& viewer,
                          const wire::History& request) const;

  /// How a rank's membership ended.
  struct End {
    GroupEventKind what{};  ///< rank_lost or rank_left
    std::uint64_t epoch = 0;
    RankReport report;
  };
  /// The last one of that rank, in a group of the same owner; nothing: none is known.
  std::optional<End> last_end(std::string_view name_space, std::string_view group,
                              std::string_view tenant, int rank) const;

  /// A join that was refused since then because its arguments differ from the group's.
  struct Refusal {
    ProcessInfo process;
    std::string why;
    Instant last{};
  };
  /// The last one, in a group of the same owner; nothing: none is known.
  std::optional<Refusal> last_mismatch(std::string_view name_space, std::string_view group,
                                       std::string_view tenant, Instant since) const;

  /// A record that is new or has changed, and when it did: numbers ascend.
  struct Change {
    std::uint64_t number = 0;
    std::string name_space;
    Instant first{};
    std::string body;  ///< an encoded wire::HistoryReply with it alone
  };
  /// Those behind `after`, of all namespaces, in their order; `count_max` at most.
  std::vector<Change> changes(std::uint64_t after, std::size_t count_max) const;
  /// Of the last one; 0: there was none.
  std::uint64_t last_change() const { return last_change_; }

  std::uint64_t bytes() const { return bytes_; }
  /// A 64th of the server's memory, or less.
  std::uint64_t bytes_max() const;

 private:
  struct Record {
    std::uint64_t serial = 0;
    std::uint64_t change = 0;  ///< the last one
    Instant first{};
    Instant last{};
    std::uint64_t count = 1;
    GroupEventKind what{};
    std::uint64_t epoch = 0;
    std::uint32_t world_size = 0;
    std::string group;
    std::string tenant;
    bool has_error = false;
    ErrorCode code{};
    std::string error;              ///< encoded
    std::vector<RankReport> ranks;  ///< of rank_lost and rank_left, of whom an error may say more
    std::optional<ProcessInfo> process;

    std::uint64_t bytes() const;
    std::optional<Error> told_error() const;
  };

  /// What is known of one namespace.
  struct Page {
    std::map<std::uint64_t, Record> records;                                  ///< by their serials
    std::map<std::string, std::deque<std::uint64_t>, std::less<>> of_groups;  ///< ascending
    std::uint64_t bytes = 0;
    std::uint64_t dropped_count = 0;
  };
  /// The records of a group and owner, the newest first, until `is_found` returns true.
  template <class F>
  void search(std::string_view name_space, std::string_view group, std::string_view tenant,
              const F& is_found) const;

  using Pages = std::map<std::string, Page, std::less<>>;
  using BySize = std::set<std::pair<std::uint64_t, const std::string*>>;

  Record made_of(const Occurrence& occurrence) const;
  bool repeats(const Record& last, const Occurrence& occurrence) const;
  void count_once_more(Record& last, const Occurrence& occurrence) const;
  void resize(Pages::iterator page, std::uint64_t bytes);
  void note_change(const std::string& name_space, Record& record);
  wire::HistoryRecord told(const Record& record) const;
  void drop(Pages::iterator page, std::map<std::uint64_t, Record>::iterator record);
  void keep_limit();
  void drop_oldest_of_the_largest();
  bool add_to(wire::HistoryReply& reply, const Record& record, const Viewer& viewer,
              std::uint64_t& bytes) const;

  EngineServices& services_;
  Pages pages_;
  BySize by_size_;  ///< of the pages
  std::uint64_t bytes_ = 0;
  std::uint64_t last_serial_ = 0;
  /// Record by its last change; the names stand in `pages_`.
  std::map<std::uint64_t, std::pair<const std::string*, std::uint64_t>> by_change_;
  std::uint64_t last_change_ = 0;
};

/// Where what happens to the groups of one namespace is recorded.
class Recorder {
 public:
  /// Both outlive it.
  Recorder(History& history, const std::string& name_space)
      : history_(&history), name_space_(&name_space) {}

  void record(const Occurrence& occurrence) const { history_->record(*name_space_, occurrence); }
  std::optional<History::End> last_end(std::string_view group, std::string_view tenant,
                                       int rank) const {
    return history_->last_end(*name_space_, group, tenant, rank);
  }
  std::optional<History::Refusal> last_mismatch(std::string_view group, std::string_view tenant,
                                                Instant since) const {
    return history_->last_mismatch(*name_space_, group, tenant, since);
  }

 private:
  History* history_;
  const std::string* name_space_;
};

}  // namespace muster::core
