// The error category of the inspector.
#include <tambour/inspector/error.h>

#include "base/error_table.h"

namespace tambour::inspector {
namespace {

using tambour::detail::base::ErrorText;

constexpr ErrorText<ErrorCode> texts[] = {
    {ErrorCode::not_authenticated,
     "The inspector listens on other than loopback addresses and Unix names only if "
     "InspectorOptions::authenticate is set"},
};

}  // namespace

const std::error_category& error_category() noexcept {
  static constinit const tambour::detail::base::ErrorTable category(
      "tambour.inspector", "Unknown error of the inspector", texts);
  return category;
}

}  // namespace tambour::inspector
