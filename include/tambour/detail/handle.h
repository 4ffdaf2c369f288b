// The base of the handles that a loop keeps in a list. Not part of the public interface: it is
// visible only because a handle derives from it and must have a known size.
#pragma once

#include <utility>

#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/loop_callback.h>
#include <tambour/detail/ready_node.h>

#pragma GCC visibility push(default)

namespace tambour::detail {

/// `T` is the handle, `Function` its callback, `Node` what the loop runs. A started handle is in
/// the list of its loop. Each of `Tags` is one more list, whose owner replaces the handle when it
/// is moved.
template <class T, class Function, class Node = ReadyNode, class... Tags>
class Handle : public Node,
               public HlistHook<T>,
               public HlistHook<T, Tags>...,
               protected LoopCallback<Function> {
 public:
  /// `arguments` are those of the node.
  template <class... Arguments>
  Handle(loop::Core& core, Function function, const Arguments&... arguments) noexcept
      : Node(arguments...), LoopCallback<Function>(core, std::move(function)) {}
  // NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility): the handle constructs its own base.
  Handle(Handle&& other) noexcept
      : Node(static_cast<Node&&>(other)),
        HlistHook<T>(static_cast<HlistHook<T>&&>(other)),
        LoopCallback<Function>(static_cast<LoopCallback<Function>&&>(other)) {}
  Handle& operator=(Handle&&) = delete;

  // In the list of the loop.
  using HlistHook<T>::listed;
  using HlistHook<T>::next;
  using HlistHook<T>::unlist;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
