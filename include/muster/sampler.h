#pragma once

// Which elements of a data set each rank takes. In the library muster-runtime (CMake:
// Muster::runtime).

#include <cstdint>
#include <vector>

#include "muster/config.h"
#include "muster/result.h"

MUSTER_BEGIN_NAMESPACE

/// What becomes of the elements that do not divide evenly between the ranks.
enum class UnevenElements : std::uint8_t {
  pad,    ///< all ranks take as many: elements from the beginning are taken again, as torch does
  drop,   ///< all ranks take as many: the last elements are left out, as with torch's drop_last
  exact,  ///< each element is taken once: some ranks take one more. For an evaluation
};

struct SamplerOptions {
  std::uint64_t replica_count = 1;  ///< of ranks that share the elements; above zero
  std::uint64_t rank = 0;           ///< of this one among them
  bool shuffle = false;             ///< torch's own default is true, composer's is false
  std::uint64_t seed = 0;           ///< the same on all ranks
  UnevenElements uneven = UnevenElements::pad;
};

/// Shares the elements of a data set among ranks, as torch's DistributedSampler: with the same
/// numbers each rank gets the same elements in the same order, also shuffled. From 214,748,364
/// elements on the shuffled order is that of torch 2.6 and later; older versions give another.
///
/// A value. It needs neither group nor environment.
///
/// threads  any, but `set_epoch` beside no other call
/// see      docs/runtime.md "Sampler"; torch.utils.data.DistributedSampler
class MUSTER_API DistributedSampler {
 public:
  /// element_count  of the data set; at most 2^62, as the number of ranks
  /// errors         invalid_argument (too many, no ranks, or a rank that is not below their number)
  static Result<DistributedSampler> create(std::uint64_t element_count,
                                           const SamplerOptions& options);

  /// The epoch whose order `indices` gives; from 0. Without `shuffle` all are alike.
  void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }
  std::uint64_t epoch() const { return epoch_; }

  /// The elements that this rank takes in an epoch.
  ///
  /// cost     shuffled: O(element_count) time, and 4 bytes for each element, from 2^32 elements on
  ///          8; else only the result
  std::vector<std::uint64_t> indices() const;

  /// The number of elements that this rank takes.
  std::uint64_t size() const;
  /// How many elements all ranks together take a second time.
  std::uint64_t padded_count() const;
  /// How many elements nobody takes.
  std::uint64_t dropped_count() const;

 private:
  DistributedSampler(std::uint64_t element_count, const SamplerOptions& options)
      : element_count_(element_count), options_(options) {}

  std::uint64_t element_count_;
  SamplerOptions options_;
  std::uint64_t epoch_ = 0;
};

MUSTER_END_NAMESPACE
