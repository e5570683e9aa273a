#include "core/groups/regroups/seating.h"

#include <algorithm>
#include <functional>
#include <map>

namespace muster::core {

std::string text_of(const RegroupSizes& sizes) {
  std::string text = sizes.of_join ? "join" : "regroup";
  if (sizes.takes_everyone()) text += " everyone";
  if (sizes.size() != 0) text += " size=" + std::to_string(sizes.size());
  if (sizes.min_size != 0) text += " min_size=" + std::to_string(sizes.min_size);
  return text;
}

std::vector<Seat> Seating::seats(const RegroupSizes& sizes, std::uint64_t attempt) const {
  std::vector<Seat> seats;
  for (Member& member : roster_.members) {
    if (!member.live() || member.next_attempt <= attempt) continue;
    seats.push_back({member.rank, member.session, &member, nullptr});
  }
  if (sizes.new_size != 0) place_candidates(seats, sizes);
  return seats;
}

std::vector<std::uint32_t> Seating::empty_ranks(const RegroupSizes& sizes) const {
  constexpr std::uint64_t called_or_not = 0;
  const std::vector<Seat> taken = seats(sizes, called_or_not);
  std::vector<std::uint32_t> ranks;
  auto seat = taken.begin();
  for (std::uint32_t rank = 0; rank < sizes.size(); ++rank) {
    if (seat != taken.end() && seat->rank == rank) {
      ++seat;
    } else {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

/// The size in which everyone has a place. Candidates that asked for their ranks in a group of one
/// size come in if with them it has just that size, and do not with any other. Else there is room
/// for any rank that a standby asked for: what stays free is closed up.
std::uint32_t Seating::size_of_everyone(const std::vector<Seat>& survivors) const {
  const std::size_t others = survivors.size() + candidates_.standbys.size();
  std::map<std::uint32_t, std::uint32_t, std::greater<>> asked;  // how many, by size
  for (const auto& [rank, joiner] : candidates_.by_rank) {
    const Member* const holder = roster_.at(rank);
    if (holder == nullptr || !holder->live()) ++asked[joiner->world_size];
  }
  const std::uint32_t past_survivors = survivors.empty() ? 0 : survivors.back().rank + 1;
  for (const auto& [size, count] : asked) {
    if (others + count == size && past_survivors <= size) return size;
  }
  return roster_.services.options().limits.world_size_max + past_survivors;
}

/// Fills what is free below the size. Who asked for a rank gets that one or none; a standby gets
/// its rank if it is free, else the lowest that is.
void Seating::place_candidates(std::vector<Seat>& seats, const RegroupSizes& sizes) const {
  const std::uint32_t size = sizes.takes_everyone() ? size_of_everyone(seats) : sizes.size();
  std::vector<bool> taken(size);
  for (const Seat& seat : seats) taken[seat.rank] = true;
  const auto place = [&](std::uint32_t rank, Joiner& joiner) {
    taken[rank] = true;
    seats.push_back({rank, &joiner.session, nullptr, &joiner});
  };
  for (const auto& [rank, joiner] : candidates_.by_rank) {
    if (rank < size && !taken[rank] && joiner->world_size == size) place(rank, *joiner);
  }
  std::vector<Joiner*> anywhere;
  const std::uint32_t size_max = roster_.services.options().limits.world_size_max;
  std::size_t room = std::min(size, size_max) - seats.size();
  for (const auto& [arrival, joiner] : candidates_.standbys) {
    if (room-- == 0) break;
    if (joiner->rank < size && !taken[joiner->rank]) {
      place(joiner->rank, *joiner);
    } else {
      anywhere.push_back(joiner);
    }
  }
  std::uint32_t lowest = 0;
  for (Joiner* joiner : anywhere) {
    while (taken[lowest]) ++lowest;
    place(lowest, *joiner);
  }
  std::sort(seats.begin(), seats.end(),
            [](const Seat& left, const Seat& right) { return left.rank < right.rank; });
}

}  // namespace muster::core
