#include "runtime/shared/bundle.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/failure.h"
#include "base/little_endian.h"
#include "runtime/shared/checksum.h"
#include "runtime/tensor/copy.h"
#include "wire/reader.h"
#include "wire/writer.h"

// The life of a bundle: its table and its length are computed first, so that all of it goes out in
// one pass, through a buffer that gathers what is small; the checksum is added up on the way. What
// comes back is checked from the outside to the inside: the header by its own checksum, the length,
// the checksum of all, and then every number of the table against what is left.

namespace muster::runtime {

namespace {

constexpr std::uint64_t bundle_magic = 0x314c444e55425453;  // "STBUNDL1"
constexpr std::uint32_t bundle_version = 1;
constexpr std::size_t header_zeros = 16;
constexpr std::uint64_t trailer_bytes = sizeof(std::uint64_t);
constexpr std::size_t tensor_entry_bytes_min = 12;  // without its name and dimensions

Error bad_bundle(std::string detail) {
  return base::failure(ErrorCode::codec_failure, std::move(detail));
}

std::uint64_t gap_before_tensor(std::uint64_t position) {
  return (bundle_alignment - position % bundle_alignment) % bundle_alignment;
}

std::string table_of(const SharedStateView& state) {
  std::string table;
  wire::Writer out(table);
  out.u64(state.config.size());
  out.u32(static_cast<std::uint32_t>(state.tensors.size()));
  for (const NamedTensorView& named : state.tensors) {
    out.bytes(named.name);
    out.u8(static_cast<std::uint8_t>(named.tensor.dtype.code));
    out.u8(named.tensor.dtype.bits);
    out.u16(named.tensor.dtype.lanes);
    out.u32(static_cast<std::uint32_t>(named.tensor.shape.size()));
    for (const std::int64_t size : named.tensor.shape) out.i64(size);
  }
  return table;
}

/// Of the whole bundle; nothing: more than any file has.
std::optional<std::uint64_t> bundle_bytes_of(const SharedStateView& state,
                                             std::uint64_t table_bytes) {
  constexpr std::uint64_t bytes_max = std::uint64_t{1} << 62;
  std::uint64_t bytes = bundle_header_bytes + table_bytes + state.config.size();
  for (const NamedTensorView& named : state.tensors) {
    const std::uint64_t of_tensor = named.tensor.byte_count();
    if (bytes > bytes_max || of_tensor > bytes_max) return {};
    bytes += gap_before_tensor(bytes) + of_tensor;
  }
  if (bytes > bytes_max) return {};
  return bytes + trailer_bytes;
}

std::string encode_header(const BundleHeader& header) {
  std::string bytes;
  wire::Writer out(bytes);
  out.u64(bundle_magic);
  out.u32(bundle_version);
  out.u32(static_cast<std::uint32_t>(header.check));
  out.u64(header.generation);
  out.u64(header.bytes);
  out.u64(header.table_bytes);
  out.raw(std::string(header_zeros, '\0'));
  out.u64(Checksum::of(bytes.data(), bytes.size()));
  return bytes;
}

/// What goes out, in order.
class BundleOutput {
 public:
  BundleOutput(BundleCheck check, const BundleSink& sink) : check_(check), sink_(sink) {}

  Result<void> put(const void* data, std::uint64_t bytes) {
    if (bytes == 0) return {};
    if (check_ == BundleCheck::checksum) checksum_.add(data, bytes);
    position_ += bytes;
    if (buffered_.size() + bytes > buffer_bytes)
      if (auto flushed = flush(); !flushed) return flushed;
    if (bytes > buffer_bytes) return sink_(data, bytes);
    buffered_.append(static_cast<const char*>(data), bytes);
    return {};
  }

  Result<void> put_tensor(const TensorView& tensor) {
    const std::string gap(gap_before_tensor(position_), '\0');
    if (auto done = put(gap.data(), gap.size()); !done) return done;
    const std::uint64_t count = tensor.element_count();
    if (count == 0) return {};
    if (tensor.is_contiguous()) return put(first_element(tensor), tensor.byte_count());
    const std::uint64_t element_bytes = tensor.dtype.byte_count();
    const std::uint64_t at_once =
        std::min(count, std::max<std::uint64_t>(1, buffer_bytes / element_bytes));
    std::string packed(at_once * element_bytes, '\0');
    for (std::uint64_t first = 0; first < count; first += at_once) {
      const std::uint64_t now = std::min(at_once, count - first);
      pack(packed.data(), tensor, first, now);
      if (auto done = put(packed.data(), now * element_bytes); !done) return done;
    }
    return {};
  }

  Result<void> finish() {
    std::string trailer;
    wire::Writer(trailer).u64(check_ == BundleCheck::checksum ? checksum_.value() : 0);
    if (auto done = put(trailer.data(), trailer.size()); !done) return done;
    return flush();
  }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{256} << 10;

  Result<void> flush() {
    if (buffered_.empty()) return {};
    auto done = sink_(buffered_.data(), buffered_.size());
    buffered_.clear();
    return done;
  }

  const BundleCheck check_;
  const BundleSink& sink_;
  Checksum checksum_;
  std::string buffered_;
  std::uint64_t position_ = 0;
};

/// Reads a table, and finds the tensors that it tells of.
class BundleContents {
 public:
  BundleContents(char* data, const BundleHeader& header)
      : data_(data), position_(bundle_header_bytes + header.table_bytes) {
    end_ = header.bytes - trailer_bytes;
    table_ = wire::Reader({data + bundle_header_bytes, header.table_bytes});
  }

  Result<SharedStateView> read() {
    SharedStateView state;
    const std::uint64_t config_bytes = table_.u64();
    if (config_bytes > end_ - position_) return bad_bundle("its configuration is cut off");
    state.config = {data_ + position_, config_bytes};
    position_ += config_bytes;
    const std::uint32_t count = table_.count(tensor_entry_bytes_min);
    for (std::uint32_t index = 0; index < count; ++index) {
      auto tensor = read_tensor();
      if (!tensor) return std::move(tensor).error();
      state.tensors.push_back(*std::move(tensor));
    }
    if (!table_.ok() || !table_.at_end() || position_ != end_)
      return bad_bundle("its table does not fit to its length");
    return state;
  }

 private:
  Result<NamedTensorView> read_tensor() {
    NamedTensorView named;
    named.name = table_.bytes();
    TensorView& tensor = named.tensor;
    tensor.dtype.code = static_cast<DtypeCode>(table_.u8());
    tensor.dtype.bits = table_.u8();
    tensor.dtype.lanes = table_.u16();
    const std::uint32_t dimensions = table_.count(sizeof(std::int64_t));
    for (std::uint32_t index = 0; index < dimensions; ++index) tensor.shape.push_back(table_.i64());
    if (!table_.ok()) return bad_bundle("its table is cut off");
    const std::uint64_t gap = gap_before_tensor(position_);
    if (gap > end_ - position_) return bad_bundle("a tensor is cut off");
    position_ += gap;
    tensor.data = data_ + position_;
    if (const auto valid = validate(tensor); !valid)
      return bad_bundle("a tensor's description is wrong: " + valid.error().detail);
    const std::uint64_t bytes = tensor.byte_count();
    if (bytes > end_ - position_) return bad_bundle("a tensor is cut off");
    position_ += bytes;
    return named;
  }

  char* data_;
  std::uint64_t position_;
  std::uint64_t end_ = 0;
  wire::Reader table_{{}};
};

}  // namespace

std::optional<Error> refusal_of_state(const SharedStateView& state) {
  if (state.tensors.size() > wire::items_max) {
    return base::failure(ErrorCode::too_large,
                         "a state has " + std::to_string(state.tensors.size()) +
                             " tensors, at most " + std::to_string(wire::items_max));
  }
  for (const NamedTensorView& named : state.tensors) {
    const std::string who = named.name.empty() ? "" : "'" + printable(named.name) + "': ";
    if (auto valid = validate(named.tensor); !valid)
      return base::failure(valid.error().code, who + valid.error().detail);
    if (!named.tensor.device.is_host()) {
      return base::failure(ErrorCode::invalid_argument, who + "the tensor is on " +
                                                            to_string(named.tensor.device) +
                                                            ": copy it to host memory first");
    }
  }
  return {};
}

Result<void> encode_bundle(const SharedStateView& state, std::uint64_t generation,
                           BundleCheck check, const BundleSink& sink) {
  const std::string table = table_of(state);
  const auto bytes = bundle_bytes_of(state, table.size());
  if (!bytes.has_value())
    return base::failure(ErrorCode::too_large, "the tensors together have more than 2^62 bytes");
  BundleOutput out(check, sink);
  const std::string header = encode_header({check, generation, *bytes, table.size()});
  for (const std::string_view part :
       {std::string_view(header), std::string_view(table), std::string_view(state.config)})
    if (auto done = out.put(part.data(), part.size()); !done) return done;
  for (const NamedTensorView& named : state.tensors)
    if (auto done = out.put_tensor(named.tensor); !done) return done;
  return out.finish();
}

Result<BundleHeader> decode_bundle_header(std::string_view bytes) {
  if (bytes.size() < bundle_header_bytes) return bad_bundle("its header is cut off");
  bytes = bytes.substr(0, bundle_header_bytes);
  wire::Reader in(bytes);
  if (in.u64() != bundle_magic) return bad_bundle("it is no file of Muster's shared states");
  const std::uint32_t version = in.u32();
  const std::uint32_t check = in.u32();
  BundleHeader header;
  header.generation = in.u64();
  header.bytes = in.u64();
  header.table_bytes = in.u64();
  in.raw(header_zeros);
  const std::size_t checked = bundle_header_bytes - sizeof(std::uint64_t);
  if (in.u64() != Checksum::of(bytes.data(), checked))
    return bad_bundle("its header is damaged: the checksum differs");
  if (version != bundle_version)
    return bad_bundle("it has version " + std::to_string(version) + ", this library knows " +
                      std::to_string(bundle_version));
  if (check > 1 || header.bytes < bundle_header_bytes + trailer_bytes ||
      header.table_bytes > header.bytes - bundle_header_bytes - trailer_bytes)
    return bad_bundle("its header contradicts itself");
  header.check = static_cast<BundleCheck>(check);
  return header;
}

Result<Bundle> decode_bundle(char* data, std::uint64_t bytes, BundleCheck check) {
  const auto header = decode_bundle_header({data, bytes});
  if (!header) return header.error();
  if (header->bytes != bytes) {
    return bad_bundle("it has " + std::to_string(bytes) + " bytes, but was written with " +
                      std::to_string(header->bytes));
  }
  if (header->check != check) return bad_bundle("it has no checksum, or one where none belongs");
  const auto expected = base::from_little_endian<std::uint64_t>(data + bytes - trailer_bytes);
  const std::uint64_t actual =
      check == BundleCheck::checksum ? Checksum::of(data, bytes - trailer_bytes) : 0;
  if (expected != actual) return bad_bundle("it is damaged: the checksum differs");
  auto state = BundleContents(data, *header).read();
  if (!state) return std::move(state).error();
  return Bundle{header->generation, *std::move(state)};
}

}  // namespace muster::runtime
