// What the inspector of unmodified programs sees of a callback.
#pragma once

#include <cstddef>

#include <event2/event_struct.h>

struct bufferevent;
struct evconnlistener;

namespace tambour::libevent {

// Of bufferevents and listeners, which invoke callbacks of the program in callbacks of their own.
/// The bufferevent whose callback it is, or null.
[[nodiscard]] bufferevent* bufferevent_of(const event_callback& callback) noexcept;
/// The listener whose callback it is, or null.
[[nodiscard]] evconnlistener* listener_of(const event_callback& callback) noexcept;
[[nodiscard]] const void* function_of(const evconnlistener& listener) noexcept;
/// Without the lock of the bufferevent, which must not be acquired after that of the base: another
/// thread may be changing it.
[[nodiscard]] std::size_t input_bytes(const bufferevent& bev) noexcept;
[[nodiscard]] std::size_t output_bytes(const bufferevent& bev) noexcept;

/// The function of the program that the callback ends in, as far as it is known.
[[nodiscard]] const void* function_of(const event_callback& callback) noexcept;

}  // namespace tambour::libevent
