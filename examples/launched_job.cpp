// A job that begins again after a failure, and goes on where it was. With musterrun, on one node:
//
//     musterrun -n 4 --max-restarts 1 launched_job checkpoint
//
// Each rank learns its place, and where the others are, from the variables that musterrun sets. In
// each step the ranks add up numbers; "checkpoint" is a file with the sum. In the first attempt
// rank 1 fails after two steps.

#include <muster/codec_cereal.h>
#include <muster/runtime.h>
#include <muster/turns.h>
#include <muster/values.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

namespace {

constexpr int step_count = 4;

struct State {
  int step = 0;
  int sum = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(step, sum);
  }
};

State load(const std::string& file) {
  State state;
  std::ifstream(file) >> state.step >> state.sum;
  return state;
}

/// The file is the old one or the new one, whenever the process is killed.
void save(const std::string& file, const State& state) {
  const std::string draft = file + ".new";
  std::ofstream(draft) << state.step << ' ' << state.sum << '\n';
  std::rename(draft.c_str(), file.c_str());
}

bool is_first_attempt() {
  const char* const count = std::getenv("TORCHELASTIC_RESTART_COUNT");
  return count == nullptr || std::string(count) == "0";
}

/// Throws the error of a call that has failed: its text says what, where and who.
template <class T>
T value_of(muster::Result<T> result) {
  return std::move(result).value();
}

void run(const std::string& file) {
  muster::Runtime runtime;  // of this process's environment
  value_of(runtime.init());
  auto& world = *runtime.world().group();
  // One rank looks where the last attempt was, and all go on from there.
  auto state = value_of(
      muster::on_rank_zero(runtime.world(), [&file](muster::Progress&) { return load(file); }));
  std::cout << "rank " << runtime.rank() << " begins behind step " << state.step << std::endl;
  while (state.step < step_count) {
    ++state.step;
    state.sum += value_of(muster::all_reduce_value(world, runtime.rank() + 1));
    if (runtime.rank() == 0) save(file, state);
    value_of(world.barrier());  // nobody is ahead of what is saved
    if (runtime.rank() == 1 && state.step == 2 && is_first_attempt()) std::_Exit(3);
  }
  std::cout << "rank " << runtime.rank() << " of " << runtime.world_size() << " ends with "
            << state.sum << std::endl;
  value_of(runtime.shutdown());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    run(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
