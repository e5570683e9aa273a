#include "launch_runner.h"

int main(int count, char** words) {
  return muster::script::run_files(count, words,
                                   [] { return std::make_unique<muster::script::LaunchRunner>(); });
}
