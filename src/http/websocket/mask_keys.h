// Random bytes for the masks and keys of clients.
#pragma once

#include <cstddef>
#include <span>

#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::websocket {

/// Fills the span with bytes of the kernel that a third party cannot predict (RFC 6455, section
/// 5.3), which it takes in blocks for each thread: getrandom(2).
void fill_mask_key(std::span<std::byte> bytes);

}  // namespace tambour::http::detail::websocket
