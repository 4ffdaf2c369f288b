// Loads the files of a context again when they have changed.
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include <tambour/task/scope.h>
#include <tambour/task/task.h>
#include <tambour/threads/worker_pool.h>

#include "tls/context/context.h"

namespace tambour::tls::detail {
namespace {

/// Lets the next handshake try again, unless the files were read: the task of a loop that is
/// destroyed ends early.
template <class S>
class Attempt {
 public:
  explicit Attempt(S& state) noexcept : state_(&state) {}
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt() {
    if (state_ != nullptr) state_->current()->files().forget();
  }
  void succeed() noexcept { state_ = nullptr; }

 private:
  S* state_;
};

template <class S>
Task<> load_changed(std::shared_ptr<S> state) {
  Attempt<S> attempt(*state);
  std::optional<Loaded<>> loaded;
  try {
    const auto load = [](const std::shared_ptr<S>& local) { return local->load_again(); };
    auto answer = co_await WorkerPool::files().run(load, state);
    if (!answer) co_return;
    loaded = std::move(*answer);
  } catch (const std::bad_alloc&) {
    co_return;
  }
  attempt.succeed();
  const auto generation = state->current();
  generation->counters().count_reload(loaded->has_value());
  if (const auto& report = generation->options().on_reload) report(*loaded);
}

template <class S>
auto current_of(const std::shared_ptr<S>& state, EventLoop& loop) noexcept {
  auto generation = state->current();
  if (!generation->files().have_changed(loop.now(), generation->options().file_check_interval))
    return generation;
  try {
    spawn(loop, load_changed(state));
  } catch (const std::exception&) {
    generation->files().forget();
  }
  return generation;
}

}  // namespace

std::shared_ptr<ServerGeneration> generation_for_handshake(const tls::ServerContext& context,
                                                           EventLoop& loop) noexcept {
  return current_of(state_of(context), loop);
}

std::shared_ptr<ClientGeneration> generation_for_handshake(const tls::ClientContext& context,
                                                           EventLoop& loop) noexcept {
  return current_of(state_of(context), loop);
}

}  // namespace tambour::tls::detail
