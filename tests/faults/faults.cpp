// Decides which call or completion fails, and rewrites completions of io_uring.
#include "faults/faults.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <liburing.h>

#include "backend/io_uring/ring_files.h"

namespace tambour::test {
namespace {

constinit std::atomic<Faults*> plan{nullptr};

/// The user_data of completions that belong to no operation (backend/io_uring/uring.cpp).
constexpr std::uint64_t nothing_to_do = ~std::uint64_t{0};

/// Returns whether the completion is of a file operation that returns a descriptor.
bool is_opening(std::uint64_t token) noexcept {
  const detail::FileOperation* op = detail::backend::RingFiles::operation_of(token);
  return op != nullptr && op->kind == detail::OperationKind::file_open;
}

/// Submits only the first `count` pending entries and does not wait for completions, as
/// io_uring_enter(2) does if it runs out of memory for the next entry.
int submit_only(io_uring& ring, unsigned count) noexcept {
  const unsigned end = ring.sq.sqe_tail;
  ring.sq.sqe_tail = ring.sq.sqe_head + std::min(count, end - ring.sq.sqe_head);
  const int outcome = ::io_uring_submit(&ring);
  ring.sq.sqe_tail = end;
  return outcome;
}

void end_poll(io_uring& ring, std::uint64_t token) noexcept {
  io_uring_sqe* entry = ::io_uring_get_sqe(&ring);
  if (entry == nullptr) return;
  ::io_uring_prep_poll_remove(entry, token);
  ::io_uring_sqe_set_data64(entry, nothing_to_do);
}

}  // namespace

Faults::Faults() noexcept {
  if (plan.exchange(this) != nullptr) std::abort();
}

Faults::~Faults() { plan = nullptr; }

void Faults::fail(Call call, unsigned nth, int error, unsigned times) noexcept {
  kind_ = Kind::error;
  call_ = call;
  first_ = nth;
  times_ = times;
  outcome_ = -error;
}

void Faults::fail_until(Call until, Call call, unsigned nth, int error) noexcept {
  until_ = until;
  has_until_ = true;
  fail(call, nth, error, no_end);
}

void Faults::take_only(unsigned count, unsigned nth) noexcept {
  fail(Call::ring_enter, nth, 1);
  kind_ = Kind::short_count;
  outcome_ = static_cast<int>(count) + 1;  // Not 0, which means that nothing fails.
}

void Faults::end_multishot(unsigned nth) noexcept {
  fail(Call::ring_completion, nth, 1);
  kind_ = Kind::no_more;
}

void Faults::lose_completion(unsigned nth) noexcept {
  fail(Call::ring_completion, nth, 1);
  kind_ = Kind::lost;
}

bool Faults::fails(Call call) noexcept {
  const unsigned number = ++counts_[index(call)];
  if (outcome_ == 0) return false;
  if (hit() && has_until_ && call == until_) clear();
  if (call != call_ || number < first_ || number - first_ >= times_ || outcome_ == 0) return false;
  ++hits_;
  return true;
}

std::optional<int> Faults::outcome_of(Call call, io_uring* ring) noexcept {
  if (call == Call::ring_enter && has_lost_.exchange(false)) return -EBADR;
  // A poll that was reported as ended must report no more events.
  if (call == Call::ring_enter && ended_ != 0) end_poll(*ring, std::exchange(ended_, 0));
  if (!fails(call)) return std::nullopt;
  if (kind_ == Kind::short_count) return submit_only(*ring, static_cast<unsigned>(outcome_ - 1));
  return outcome_;
}

void Faults::rewrite(io_uring_cqe& completion) noexcept {
  const bool has_more = (completion.flags & IORING_CQE_F_MORE) != 0;
  if (completion.user_data == nothing_to_do || (kind_ == Kind::no_more && !has_more)) return;
  if (!fails(Call::ring_completion)) return;
  if (has_more) ended_ = completion.user_data;
  completion.flags &= ~IORING_CQE_F_MORE;
  // The opened descriptor would leak.
  if (completion.res >= 0 && is_opening(completion.user_data)) ::close(completion.res);
  if (kind_ == Kind::error) completion.res = outcome_;
  if (kind_ == Kind::lost) {
    completion.user_data = nothing_to_do;
    has_lost_ = true;
  }
}

}  // namespace tambour::test

namespace tambour::detail::base {

std::optional<int> planned_outcome(Call call, io_uring* ring) noexcept {
  test::Faults* faults = test::plan.load();
  return faults == nullptr ? std::nullopt : faults->outcome_of(call, ring);
}

void rewrite_completion(io_uring_cqe& completion) noexcept {
  if (test::Faults* faults = test::plan.load()) faults->rewrite(completion);
}

}  // namespace tambour::detail::base
