// AcceptorGroup: opens and closes an acceptor on each loop of a group, and combines their counters.
#include "server/acceptor_group.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include <tambour/loop/timer.h>
#include <tambour/task/cancellation.h>
#include <tambour/task/event.h>
#include <tambour/task/sleep.h>

#include "backend/system.h"
#include "base/check.h"
#include "base/failure.h"
#include "loop/core.h"
#include "server/acceptor.h"
#include "server/connections_max.h"
#include "server/reuse_port.h"

namespace tambour::detail::server {
/// A task that waits in shut_down() for all loops. Waking it allocates no memory.
struct AcceptorGroup::ShutdownWaiter : detail::ListHook<ShutdownWaiter> {
  ShutdownWaiter(AcceptorGroup& acceptors, EventLoop& loop)
      : group(acceptors), event(loop), wakeup(loop, [this] { event.set(); }) {
    wakeup.start();
    const std::lock_guard lock(group.mutex_);
    group.waiters_.push_back(*this);
  }
  ShutdownWaiter(const ShutdownWaiter&) = delete;
  ShutdownWaiter& operator=(const ShutdownWaiter&) = delete;
  ~ShutdownWaiter() {
    const std::lock_guard lock(group.mutex_);
    unlink();
  }

  AcceptorGroup& group;
  TaskEvent event;
  Async wakeup;
};

AcceptorGroup::AcceptorGroup(LoopGroup& group, const ListenOptions& options)
    : group_(group),
      group_exists_(group.lifetime()),
      options_(std::make_shared<const ListenOptions>(options)),
      reporter_(std::make_shared<ErrorReporter>(options.on_error)),
      connections_max_(connections_max_of(options, backend::kernel())),
      placement_(group, options.placement.value_or(Placement::kernel)),
      acceptors_(group.size()),
      shutdown_sources_(group.size()) {}

Result<> AcceptorGroup::open_acceptor(EventLoop& loop, ListenerSource& source) {
  const std::size_t index = group_.index_of(loop);
  auto* acceptor = new Acceptor(loop, options_, shared_from_this());
  {
    const std::lock_guard lock(mutex_);
    ++acceptors_alive_;
  }
  acceptors_[index] = acceptor;
  loop::core_of(loop).owned().push_back(static_cast<detail::LoopOwned&>(*acceptor));
  if (index > 0 && !placement_.each_loop_listens()) return {};
  if (auto opened = open_listeners(*acceptor, index, source); !opened) return opened;
  if (index == 0) {
    endpoint_ = acceptor->listener().endpoint();
    reporter_->set_endpoint(endpoint_);
  }
  if (placement_.placement() != Placement::processor) return {};
  return steer_by_processor(*acceptor);
}

Result<> AcceptorGroup::open_listeners(Acceptor& acceptor, std::size_t index,
                                       ListenerSource& source) {
  const std::size_t loops = placement_.each_loop_listens() ? acceptors_.size() : 1;
  for (std::size_t i = index; i < source.listeners.size(); i += loops) {
    if (auto adopted = acceptor.adopt(std::move(source.listeners[i]), source.supports); !adopted)
      return adopted;
  }
  if (acceptor.listens()) return {};
  return acceptor.listen(index == 0 ? source.at : endpoint_,
                         options_->reuse_port || placement_.each_loop_listens());
}

/// Steers when it is called for the last of the loops.
Result<> AcceptorGroup::steer_by_processor(const Acceptor& acceptor) {
  const int processor = only_processor_of_this_thread();
  if (processor < 0) return base::failure(EINVAL);
  processors_.push_back(processor);
  if (processors_.size() < acceptors_.size()) return {};
  return server::steer_by_processor(acceptor.core().backend().system(), acceptor.listener().fd(),
                                    processors_);
}

Acceptor* AcceptorGroup::acceptor_on(const EventLoop& loop) const noexcept {
  const std::size_t index = group_.index_of(loop);
  return index < acceptors_.size() ? acceptors_[index].load() : nullptr;
}

void AcceptorGroup::post_to_acceptors(Callback<void(Acceptor&)> function) {
  group_.post_to_all([self = shared_from_this(), function = std::move(function)](EventLoop& loop) {
    if (Acceptor* const acceptor = self->acceptor_on(loop)) function(*acceptor);
  });
}

bool AcceptorGroup::for_each_acceptor(Callback<void(Acceptor&)> function) {
  return group_.for_each([this, &function](EventLoop& loop) {
    if (Acceptor* const acceptor = acceptor_on(loop)) function(*acceptor);
  });
}

void AcceptorGroup::count_in(const EventLoop& loop) noexcept {
  group_.add_load(loop);
  connections_.fetch_add(1);
}

void AcceptorGroup::count_out(const EventLoop& loop) noexcept {
  group_.add_load(loop, -1);
  const std::size_t left = connections_.fetch_sub(1) - 1;
  if (EventLoop* const waiting = waits_for_capacity_.exchange(nullptr)) {
    try {
      waiting->post([self = shared_from_this(), waiting] {
        if (Acceptor* const acceptor = self->acceptor_on(*waiting)) acceptor->notify_capacity();
      });
    } catch (const std::exception&) {  // Out of memory, or the queue of the loop is full.
      waits_for_capacity_ = waiting;   // The next connection that ends tries again.
    }
  }
  if (left == 0) notify_waiters();
}

void AcceptorGroup::move_count(const EventLoop& from, const EventLoop& to) noexcept {
  group_.add_load(from, -1);
  group_.add_load(to);
}

std::size_t AcceptorGroup::connections_max_on(const EventLoop& loop) const noexcept {
  if (!placement_.each_loop_listens()) return SIZE_MAX;
  const std::size_t limit = connections_max_;
  const std::size_t loops = acceptors_.size();
  const bool has_one_more = group_.index_of(loop) < limit % loops;
  return std::max<std::size_t>(limit / loops + (has_one_more ? 1 : 0), 1);
}

bool AcceptorGroup::is_full(EventLoop& loop) noexcept {
  const std::size_t limit = connections_max_;
  if (placement_.each_loop_listens() || connections_ < limit) return false;
  // The order matters: a connection that ends decrements the count and then checks for a waiting
  // loop, so either this thread sees the lower count or the other one sees the waiting loop.
  waits_for_capacity_ = &loop;
  return connections_ >= limit;
}

const std::stop_source& AcceptorGroup::shutdown_source_on(const EventLoop& loop) const noexcept {
  const std::size_t index = group_.index_of(loop);
  if (index >= shutdown_sources_.size()) [[unlikely]]
    misused("shutdown_token", "with a loop that is not one of its group",
            "pass the loop of the stream or connection, for example peer.loop()");
  return shutdown_sources_[index];
}

void AcceptorGroup::add_listener(int descriptor) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back(descriptor);
}

void AcceptorGroup::close_listeners(std::vector<Listener>& listeners) noexcept {
  // copy_listeners() sees each listener either open or not at all.
  const std::lock_guard lock(mutex_);
  for (Listener& listener : listeners) {
    std::erase(listeners_, listener.fd());
    if (keeps_path_) listener.keep_path();
    listener.close();
  }
}

Result<std::vector<UniqueFd>> AcceptorGroup::copy_listeners() {
  if (!process_.is_current()) return base::failure(ECANCELED);
  std::vector<UniqueFd> copies;
  const std::lock_guard lock(mutex_);
  for (const int listener : listeners_) {
    UniqueFd copy(::fcntl(listener, F_DUPFD_CLOEXEC, 0));
    if (!copy.is_open()) return base::failure(errno);
    copies.push_back(std::move(copy));
  }
  return copies;
}

void AcceptorGroup::end_listening() noexcept {
  --listening_;
  notify_waiters();
}

void AcceptorGroup::notify_waiters() noexcept {
  const std::lock_guard lock(mutex_);
  if (!has_ended()) return;
  // While the lock is held, the waiting tasks and their loops exist.
  for (ShutdownWaiter* waiter = waiters_.front(); waiter != nullptr;
       waiter = waiters_.after(*waiter))
    waiter->wakeup.send();
}

void AcceptorGroup::acceptor_destroyed(const Acceptor& acceptor) noexcept {
  acceptors_[group_.index_of(acceptor.loop())] = nullptr;
  notify_waiters();
  const std::lock_guard lock(mutex_);
  --acceptors_alive_;
  destroyed_.notify_all();
}

void AcceptorGroup::wait_for_destruction() noexcept {
  if (!process_.is_current()) return;
  std::unique_lock lock(mutex_);
  destroyed_.wait(lock, [this] { return acceptors_alive_ == 0; });
}

Task<> AcceptorGroup::shut_down(std::shared_ptr<AcceptorGroup> self, Duration grace) {
  if (!self->process_.is_current()) co_return;
  const TaskContext& context = co_await this_task;
  EventLoop& loop = *context.loop;
  if (const Acceptor* local = self->acceptor_on(loop); local != nullptr && local->runs(context))
    self->misused("shut_down", "by one of its own handlers, for which it waits,",
                  "call stop(), or spawn the shut_down() on a loop");
  ShutdownWaiter waiter(*self, loop);
  const auto expire_grace = [&self] {
    self->post_to_acceptors([](Acceptor& acceptor) { acceptor.expire_grace(); });
  };
  self->post_to_acceptors([](Acceptor& acceptor) { acceptor.begin_shutdown(); });
  Timer alarm(loop, expire_grace);
  alarm.start(grace);
  for (bool stop_requested = false; !self->has_ended();) {
    waiter.event.reset();
    // A connection that ends after this check sets the event.
    if (self->has_ended()) break;
    if (stop_requested) {
      co_await uncancellable(waiter.event.wait());
    } else if (!co_await waiter.event.wait()) {
      stop_requested = true;
      expire_grace();
    }
  }
}

void AcceptorGroup::begin_serving() noexcept {
  if (serves_.exchange(true)) [[unlikely]]
    misused("serve", "twice", "create one server for each handler or set of callbacks");
}

void AcceptorGroup::misused(const char* function, const char* mode,
                            const char* fix) const noexcept {
  const char* const name = endpoint_.is_ip() ? "TcpServerGroup" : "UnixServerGroup";
  base::fail_check("%s::%s%s() was called %s on the server listening at %s; %s", name,
                   function != nullptr ? "" : "~", function != nullptr ? function : name, mode,
                   endpoint_.to_string().c_str(), fix);
}

void AcceptorGroup::check_group(const char* function) const noexcept {
  if (group_exists_.expired()) [[unlikely]]
    misused(function, "after its group was destroyed", "destroy the server before its LoopGroup");
}

}  // namespace tambour::detail::server
