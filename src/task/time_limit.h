// Time limits of options.
#pragma once

#include <utility>

#include <tambour/clock.h>
#include <tambour/task.h>
#include <tambour/when.h>

namespace tambour::task {

/// timeout(), or no limit if `limit` is zero.
template <AwaitableArgument A>
Task<ResultOf<AwaitResult<A>>> within(Duration limit, A awaitable) {
  if (limit > Duration::zero()) return timeout(limit, std::move(awaitable));
  return [](A unlimited) -> Task<ResultOf<AwaitResult<A>>> {
    co_return co_await std::move(unlimited);
  }(std::move(awaitable));
}

}  // namespace tambour::task
