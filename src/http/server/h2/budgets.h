// What a client of HTTP/2 may cost the server without a request that is worth it.
#pragma once

#include <tambour/detail/namespaces.h>
#include <tambour/http/http2.h>

#include "http/h2/token_budget.h"

namespace tambour::http {

/// The budgets of one connection: see Http2Options.
struct H2Budgets {
  explicit H2Budgets(const Http2Options& options) noexcept
      : resets(options.resets_max), idle_frames(options.idle_frames_max) {}

  TokenBudget resets;
  TokenBudget idle_frames;
};

}  // namespace tambour::http
