#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "annotator.h"
#include "muster/result.h"

namespace muster::golden {

/// One message of the protocol with every field that it can have set to something of its own.
struct Sample {
  std::string name;             ///< of its file, such as "request_set"
  std::string about;            ///< what the message means, for the file's first lines
  std::string bytes;            ///< as src/wire encodes it
  Annotator annotated;          ///< as the annotator encodes it
  bool framed = true;           ///< header and body; else a hello of fixed size
  bool cut_may_decode = false;  ///< a message cut before an optional field is a shorter one
  /// Decodes any bytes as this kind of message and encodes what came out.
  std::function<Result<std::string>(std::string_view)> again;
};

std::vector<Sample> hello_samples();
std::vector<Sample> frame_samples();
std::vector<Sample> store_request_samples();
std::vector<Sample> group_request_samples();
std::vector<Sample> reply_samples();
std::vector<Sample> error_samples();

std::vector<Sample> all_samples();

/// The text of the sample's golden file.
std::string text_of(const Sample& sample);

/// The bytes that the hexadecimal columns of such a text give.
std::string bytes_of(std::string_view text);

}  // namespace muster::golden
