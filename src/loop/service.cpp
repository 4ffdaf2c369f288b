// Services: invokes each service of a loop at its points of an iteration, in the order of opening.
#include "loop/service.h"

#include <algorithm>

namespace tambour::loop {

void Services::append(std::unique_ptr<Service> service, const void* type) noexcept {
  service->key_ = type;
  std::unique_ptr<Service>* last = &first_;
  while (*last != nullptr) last = &(*last)->next_;
  *last = std::move(service);
}

std::int64_t Services::before_wait() noexcept {
  std::int64_t next_ns = base::end_of_time_ns;
  for (Service* each = first_.get(); each != nullptr; each = each->next_.get())
    next_ns = std::min(next_ns, each->before_wait());
  return next_ns;
}

void Services::expire(std::int64_t now_ns) noexcept {
  for (Service* each = first_.get(); each != nullptr; each = each->next_.get())
    each->expire(now_ns);
}

void Services::collect() noexcept {
  for (Service* each = first_.get(); each != nullptr; each = each->next_.get()) each->collect();
}

void Services::disown_if_lost(bool has_all) noexcept {
  for (Service* each = first_.get(); each != nullptr; each = each->next_.get())
    each->disown_if_lost(has_all);
}

Result<> Services::reopen() noexcept {
  Result<> outcome;
  for (Service* each = first_.get(); each != nullptr; each = each->next_.get()) {
    auto reopened = each->reopen();
    if (outcome) outcome = reopened;
  }
  return outcome;
}

bool Services::drop_owned() noexcept {
  bool any = false;
  for (Service* each = first_.get(); each != nullptr; each = each->next_.get())
    any |= each->drop_owned();
  return any;
}

void Services::close() noexcept {
  while (first_ != nullptr) {
    std::unique_ptr<Service>* last = &first_;
    while ((*last)->next_ != nullptr) last = &(*last)->next_;
    (*last)->close();
    last->reset();
  }
}

}  // namespace tambour::loop
