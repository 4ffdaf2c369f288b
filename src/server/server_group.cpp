#include <tambour/server_group.h>

#include <fcntl.h>

#include <cerrno>
#include <exception>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include <tambour/event_loop.h>
#include <tambour/task_event.h>
#include <tambour/task_scope.h>
#include <tambour/timer.h>

#include "base/check.h"
#include "loop/core.h"
#include "net/socket_names.h"
#include "server/reuse_port.h"
#include "server/server_group_part.h"

namespace tambour {
namespace {

Task<> wait_for(TaskEvent& event) { static_cast<void>(co_await event.wait()); }

template <class Shared>
Shared& existing(const std::shared_ptr<Shared>& shared, const char* function) noexcept {
  if (shared == nullptr) [[unlikely]]
    base::fail_check("StreamServerGroup::%s() was called on a server that was moved from",
                     function);
  return *shared;
}

}  // namespace

void ServerGroupBase::Shared::post_to_parts(const std::function<void(Part&)>& function) {
  group.post_to_all([self = shared_from_this(), function](EventLoop& loop) {
    if (Part* part = self->part_on(loop)) function(*part);
  });
}

bool ServerGroupBase::Shared::for_each_part(const std::function<void(Part&)>& function) {
  return group.for_each([this, &function](EventLoop& loop) {
    if (Part* part = part_on(loop)) function(*part);
  });
}

void ServerGroupBase::Shared::count_out(const EventLoop& loop) noexcept {
  group.add_load(loop, -1);
  const std::size_t left = total.fetch_sub(1) - 1;
  if (EventLoop* acceptor = waits_for_room.exchange(nullptr)) {
    try {
      acceptor->post([self = shared_from_this(), acceptor] {
        if (Part* part = self->part_on(*acceptor)) part->make_room();
      });
    } catch (const std::bad_alloc&) {
      waits_for_room = acceptor;  // The next connection that ends tries again.
    }
  }
  if (left == 0) notify_waiters();
}

void ServerGroupBase::Shared::notify_waiters() noexcept {
  const std::lock_guard lock(mutex);
  if (!is_over()) return;
  // While the lock is held, the waiting tasks and their loops exist.
  for (net::GroupWaiter* waiter = waiters.front(); waiter != nullptr;
       waiter = waiters.after(*waiter))
    waiter->bell.send();
}

void ServerGroupBase::Shared::part_destroyed() noexcept {
  notify_waiters();
  const std::lock_guard lock(mutex);
  --parts_alive;
  changed.notify_all();
}

void ServerGroupBase::Shared::wait_for_end() noexcept {
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return parts_alive == 0; });
}

Result<> ServerGroupBase::Shared::open_part(EventLoop& loop, Source& source) {
  const std::size_t index = group.index_of(loop);
  auto* part = new Part(shared_from_this(), loop);
  {
    const std::lock_guard lock(mutex);
    ++parts_alive;
  }
  parts[index] = part;
  loop::core_of(loop).owned().push_back(static_cast<detail::LoopOwned&>(*part));
  const std::size_t loops = net::each_loop_listens(options.placement) ? parts.size() : 1;
  if (index >= loops) return {};
  for (std::size_t i = index; i < source.listeners.size(); i += loops) {
    if (auto adopted = part->adopt(std::move(source.listeners[i]), source.supports); !adopted)
      return adopted;
  }
  if (!part->listens()) {
    if (auto opened = part->listen(index == 0 ? source.at : endpoint); !opened) return opened;
  }
  if (index == 0) endpoint = part->listener().endpoint();
  if (options.placement != Placement::processor) return {};
  const int processor = net::only_processor_of_this_thread();
  if (processor < 0) return std::unexpected(system_error(EINVAL));
  processors.push_back(processor);
  if (processors.size() < parts.size()) return {};
  return net::steer_by_processor(loop::core_of(loop).backend().system(),
                                 part->listener().descriptor(), processors);
}

Result<std::vector<UniqueFd>> ServerGroupBase::Shared::copy_listeners() {
  std::vector<UniqueFd> copies;
  const std::lock_guard lock(mutex);
  for (const int listener : listeners) {
    UniqueFd copy(::fcntl(listener, F_DUPFD_CLOEXEC, 0));
    if (!copy.is_open()) return std::unexpected(system_error(errno));
    copies.push_back(std::move(copy));
  }
  return copies;
}

void ServerGroupBase::Shared::misused(const char* function, const char* how,
                                      const char* fix) const noexcept {
  const char* const name = endpoint.is_ip() ? "TcpServerGroup" : "UnixServerGroup";
  base::fail_check("%s::%s%s() was called %s on the server listening at %s; %s", name,
                   function != nullptr ? "" : "~", function != nullptr ? function : name, how,
                   endpoint.to_string().c_str(), fix);
}

void ServerGroupBase::Shared::check_group(const char* function) const noexcept {
  if (group_exists.expired()) [[unlikely]]
    misused(function, "after its group was destroyed", "destroy the server before its LoopGroup");
}

Task<> ServerGroupBase::Shared::shut_down(std::shared_ptr<Shared> self, Duration grace) {
  const TaskContext& context = co_await this_task;
  EventLoop& loop = *context.loop;
  if (const Part* part = self->part_on(loop); part != nullptr && part->runs(context))
    self->misused("shut_down", "by one of its own handlers, for which it waits,",
                  "call stop(), or spawn the shut_down() on a loop");
  struct Waiting : net::GroupWaiter {
    Shared& shared;
    Waiting(Shared& its_shared, EventLoop& its_loop)
        : net::GroupWaiter(its_loop), shared(its_shared) {
      const std::lock_guard lock(shared.mutex);
      shared.waiters.push_back(*this);
    }
    ~Waiting() {
      const std::lock_guard lock(shared.mutex);
      unlink();
    }
  } waiter(*self, loop);
  self->post_to_parts([](Part& part) { part.stop(); });
  Timer alarm(loop, [&self] { self->post_to_parts([](Part& part) { part.expire_grace(); }); });
  alarm.start(grace);
  for (bool asked = false; !self->is_over();) {
    waiter.event.reset();
    // A connection that ends after this check sets the event.
    if (self->is_over()) break;
    if (asked) {
      // After a stop request, each wait of this task fails with ECANCELED. A new task, which has no
      // stop request, waits in its place.
      TaskScope unstoppable(loop);
      unstoppable.spawn(wait_for(waiter.event));
      co_await unstoppable.join();
    } else if (!co_await waiter.event.wait()) {
      asked = true;
      self->post_to_parts([](Part& part) { part.expire_grace(); });
    }
  }
}

ServerGroupBase::ServerGroupBase(std::shared_ptr<Shared> shared) noexcept
    : shared_(std::move(shared)) {}
ServerGroupBase::ServerGroupBase(ServerGroupBase&&) noexcept = default;

ServerGroupBase& ServerGroupBase::operator=(ServerGroupBase&& other) noexcept {
  if (this != &other) {
    close();
    shared_ = std::move(other.shared_);
  }
  return *this;
}

ServerGroupBase::~ServerGroupBase() { close(); }

void ServerGroupBase::close() noexcept {
  if (shared_ == nullptr) return;
  shared_->check_group(nullptr);
  // In two passes: after the first, no connection moves between parts. If the group has been
  // stopped, its loops destroy the parts themselves.
  if (shared_->for_each_part([](Part& part) { part.drop(); }))
    shared_->for_each_part([](Part& part) { delete &part; });
  shared_->wait_for_end();
  shared_.reset();
}

Result<ServerGroupBase> ServerGroupBase::open(LoopGroup& group, const Endpoint& at,
                                              const GroupListenOptions& options) {
  return open(group, Source{.at = at}, options);
}

Result<ServerGroupBase> ServerGroupBase::open(LoopGroup& group, std::vector<UniqueFd> listeners,
                                              bool (*supports)(const Endpoint&),
                                              const GroupListenOptions& options) {
  if (listeners.empty()) return std::unexpected(system_error(EINVAL));
  // The steering program refers to listeners by index, one for each loop.
  if (options.placement == Placement::processor && listeners.size() > group.size())
    return std::unexpected(system_error(EINVAL));
  Source source{.at = {}, .listeners = std::move(listeners), .supports = supports};
  for (std::size_t i = 0; i < source.listeners.size(); ++i) {
    const auto at = net::endpoint_of(backend::kernel(), source.listeners[i].get(),
                                     &backend::System::getsockname);
    if (!at) return std::unexpected(at.error());
    if (i > 0 && *at != source.at) return std::unexpected(system_error(EINVAL));
    source.at = *at;
  }
  return open(group, std::move(source), options);
}

Result<ServerGroupBase> ServerGroupBase::open(LoopGroup& group, Source source,
                                              const GroupListenOptions& options) {
  if (net::each_loop_listens(options.placement) && !source.at.is_ip())
    return std::unexpected(system_error(EOPNOTSUPP));
  ServerGroupBase server(std::make_shared<Shared>(group, group.state_, options));
  // Sequentially: the first listener determines the port, and steering depends on the order.
  for (std::size_t i = 0; i < group.size(); ++i) {
    Result<> opened;
    const bool all_called = group.for_each([&](EventLoop& loop) {
      if (&loop == &group[i]) opened = server.shared_->open_part(loop, source);
    });
    if (!all_called) return std::unexpected(system_error(ECANCELED));
    if (!opened) return std::unexpected(opened.error());
  }
  return server;
}

ServerGroupBase::Shared& ServerGroupBase::usable(const char* function) const noexcept {
  existing(shared_, function).check_group(function);
  return *shared_;
}

void ServerGroupBase::serve_with(const std::function<Task<>(Socket)>& handler) {
  usable("serve").begin_serving();
  // All parts are prepared before any accepts, because an accepted connection may be handed to any
  // part.
  shared_->for_each_part([&](Part& part) { part.prepare(handler); });
  shared_->for_each_part([](Part& part) { part.accept(); });
}

void ServerGroupBase::serve(ConnectionCallbacks callbacks) {
  usable("serve").begin_serving();
  const auto shared = std::make_shared<const ConnectionCallbacks>(std::move(callbacks));
  shared_->for_each_part([&](Part& part) { part.prepare(shared); });
  shared_->for_each_part([](Part& part) { part.accept(); });
}

const Endpoint& ServerGroupBase::endpoint() const noexcept {
  return existing(shared_, "endpoint").endpoint;
}
Result<std::vector<UniqueFd>> ServerGroupBase::copy_listeners() const {
  return usable("copy_listeners").copy_listeners();
}
void ServerGroupBase::keep_path() noexcept { usable("keep_path").keeps_path = true; }
void ServerGroupBase::stop() {
  usable("stop").post_to_parts([](Part& part) { part.stop(); });
}
Task<> ServerGroupBase::shut_down(Duration grace) {
  static_cast<void>(usable("shut_down"));
  return Shared::shut_down(shared_, grace);
}
std::size_t ServerGroupBase::connections() const noexcept {
  return existing(shared_, "connections").total;
}
std::uint64_t ServerGroupBase::accepted() const noexcept {
  return existing(shared_, "accepted").accepted;
}

}  // namespace tambour
