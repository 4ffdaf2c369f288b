// The replies of RedisClient.
#pragma once

#include <hiredis/hiredis.h>

#include <cstddef>
#include <string>
#include <vector>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// A copy of a redisReply, which hiredis frees when its callback returns.
struct RedisValue {
  /// A copy of `reply` and its elements. Throws std::bad_alloc.
  explicit RedisValue(const redisReply& reply)
      : type(reply.type),
        integer(reply.integer),
        text(reply.str == nullptr ? std::string() : std::string(reply.str, reply.len)) {
    elements.reserve(reply.elements);
    for (std::size_t i = 0; i < reply.elements; ++i) elements.emplace_back(*reply.element[i]);
  }

  /// True if the server replies with an error, whose text is `text`, or with nil.
  [[nodiscard]] bool is_error() const noexcept { return type == REDIS_REPLY_ERROR; }
  [[nodiscard]] bool is_nil() const noexcept { return type == REDIS_REPLY_NIL; }

  int type;           ///< REDIS_REPLY_STRING and others.
  long long integer;  ///< Of REDIS_REPLY_INTEGER.
  std::string text;   ///< Of a string, a status or an error.
  std::vector<RedisValue> elements;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
