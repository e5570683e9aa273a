#include "runtime/tensor/parcel.h"

#include "base/failure.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace muster::runtime {

TensorView Parcel::view() const {
  TensorView view;
  view.device = device;
  view.dtype = dtype;
  view.shape = shape;
  return view;
}

std::string encode(const Parcel& parcel) {
  std::string bytes;
  wire::Writer out(bytes);
  out.u8(static_cast<std::uint8_t>(parcel.way));
  out.u64(parcel.number);
  out.i32(static_cast<std::int32_t>(parcel.device.type));
  out.i32(parcel.device.index);
  out.u8(static_cast<std::uint8_t>(parcel.dtype.code));
  out.u8(parcel.dtype.bits);
  out.u16(parcel.dtype.lanes);
  out.u32(static_cast<std::uint32_t>(parcel.shape.size()));
  for (const std::int64_t size : parcel.shape) out.i64(size);
  return bytes;
}

Result<Parcel> decode_parcel(std::string_view bytes) {
  wire::Reader in(bytes);
  Parcel parcel;
  parcel.way = static_cast<TensorWay>(in.u8());
  parcel.number = in.u64();
  parcel.device.type = static_cast<DeviceType>(in.i32());
  parcel.device.index = in.i32();
  parcel.dtype.code = static_cast<DtypeCode>(in.u8());
  parcel.dtype.bits = in.u8();
  parcel.dtype.lanes = in.u16();
  for (std::uint32_t count = in.count(sizeof(std::int64_t)); count > 0; --count)
    parcel.shape.push_back(in.i64());
  parcel.rest = in.raw(in.remaining());
  TensorView view = parcel.view();
  view.data = &parcel;  // it has memory, for this check
  if (!in.ok() || !validate(view))
    return base::failure(ErrorCode::protocol_error, "the tensor's description is malformed");
  if (parcel.way == TensorWay::store && parcel.rest.size() != view.byte_count())
    return base::failure(ErrorCode::protocol_error, "the tensor has other bytes than its shape");
  return parcel;
}

}  // namespace muster::runtime
