// ev_child: as documented, the default loop reaps every child of the process and feeds the watchers
// of that child and those of any child.

#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/check.h"
#include "loop.h"

namespace tambour::libev {
namespace {

/// Lists linked through `next`, hashed by pid. Watchers of any child (pid 0) are in the first.
constexpr int bucket_count = 16;
std::array<ev_watcher_list*, bucket_count> buckets;

ev_watcher_list*& bucket_of(int pid) noexcept {
  return buckets[static_cast<std::size_t>(pid & (bucket_count - 1))];
}

void tell(Loop& loop, ev_watcher_list* first, int priority, int pid, int status) noexcept {
  const bool ended = !WIFSTOPPED(status) && !WIFCONTINUED(status);
  for (; first != nullptr; first = first->next) {
    auto* const child = reinterpret_cast<ev_child*>(first);
    if (child->pid != pid && child->pid != 0) continue;
    if (!ended && (child->flags & 1) == 0) continue;
    // Feed the watcher in this iteration, before the status of the next child can arrive.
    ev_set_priority(child, priority);
    child->rpid = pid;
    child->rstatus = status;
    loop.pendings.feed(base_of(child), EV_CHILD);
  }
}

void on_sigchld(struct ev_loop* loop, ev_signal* watcher, int) {
  int status;
  pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
  if (pid < 0 && errno == EINVAL) pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
  if (pid <= 0) return;
  // There may be more children. The callbacks for this one are invoked first.
  ev_feed_event(loop, watcher, EV_SIGNAL);
  tell(*loop, bucket_of(pid), watcher->priority, pid, status);
  if (&bucket_of(pid) != &bucket_of(0)) tell(*loop, bucket_of(0), watcher->priority, pid, status);
}

}  // namespace

void start_reaping(Loop& loop, ev_signal& watcher) noexcept {
  ev_signal_init(&watcher, &on_sigchld, SIGCHLD);
  ev_set_priority(&watcher, EV_MAXPRI);
  ev_signal_start(loop.handle(), &watcher);
  ev_unref(loop.handle());
}

}  // namespace tambour::libev

using namespace tambour::libev;

void ev_child_start(struct ev_loop* loop, ev_child* w) noexcept {
  if (w->active != 0) return;
  tambour::detail::base::check(
      loop == ev_default_loop_ptr,
      "ev_child_start: child watchers are only supported in the default loop");
  loop->start(w, 1);
  ev_watcher_list*& first = bucket_of(w->pid);
  w->next = first;
  first = reinterpret_cast<ev_watcher_list*>(w);
}

void ev_child_stop(struct ev_loop* loop, ev_child* w) noexcept {
  loop->take_back(w);
  if (w->active == 0) return;
  ev_watcher_list** link = &bucket_of(w->pid);
  while (*link != nullptr && *link != reinterpret_cast<ev_watcher_list*>(w)) link = &(*link)->next;
  if (*link != nullptr) *link = w->next;
  loop->stop(w);
}
