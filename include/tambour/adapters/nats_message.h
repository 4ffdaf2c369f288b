// Messages and errors of NatsClient.
#pragma once

#include <nats/nats.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include <tambour/base/result.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// A message, with the memory of its subject and data. `get()` is for headers and JetStream.
class NatsMessage {
 public:
  /// Takes ownership of `message`.
  explicit NatsMessage(natsMsg* message) : message_(message, &natsMsg_Destroy) {}

  /// The message of nats.c, and its parts, which are valid as long as this object.
  [[nodiscard]] natsMsg* get() const noexcept { return message_.get(); }
  [[nodiscard]] std::string_view subject() const { return natsMsg_GetSubject(get()); }
  [[nodiscard]] std::string_view data() const {
    return {natsMsg_GetData(get()), static_cast<std::size_t>(natsMsg_GetDataLength(get()))};
  }
  /// The subject for replies; null if the sender expects none.
  [[nodiscard]] const char* reply_to() const { return natsMsg_GetReply(get()); }

 private:
  std::unique_ptr<natsMsg, decltype(&natsMsg_Destroy)> message_;
};

/// The category of a natsStatus.
inline const std::error_category& nats_category() noexcept {
  class Category final : public std::error_category {
    [[nodiscard]] const char* name() const noexcept override { return "nats"; }
    [[nodiscard]] std::string message(int status) const override {
      return natsStatus_GetText(static_cast<natsStatus>(status));
    }
  };
  static const Category category;
  return category;
}
/// Converts a natsStatus to an Error.
inline Error nats_error(natsStatus status) noexcept {
  return {static_cast<int>(status), nats_category()};
}

}  // namespace tambour::adapters

#pragma GCC visibility pop
