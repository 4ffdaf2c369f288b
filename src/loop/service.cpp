// Services: invokes each service of a loop at its points of an iteration, in the order of opening.
#include "loop/service.h"

#include <algorithm>

namespace tambour::detail::loop {

void Services::append(std::unique_ptr<Service> service, const void* type) noexcept {
  service->key_ = type;
  std::unique_ptr<Service>* last = &first_;
  while (*last != nullptr) last = &(*last)->next_;
  *last = std::move(service);
}

std::int64_t Services::before_wait() noexcept {
  std::int64_t next_ns = base::end_of_time_ns;
  for (Service* service = first_.get(); service != nullptr; service = service->next_.get())
    next_ns = std::min(next_ns, service->before_wait());
  return next_ns;
}

void Services::expire(std::int64_t now_ns) noexcept {
  for (Service* service = first_.get(); service != nullptr; service = service->next_.get())
    service->expire(now_ns);
}

void Services::collect() noexcept {
  for (Service* service = first_.get(); service != nullptr; service = service->next_.get())
    service->collect();
}

void Services::disown_if_lost(bool has_all) noexcept {
  for (Service* service = first_.get(); service != nullptr; service = service->next_.get())
    service->disown_if_lost(has_all);
}

Result<> Services::reopen() noexcept {
  Result<> outcome;
  for (Service* service = first_.get(); service != nullptr; service = service->next_.get()) {
    auto reopened = service->reopen();
    if (outcome) outcome = reopened;
  }
  return outcome;
}

std::size_t Services::owned_tasks() const noexcept {
  std::size_t tasks = 0;
  for (const Service* service = first_.get(); service != nullptr; service = service->next_.get())
    tasks += service->owned_tasks();
  return tasks;
}

bool Services::drop_owned() noexcept {
  bool any = false;
  for (Service* service = first_.get(); service != nullptr; service = service->next_.get())
    any |= service->drop_owned();
  return any;
}

bool Services::drop_state() noexcept {
  bool any = false;
  for (Service* service = first_.get(); service != nullptr; service = service->next_.get())
    any |= service->drop_state();
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

}  // namespace tambour::detail::loop
