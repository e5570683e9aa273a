#include "nccl/gpu/bare.h"

#include <dlfcn.h>

#include <utility>

#include "muster/nccl_id.h"
#include "nccl/functions.h"

namespace muster::test::gpu {

using nccl_internal::in_progress;

const nccl::Functions& nccl_functions(const Rank& rank) {
  static const nccl::Functions functions = require(nccl_internal::load_nccl(rank.text("nccl")));
  return functions;
}

void* nccl_symbol(const Rank& rank, const char* name) {
  Dl_info info{};
  const auto* const known = reinterpret_cast<const void*>(nccl_functions(rank).get_version);
  void* const library = ::dladdr(known, &info) == 0
                            ? nullptr
                            : ::dlopen(info.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  void* const symbol = library == nullptr ? nullptr : ::dlsym(library, name);
  if (symbol == nullptr) throw NotRun(std::string("NCCL has no ") + name);
  return symbol;
}

Bare::Bare(Rank& rank, StatelessProcessGroup& group, nccl::Mode mode)
    : functions_(nccl_functions(rank)) {
  nccl::IdOptions options;
  options.library = rank.text("nccl");
  const auto id = require(nccl::unique_id(group, patience, options));
  nccl::Config config;
  config.blocking = mode == nccl::Mode::blocking ? 1 : 0;
  const int begun =
      functions_.comm_init_rank_config(&handle_, group.world_size(), id, group.rank(), &config);
  const int result = settled(begun);
  if (result != 0) throw Failure("ncclCommInitRankConfig gave " + std::to_string(result));
}

Bare::~Bare() {
  if (handle_ != nullptr) functions_.comm_abort(handle_);
}

int Bare::destroy() {
  const int finalized = settled(functions_.comm_finalize(handle_));
  return finalized != 0 ? finalized : functions_.comm_destroy(std::exchange(handle_, nullptr));
}

int Bare::state() const {
  int state = 0;
  const int result = functions_.comm_get_async_error(handle_, &state);
  return result != 0 ? result : state;
}

int Bare::settled(int result) const {
  const auto until = Clock::now() + patience;
  while (result == in_progress) {
    result = state();
    if (Clock::now() > until) throw Failure("NCCL was in progress for 60 s");
  }
  return result;
}

int Bare::all_reduce(const Sum& sum) const {
  constexpr int operation = 0;                  // ncclSum
  const int type = static_cast<int>(sum.type);  // the numbers of the integers are those of NCCL
  return settled(functions_.all_reduce(sum.from.at(), sum.to.at(), sum.count, type, operation,
                                       handle_, sum.stream.handle()));
}

}  // namespace muster::test::gpu
