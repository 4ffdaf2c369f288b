// Which errors may not occur again.
#pragma once

#include <tambour/base/result.h>

namespace tambour::detail::client {

/// Whether the same operation may succeed later: a connection that was refused or lost, and a lack
/// of resources. False for errors that only a change of the program, of a configuration or of a
/// certificate removes.
[[nodiscard]] bool may_pass(const Error& error) noexcept;

}  // namespace tambour::detail::client
