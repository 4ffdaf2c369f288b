// The size of a write that the kernel sends as one segment.
#pragma once

#include <cstddef>

#include <tambour/detail/namespaces.h>

namespace tambour::detail::io {

/// The kernel passes at most 64 KiB with its heads to a device at once, in whole packets: 65,160
/// bytes of an Ethernet, and 65,483 of the loopback device. A longer write leaves a second segment
/// of a few bytes, which costs as much as a full one if it is sent at once. This size leaves 40
/// bytes for each of the four TLS records of such a write.
inline constexpr std::size_t segment_bytes_max = 65'000;

}  // namespace tambour::detail::io
