// The error category of StreamError, with the text of each error.
#include <tambour/net/stream_error.h>

#include "base/error_table.h"

namespace tambour {
namespace {

constexpr detail::base::ErrorText<StreamError> texts[] = {
    {StreamError::eof, "End of stream"},
    {StreamError::truncated, "End of stream within a message"},
};

}  // namespace

const std::error_category& stream_category() noexcept {
  static constinit const detail::base::ErrorTable category("tambour.stream",
                                                           "Unknown end of stream", texts);
  return category;
}

}  // namespace tambour
