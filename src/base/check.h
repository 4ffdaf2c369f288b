// Contracts that are always checked. A breach is a programmer's error: it cannot be reported to the
// code that made it, so the process ends with a sentence that says what was expected.
#pragma once

namespace tambour::base {

[[noreturn]] void contract_breached(const char* sentence) noexcept;

/// Writes "tambour: ", the message (printf(3)) and a newline to standard error in one write(2), and
/// aborts. The message names the function, the object and the fix. It is cut after 1000 bytes.
[[noreturn]] [[gnu::format(printf, 1, 2)]] void fail_check(const char* format, ...) noexcept;

/// Cheap enough for every build: one predictable branch.
inline void check(bool holds, const char* sentence) noexcept {
  if (!holds) [[unlikely]]
    contract_breached(sentence);
}

}  // namespace tambour::base
