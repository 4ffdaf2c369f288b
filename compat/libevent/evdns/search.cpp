// The list of search domains is shared by the lookups that use it, and copied when it changes.
#include "libevent/evdns/search.h"

#include <cstring>
#include <new>
#include <utility>

#include "libevent/event/core.h"

namespace tambour::libevent {

SearchList* SearchList::make() noexcept {
  void* const memory = event_mm_malloc_(sizeof(SearchList));
  return memory != nullptr ? new (memory) SearchList() : nullptr;
}

SearchList* SearchList::copy() const noexcept {
  SearchList* const search_list = make();
  if (search_list == nullptr) return nullptr;
  search_list->ndots = ndots;
  for (int i = size_; i-- != 0;) {
    if (search_list->add(at(i))) continue;
    search_list->release();
    return nullptr;
  }
  return search_list;
}

void SearchList::release() noexcept {
  if (--references_ != 0) return;
  while (first_ != nullptr) event_mm_free_(std::exchange(first_, first_->next));
  event_mm_free_(this);
}

bool SearchList::add(std::string_view domain) noexcept {
  while (domain.starts_with('.')) domain.remove_prefix(1);
  void* const memory = event_mm_malloc_(sizeof(Domain) + domain.size());
  if (memory == nullptr) return false;
  auto* const added = new (memory) Domain{.next = first_, .size = domain.size()};
  std::memcpy(added + 1, domain.data(), domain.size());
  first_ = added;
  ++size_;
  return true;
}

void SearchList::reverse() noexcept {
  Domain* reversed = nullptr;
  while (first_ != nullptr) {
    Domain* const next = first_->next;
    first_->next = reversed;
    reversed = first_;
    first_ = next;
  }
  first_ = reversed;
}

std::string_view SearchList::at(int index) const noexcept {
  const Domain* domain = first_;
  while (index-- != 0) domain = domain->next;
  return domain->text();
}

}  // namespace tambour::libevent
