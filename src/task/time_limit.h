// Time limits of options.
#pragma once

#include <utility>

#include <tambour/base/clock.h>
#include <tambour/task/combinators.h>
#include <tambour/task/task.h>

namespace tambour::detail::task {

/// timeout(), or no limit if `limit` is zero.
template <AwaitableArgument A>
Task<ResultOf<AwaitResult<A>>> within(Duration limit, A awaitable) {
  if (limit > Duration::zero()) return timeout(limit, std::move(awaitable));
  return [](A unlimited) -> Task<ResultOf<AwaitResult<A>>> {
    co_return co_await std::move(unlimited);
  }(std::move(awaitable));
}

}  // namespace tambour::detail::task
