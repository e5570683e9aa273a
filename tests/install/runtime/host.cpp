// A host of muster-runtime: a job of one process, which needs no server of its own.

#include <muster/codec_raw.h>
#include <muster/runtime.h>
#include <muster/sampler.h>
#include <muster/turns.h>
#include <muster/values.h>

#include <iostream>
#include <string>

int main() {
  muster::Runtime runtime{muster::Environment()};
  const auto begun = runtime.init();
  if (!begun) {
    std::cerr << begun.error().message() << '\n';
    return 1;
  }
  const auto value = muster::on_rank_zero<muster::RawCodec>(
      runtime.world(), [](muster::Progress&) { return std::string("loaded"); });
  const auto sum = muster::all_reduce_value(*runtime.world().group(), 3);
  const auto sampler = muster::DistributedSampler::create(10, {});
  if (!value || *value != "loaded" || !sum || *sum != 3 || !sampler || sampler->size() != 10)
    return 1;
  return runtime.shutdown() ? 0 : 1;
}
