// Messages of HTTP/1.1 on the subjects of llhttp's own tests: methods, targets, connections,
// lengths, codings, pipelining, the end of the stream, and mistakes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tambour::test {

struct ReferenceMessage {
  std::string text;
  std::size_t complete = 0;  ///< Complete messages that the library reads.
  bool is_rejected = false;  ///< What follows them is malformed.
};

std::vector<ReferenceMessage> reference_requests();
std::vector<ReferenceMessage> reference_responses();

}  // namespace tambour::test
