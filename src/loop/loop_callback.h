// How handles are made, replaced, moved and destroyed: the functions of detail::LoopCallback, which
// only the sources of handles call, and move assignment.
#pragma once

#include <memory>
#include <utility>

#include <tambour/detail/loop_callback.h>

#include "loop/core.h"

namespace tambour::detail {

template <class Function>
LoopCallback<Function>::LoopCallback(loop::Core& core, Function function) noexcept
    : core_(&core), function_(std::move(function)) {
  core_->attach();
}

template <class Function>
LoopCallback<Function>::~LoopCallback() {
  if (core_ == nullptr) return;  // Moved from.
  core_->defer_delete(function_.release());
  core_->detach();
}

template <class Function>
void LoopCallback<Function>::replace_function(Function function) noexcept {
  core_->defer_delete(function_.release());
  function_ = std::move(function);
}

}  // namespace tambour::detail

namespace tambour::detail::loop {

/// Move assignment of a handle: `target` becomes what the move constructor makes of `source`.
template <class T>
T& replace_handle(T& target, T& source) noexcept {
  if (&target == &source) return target;
  std::destroy_at(&target);
  return *std::construct_at(&target, std::move(source));
}

}  // namespace tambour::detail::loop
