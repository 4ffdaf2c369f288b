// Acceptor: from accept(2) to the handler: capacity, the choice of a loop, the PROXY header, the
// TLS handshake, serving and shutting down.
#include "server/acceptor.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <tambour/loop/timer.h>
#include <tambour/net/move_to.h>
#include <tambour/net/proxy_protocol.h>
#include <tambour/task/cancellation.h>
#include <tambour/task/combinators.h>

#include "base/check.h"
#include "base/log/log_site.h"
#include "server/acceptor_group.h"
#include "server/connections_max.h"
#include "task/scope_access.h"
#include "task/time_limit.h"
#include "tls_contract/context_state.h"

namespace tambour::detail::server {
namespace {

using tls::detail::ContextAccess;

/// A full server closes a handshake that is unfinished after this time if another connection waits.
/// Younger ones are left alone: if few connections are free, those that arrive would otherwise
/// displace each other before any could finish.
constexpr Duration displaced_age_min = std::chrono::milliseconds(250);

/// Delivers an accepted stream to the acceptor of another loop.
struct Delivery {
  std::shared_ptr<AcceptorGroup> group;
  ConnectionSlot slot;  ///< Destroyed before `group`.

  void operator()(SocketStream stream) {
    if (Acceptor* const acceptor = group->acceptor_on(stream.loop()))
      acceptor->arrive(std::move(stream), std::move(slot));
  }
};

}  // namespace

Acceptor::Acceptor(EventLoop& loop, std::shared_ptr<const ListenOptions> options,
                   std::shared_ptr<AcceptorGroup> group)
    : core_(loop::core_of(loop)),
      loop_(loop),
      options_(std::move(options)),
      group_(std::move(group)),
      reporter_(group_ ? group_->reporter() : std::make_shared<ErrorReporter>(options_->on_error)),
      shutdown_(group_ ? group_->shutdown_source_on(loop) : std::stop_source()),
      connections_max_(group_ ? group_->connections_max_on(loop)
                              : connections_max_of(*options_, core_.backend().system())),
      capacity_(loop),
      handlers_(std::in_place, loop),
      preparing_(std::in_place, loop),
      accepting_(std::in_place, loop) {
  for (TaskScope* scope : {&*handlers_, &*preparing_})
    scope->set_exception_handler([this](std::exception_ptr thrown) { report(std::move(thrown)); });
  accepting_->set_exception_handler(
      [this](std::exception_ptr thrown) { report_listener(std::move(thrown)); });
  task::ScopeAccess::set_ended_handler(*handlers_, [this] { ended(); });
  task::ScopeAccess::set_ended_handler(*preparing_, [this] { capacity_.set(); });
  task::ScopeAccess::set_ended_handler(*accepting_, [this] { note_end_of_accepting(); });
  core_.attach();
}

Acceptor::~Acceptor() {
  drop();
  accepting_.reset();
  preparing_.reset();
  note_end_of_accepting();
  if (group_ != nullptr) group_->acceptor_destroyed(*this);
  core_.detach();
}

void Acceptor::destroy(Acceptor* acceptor) noexcept {
  if (acceptor->calls_ == 0) {
    delete acceptor;
    return;
  }
  acceptor->drop();
  acceptor->unlink();
  acceptor->core_.defer_delete(acceptor);
}

Result<> Acceptor::listen(const Endpoint& at, bool reuse_port) {
  return add(Listener::open(loop_, at, *options_, reuse_port));
}

Result<> Acceptor::adopt(UniqueFd listener, bool (*supports)(const Endpoint&)) {
  return add(Listener::adopt(loop_, std::move(listener), supports));
}

Result<> Acceptor::add(Result<Listener> listener) {
  if (!listener) return std::unexpected(listener.error());
  listeners_.push_back(std::move(*listener));
  if (group_ == nullptr) reporter_->set_endpoint(listeners_.back().endpoint());
  if (group_ != nullptr) group_->add_listener(listeners_.back().fd());
  listens_ = true;
  if (group_ != nullptr && !std::exchange(counts_as_listening_, true)) group_->begin_listening();
  return {};
}

void Acceptor::serve(std::function<Task<>(SocketStream)> handler,
                     const std::source_location& created_at, detail::HandshakeCheck check) {
  handler_ = std::move(handler);
  check_ = check;
  start_ = [this, created_at](SocketStream stream, ConnectionSlot& slot) {
    const Counted starting(starting_);
    Task<> task = handler_(std::move(stream));
    if (!task) return;  // The handler did not want the stream.
    slot.release();
    task::ScopeAccess::start(*handlers_, std::move(task), created_at);
  };
}

void Acceptor::serve(std::shared_ptr<const ConnectionCallbacks> callbacks) {
  start_ = [this, shared = std::move(callbacks)](SocketStream stream, ConnectionSlot& slot) {
    const std::size_t before = size();
    try {
      ConnectionOwner::start(std::move(stream), shared);
    } catch (...) {
      // on_connection has thrown, so the connection exists.
      if (size() != before) slot.release();
      throw;
    }
    slot.release();
  };
}

void Acceptor::accept(const std::source_location& served_at) {
  for (Listener& listener : listeners_) accepting_->spawn(accept_all(listener), served_at);
}

void Acceptor::log_full() const noexcept {
  static constinit base::LogSite site(LogLevel::warning, "server",
                                      "accepting is paused: the server is full");
  site.write({{"connections", connections()}});
}

/// While the server is full, waits for capacity, unless an unfinished handshake could be displaced.
/// If one can, or if another listener has reached a common limit since is_full() was checked, the
/// accepted stream waits, unless the server is stopped: a stream that was accepted before the stop
/// is still served.
Task<> Acceptor::accept_all(Listener& listener) {
  for (;;) {
    for (capacity_.reset(); is_full() && handshakes_.empty(); capacity_.reset()) {
      reporter_->count_pause();
      log_full();
      if (!co_await capacity_.wait()) co_return;
    }
    std::optional<Result<SocketStream>> accepted;
    try {
      accepted = co_await listener.accept(*reporter_);
    } catch (const std::bad_alloc&) {
      accepted.reset();  // There is no memory for the wait itself.
    }
    if (!accepted) {
      capacity_.set_later();
      if (!co_await capacity_.wait()) co_return;
      continue;
    }
    if (!*accepted) {
      // No task awaits this one, so the error would be lost otherwise. ECANCELED: stop().
      if (accepted->error() != system_error(ECANCELED))
        throw ListenerError(accepted->error(), listener.endpoint());
      co_return;
    }
    for (capacity_.reset(); listens_ && is_full(); capacity_.reset()) {
      displace_handshake();
      if (!co_await capacity_.wait()) break;
    }
    take(std::move(**accepted));
  }
}

bool Acceptor::is_full() noexcept {
  return connections() >= connections_max_ || (group_ != nullptr && group_->is_full(loop_));
}

void Acceptor::take(SocketStream stream) noexcept {
  if (group_ == nullptr) return arrive(std::move(stream), {nullptr, loop_});
  group_->count_accepted();
  PlacementPolicy& placement = group_->placement();
  if (options_->proxy_protocol == ProxyProtocol::required && placement.needs_header()) {
    ConnectionSlot slot(group_.get(), loop_);
    call_and_report(
        [&] { preparing_->spawn(read_header(std::move(stream), std::move(slot), true)); });
    return;
  }
  EventLoop& to = placement.choose(loop_, stream);
  place(std::move(stream), {group_.get(), to}, to);
}

/// The slot is counted for loop `to` already.
void Acceptor::place(SocketStream stream, ConnectionSlot slot, EventLoop& to) noexcept {
  if (&to == &loop_) return arrive(std::move(stream), std::move(slot));
  try {
    move_to(to, std::move(stream), Delivery{group_, std::move(slot)});
  } catch (const std::exception&) {
    return;  // Out of memory, or the queue of the loop is full: the stream was closed.
  }
}

void Acceptor::arrive(SocketStream stream, ConnectionSlot slot) noexcept {
  if (dropped_) return;
  call_and_report([&] {
    if (options_->proxy_protocol == ProxyProtocol::off || stream.proxy_header() != nullptr)
      return begin(std::move(stream), std::move(slot));
    preparing_->spawn(read_header(std::move(stream), std::move(slot), false));
  });
}

/// Runs concurrently with the handlers, so that a proxy that sends no header delays no other
/// connection.
Task<> Acceptor::read_header(SocketStream stream, ConnectionSlot slot, bool decides_placement) {
  auto header = co_await task::within(options_->proxy_header_timeout,
                                      read_proxy_header(stream, options_->proxy_header_bytes_max));
  if (dropped_) co_return;
  const Counted calling(calls_);
  if (!header) {
    if (options_->on_rejected) options_->on_rejected(stream, header.error());
    co_return;
  }
  stream.set_proxy_header(std::move(*header));
  if (!decides_placement) {
    begin(std::move(stream), std::move(slot));
    co_return;
  }
  EventLoop& to = group_->placement().choose(loop_, stream);
  slot.move_to(to);
  place(std::move(stream), std::move(slot), to);
}

/// In the task that makes it. Displaces the oldest one if there are too many.
struct Acceptor::Handshake : detail::ListHook<Handshake> {
  Handshake(Acceptor& owner, SocketStream& socket_stream)
      : acceptor(owner), stream(socket_stream), begun_ns(owner.core_.now_ns()) {
    Handshake* const oldest = acceptor.handshakes_.front();
    if (oldest != nullptr && acceptor.handshakes_count_ >= acceptor.options_->tls_handshakes_max)
      oldest->displace();
    acceptor.handshakes_.push_back(*this);
    ++acceptor.handshakes_count_;
  }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;
  ~Handshake() { leave(); }

  void leave() noexcept {
    if (!linked()) return;
    unlink();
    --acceptor.handshakes_count_;
  }
  void displace() noexcept {
    leave();
    is_displaced = true;
    ContextAccess::state(acceptor.options_->tls)->count_displaced();
    stream.close();
  }

  Acceptor& acceptor;
  SocketStream& stream;
  const std::int64_t begun_ns;
  bool is_displaced = false;
};

/// Makes room for a connection that waits because the server is full.
void Acceptor::displace_handshake() noexcept {
  Handshake* const oldest = handshakes_.front();
  if (oldest == nullptr) return;
  const Duration age(core_.now_ns() - oldest->begun_ns);
  if (age < displaced_age_min) return capacity_.set_after(displaced_age_min - age);
  oldest->displace();
}

/// Starts the connection, after the handshake if the server uses TLS.
void Acceptor::begin(SocketStream stream, ConnectionSlot slot) {
  if (!options_->tls) return start(std::move(stream), std::move(slot));
  preparing_->spawn(shake_hands(std::move(stream), std::move(slot)));
}

Task<> Acceptor::shake_hands(SocketStream stream, ConnectionSlot slot) {
  Handshake handshake(*this, stream);
  const bool starts_early = options_->tls_early_data && handler_ != nullptr;
  const auto when =
      starts_early ? tls::detail::Start::with_early_data : tls::detail::Start::when_complete;
  const tls::ServerContext& context = options_->tls;
  Result<> done = co_await ContextAccess::state(context)->accept(stream, context, when);
  if (dropped_) co_return;
  handshake.leave();
  const Counted calling(calls_);
  if (done && check_ != nullptr) done = check_(stream);
  if (done) {
    start(std::move(stream), std::move(slot));
    co_return;
  }
  if (handshake.is_displaced) done = std::unexpected<Error>(tls::ErrorCode::too_many_handshakes);
  if (options_->on_rejected) options_->on_rejected(stream, done.error());
}

void Acceptor::start(SocketStream stream, ConnectionSlot slot) {
  const Counted calling(calls_);
  start_(std::move(stream), slot);
  report_deferred();
}

void Acceptor::report(std::exception_ptr thrown) noexcept {
  if (starting_ == 0) {
    const Counted calling(calls_);
    // on_error may destroy the acceptor, and with it the last reference to the reporter.
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
    const std::shared_ptr<ErrorReporter> reporter = reporter_;
    return reporter->report(core_, std::move(thrown));
  }
  try {
    deferred_errors_.push_back(thrown);
  } catch (const std::bad_alloc&) {
    core_.throw_out_of_run(std::move(thrown));
  }
}

void Acceptor::report_listener(std::exception_ptr thrown) noexcept {
  const Counted calling(calls_);
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): see report().
  const std::shared_ptr<ErrorReporter> reporter = reporter_;
  reporter->report_listener(core_, std::move(thrown));
}

void Acceptor::report_deferred() noexcept {
  while (!deferred_errors_.empty() && starting_ == 0 && !dropped_) {
    std::exception_ptr first = std::move(deferred_errors_.front());
    deferred_errors_.erase(deferred_errors_.begin());
    report(std::move(first));
  }
}

void Acceptor::ended() noexcept {
  if (group_ != nullptr) group_->count_out(loop_);
  capacity_.set();
}

void Acceptor::move_failed() noexcept {
  if (group_ != nullptr) group_->count_out(loop_);
}

net::ConnectionOwner* Acceptor::for_loop(EventLoop& loop) noexcept {
  if (group_ == nullptr) return nullptr;
  Acceptor* const acceptor = group_->acceptor_on(loop);
  if (acceptor != nullptr) group_->count_in(loop);
  return acceptor;
}

void Acceptor::keep_path() noexcept {
  for (Listener& listener : listeners_) listener.keep_path();
}

void Acceptor::stop() noexcept {
  if (!std::exchange(listens_, false)) return;
  if (group_ != nullptr) {
    group_->close_listeners(listeners_);
  } else {
    for (Listener& listener : listeners_) listener.close();
  }
  if (accepting_) accepting_->request_stop();
  note_end_of_accepting();
}

void Acceptor::begin_shutdown() noexcept {
  static constinit base::LogSite site(LogLevel::info, "server", "shutting down");
  site.write({{"connections", connections()}});
  stop();
  begin_drain();
  shutdown_.request_stop();
}

void Acceptor::for_each_connection(const Callback<void(Connection&)>& function) {
  // The caller may not be a callback of the loop; then nothing else defers deletions.
  const loop::Core::Running keeps_objects(core_);
  const Counted calling(calls_);
  const std::uint64_t removed_before = connections_removed_;
  for_each([&](Connection& connection) {
    if (!connection.is_open()) return true;
    function(connection);
    if (dropped_) return false;
    if (connections_removed_ != removed_before) [[unlikely]]
      base::fail_check(
          "the callable of for_each_connection() ran the event loop, which has removed a "
          "connection "
          "of the server listening at %s; post() a task that runs the loop",
          endpoint().to_string().c_str());
    return true;
  });
}

const Endpoint& Acceptor::endpoint() const noexcept {
  return group_ != nullptr ? group_->endpoint() : listeners_.front().endpoint();
}

/// The group's shutdown waits for the accepting tasks, because one may hold an accepted stream.
void Acceptor::note_end_of_accepting() noexcept {
  if (listens_ || (accepting_ && !accepting_->empty())) return;
  if (std::exchange(counts_as_listening_, false)) group_->end_listening();
}

void Acceptor::expire_grace() noexcept {
  if (dropped_) return;
  handlers_->request_stop();
  preparing_->request_stop();
  close_all();
}

Task<> Acceptor::shut_down(Duration grace, void (*misused)(const Acceptor&)) {
  const TaskContext& context = co_await this_task;
  if (runs(context)) misused(*this);
  begin_shutdown();
  co_await task::ScopeAccess::join_to_end(*accepting_);
  Timer alarm(loop_, [this] { expire_grace(); });
  alarm.start(grace);
  // A stop request ends the grace period. Not from inside the request, which may come from a
  // callback of a connection.
  const auto end_grace = [this, &alarm] {
    if (!core_.closed()) alarm.start(Duration::zero());
  };
  const std::stop_callback early(context.stop, end_grace);
  // In this order, because each task that prepares a connection ends by starting it.
  co_await task::ScopeAccess::join_to_end(*preparing_);
  co_await task::ScopeAccess::join_to_end(*handlers_);
  while (size() > 0) {
    capacity_.reset();
    const Result<> waited = co_await capacity_.wait();
    if (!waited && size() > 0) co_await uncancellable(capacity_.wait());
  }
}

void Acceptor::drop() noexcept {
  if (starting_ != 0) [[unlikely]]
    base::fail_check(
        "the server listening at %s was destroyed by a task that it runs; destroy it in "
        "EventLoop::post(), or await shut_down() elsewhere first",
        listener().endpoint().to_string().c_str());
  dropped_ = true;
  stop();
  const std::size_t count = size() + (handlers_ ? handlers_->size() : 0);
  handlers_.reset();
  drop_all();
  // From now on closes the connections that arrive.
  close_all();
  if (group_ == nullptr) return;
  for (std::size_t i = 0; i < count; ++i) group_->count_out(loop_);
}

std::size_t Acceptor::connections() const noexcept {
  return size() + (handlers_ ? handlers_->size() : 0) + (preparing_ ? preparing_->size() : 0);
}

std::uint64_t Acceptor::accepted() const noexcept {
  std::uint64_t count = 0;
  for (const Listener& listener : listeners_) count += listener.accepted();
  return count;
}

}  // namespace tambour::detail::server
