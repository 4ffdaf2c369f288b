// The error category of StreamError, with the text of each error.
#include <tambour/stream_error.h>

namespace tambour {
namespace {

class StreamCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "tambour stream"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (StreamError(value)) {
      case StreamError::eof:
        return "End of stream";
      case StreamError::truncated:
        return "End of stream within a message";
    }
    return "Unknown end of stream";
  }
};

}  // namespace

const std::error_category& stream_category() noexcept {
  static const StreamCategory category;
  return category;
}

}  // namespace tambour
