// Sessions: keeps sessions by server, and hands them out.
#include "tls/resumption/sessions.h"

#include <new>
#include <utility>

namespace tambour::tls::detail {

void Sessions::put(const std::string& key, SessionPointer session) noexcept try {
  if (sessions_max_ == 0) return;
  std::list<Entry> entry;
  entry.push_back({.key = key, .session = std::move(session)});
  const std::scoped_lock lock(mutex_);
  const auto [place, is_new] = by_key_.try_emplace(key, entry.begin());
  if (!is_new) {
    entries_.erase(place->second);
    place->second = entry.begin();
  }
  entries_.splice(entries_.end(), entry);
  if (entries_.size() <= sessions_max_) return;
  by_key_.erase(entries_.front().key);
  entries_.pop_front();
} catch (const std::bad_alloc&) {
  return;
}

SessionPointer Sessions::take(const std::string& key) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  SessionPointer session = std::move(found->second->session);
  entries_.erase(found->second);
  by_key_.erase(found);
  return session;
}

}  // namespace tambour::tls::detail
