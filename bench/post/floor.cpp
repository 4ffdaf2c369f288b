// The floor: a lock-free stack of preallocated nodes. A producer pushes a task with one
// compare-and-swap and wakes the loop if the stack was empty; the loop takes all tasks at once.
#include <atomic>

#include "post/eventfd_loop.h"
#include "post/post.h"

namespace {

struct Node {
  bench::Task task;
  Node* next;
};

/// Allocates nodes in blocks, which are never freed.
Node* new_node() {
  constexpr int nodes_per_block = 4096;
  thread_local Node* block = nullptr;
  thread_local int left = 0;
  if (left == 0) {
    block = new Node[nodes_per_block];
    left = nodes_per_block;
  }
  return &block[--left];
}

class Floor {
 public:
  void post(bench::Task task) {
    Node* node = new_node();
    node->task = task;
    node->next = posted_.load(std::memory_order_relaxed);
    while (!posted_.compare_exchange_weak(node->next, node, std::memory_order_release,
                                          std::memory_order_relaxed)) {
    }
    if (node->next == nullptr) loop_.wake();
  }
  void run() {
    loop_.run([this] {
      Node* reversed = nullptr;
      for (Node* node = posted_.exchange(nullptr, std::memory_order_acquire); node != nullptr;) {
        Node* next = node->next;
        node->next = reversed;
        reversed = node;
        node = next;
      }
      for (; reversed != nullptr; reversed = reversed->next) reversed->task();
    });
  }
  void stop() { loop_.stop(); }
  bench::SubjectInfo info() const { return {"floor", bench::kernel_release(), "epoll"}; }

 private:
  bench::EventfdLoop loop_;
  std::atomic<Node*> posted_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_post<Floor>(argc, argv); }
