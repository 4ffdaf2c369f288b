// Contracts that are always checked. A breach is a programmer's error: it cannot be reported to the
// code that made it, so the process ends with a sentence that says what was expected.
#pragma once

namespace tambour::base {

[[noreturn]] void contract_breached(const char* sentence) noexcept;

/// Aborts with a message of its own: which function was misused, the values, and what to do
/// instead. Formats as printf(3) does, in a buffer on the stack; longer messages are cut.
[[noreturn]] [[gnu::format(printf, 1, 2)]] void fail_check(const char* format, ...) noexcept;

/// Cheap enough for every build: one predictable branch.
inline void check(bool holds, const char* sentence) noexcept {
  if (!holds) [[unlikely]]
    contract_breached(sentence);
}

}  // namespace tambour::base
