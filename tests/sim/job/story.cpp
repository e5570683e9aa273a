#include "story.h"

#include <algorithm>

namespace muster::sim::job {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t slots_max = 5;

}  // namespace

Story::Story(std::uint64_t its_seed) : seed(its_seed) {
  Random random(its_seed * 0x2545f4914f6cdd1d + 1);
  draw_options(random);
  draw_slots(random);
  length = random.between(10s, 60s);
  rank_max = random.one_in(3) ? Duration(30s) : Duration(5s);
  const auto sometimes = [&](std::uint64_t chance, std::uint64_t rate) {
    return random.one_in(chance) ? rate : 0;
  };
  fails = sometimes(2, 3 + random.below(20));
  hangs = sometimes(4, 6);
  disobeys = sometimes(3, 3);
  is_stuck = sometimes(8, 8);
  not_there = sometimes(12, 8);
  if (!random.one_in(8)) draw_strikes(random);
}

void Story::draw_options(Random& random) {
  options.nodes_min = 1 + static_cast<int>(random.below(3));
  options.nodes_max = options.nodes_min;
  if (random.one_in(2)) options.nodes_max += static_cast<int>(random.below(3));
  options.max_restarts = random.one_in(3) ? 0 : static_cast<int>(1 + random.below(3));
  options.join_timeout = random.between(10s, 40s);
  options.last_call = random.between(1s, 8s);
  options.cause_timeout = random.one_in(4) ? Duration(1s) : Duration(3s);
  options.shutdown_timeout = random.one_in(8) ? Duration(90s) : random.between(1s, 10s);
  if (random.one_in(3)) options.exit_grace = random.between(1s, 10s);
  options.scale_up = random.one_in(3);
  if (options.scale_up && random.one_in(2)) options.nodes_max = options.nodes_min + 2;
  session_timeout = random.one_in(2) ? Duration(15s) : Duration(5s);
  grace = random.one_in(4) ? Duration(500ms) : Duration(2s);
  form_timeout = random.one_in(2) ? Duration(60s) : Duration(10s);
  delay_max = random.one_in(4) ? Duration(300ms) : Duration(3ms);
}

void Story::draw_slots(Random& random) {
  const std::uint64_t wanted = static_cast<std::uint64_t>(options.nodes_max) + random.below(2);
  const std::uint64_t count =
      random.one_in(4) ? 1 + random.below(slots_max) : std::min(slots_max, wanted);
  const bool is_uneven = random.one_in(3);
  const bool is_told = random.one_in(5);
  const int processes = 1 + static_cast<int>(random.below(3));
  is_hosted = random.one_in(6);
  for (std::uint64_t index = 0; index < count; ++index) {
    Slot slot;
    const bool is_late = random.one_in(options.scale_up ? 2 : 3);
    slot.comes = random.between(0s, is_late ? Duration(30s) : Duration(1s));
    if (is_hosted && index == 0) slot.comes = Duration(0);
    if (index > 0 && random.one_in(20)) slot.comes.reset();
    slot.process_count = is_uneven ? 1 + static_cast<int>(random.below(4)) : processes;
    if (is_told) slot.wanted_rank = static_cast<int>(count - 1 - index);
    if (is_told && random.one_in(12)) slot.wanted_rank = 0;
    if (random.one_in(3)) slot.comes_again = random.between(0s, 25s);
    slots.push_back(slot);
  }
}

void Story::draw_strikes(Random& random) {
  const bool is_board_safe = !random.one_in(8);
  for (std::uint64_t left = 1 + random.below(6); left > 0; --left) {
    StrikePlan strike;
    strike.what = static_cast<Strike>(random.below(10));
    if (strike.what == Strike::board && is_board_safe) strike.what = Strike::pause;
    if (strike.what == Strike::all && !random.one_in(3)) strike.what = Strike::rank;
    strike.moment = static_cast<Moment>(random.below(4));
    strike.victim = static_cast<Victim>(random.below(3));
    strike.slot = random.below(slots.size());
    const bool is_timed = strike.moment == Moment::at_a_time;
    strike.after = is_timed ? random.between(0s, length)
                            : random.between(0s, random.one_in(2) ? Duration(20ms) : Duration(4s));
    strike.lasts = random.one_in(3) ? random.between(session_timeout, 2 * session_timeout)
                                    : random.between(10ms, session_timeout * 3 / 4);
    strikes.push_back(strike);
  }
  // What ends to grow may be left with too few.
  if (!options.scale_up || !random.one_in(4)) return;
  StrikePlan strike;
  strike.what = Strike::most;
  strike.moment = Moment::at_verdict;
  strike.after = random.between(0s, 1s);
  strikes.insert(strikes.begin(), strike);
}

std::string Story::text() const {
  const auto seconds = [](Duration duration) {
    return std::to_string(static_cast<double>(duration.count()) / 1e6) + " s";
  };
  std::string text =
      "nodes " + std::to_string(options.nodes_min) + ":" + std::to_string(options.nodes_max) +
      ", " + std::to_string(slots.size()) + " places, " + std::to_string(options.max_restarts) +
      " restarts" + (options.scale_up ? ", scale_up" : "") + (is_hosted ? ", hosted" : "") +
      ", join_timeout " + seconds(options.join_timeout) + ", last_call " +
      seconds(options.last_call) + ", cause_timeout " + seconds(options.cause_timeout) +
      ", shutdown_timeout " + seconds(options.shutdown_timeout);
  if (options.exit_grace) text += ", exit_grace " + seconds(*options.exit_grace);
  return text + "; session timeout " + seconds(session_timeout) + ", grace " + seconds(grace) +
         ", forming " + seconds(form_timeout) + ", delay up to " + seconds(delay_max) + "; " +
         std::to_string(strikes.size()) + " strikes within " + seconds(length);
}

}  // namespace muster::sim::job
