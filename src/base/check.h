// Contracts that are always checked. A violation is a programming error that cannot be reported to
// the code that caused it, so the process aborts with a message: what happened, to which object,
// with the values, and what to do instead. What is probably a mistake is only reported.
#pragma once

namespace tambour::detail::base {

/// Writes "tambour: ", the formatted message and a line feed to stderr with one write(2), and
/// aborts. Allocates no memory. Truncates messages longer than 1 KiB.
///
///   fail_check("TaskEvent::set() called after EventLoop (created at %s:%u) was destroyed", ...);
[[noreturn]] [[gnu::format(printf, 1, 2)]] void fail_check(const char* format, ...) noexcept;

/// Writes such a line and returns: for a probable mistake in a program that is valid. Report each
/// mistake once per process.
[[gnu::format(printf, 1, 2)]] void warn(const char* format, ...) noexcept;

[[noreturn]] void contract_violated(const char* sentence) noexcept;

/// For a message without arguments. Costs one predictable branch.
inline void check(bool holds, const char* sentence) noexcept {
  if (!holds) [[unlikely]]
    contract_violated(sentence);
}

}  // namespace tambour::detail::base
