// The sessions that a client can resume.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include <tambour/detail/namespaces.h>

#include "tls/openssl.h"

namespace tambour::tls::detail {

/// Keeps the newest session of each server. If there are too many, forgets the one that was stored
/// first. Thread: callable from any thread.
class Sessions {
 public:
  explicit Sessions(std::size_t sessions_max) noexcept : sessions_max_(sessions_max) {}

  /// If memory runs out, the session is not kept: the next connection makes a full handshake.
  void put(const std::string& key, SessionPointer session) noexcept;
  /// Removes the session of the server, because a ticket of TLS 1.3 should be used once. Null if
  /// there is none.
  [[nodiscard]] SessionPointer take(const std::string& key) noexcept;

 private:
  struct Entry {
    std::string key;
    SessionPointer session;
  };

  const std::size_t sessions_max_;
  std::mutex mutex_;
  std::list<Entry> entries_;  ///< The oldest first.
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace tambour::tls::detail
