// The least that a queue can do: tasks linked into a stack by one atomic exchange each, in places
// that were there before, and taken all at once; the loop is woken when the stack was empty.
#include <atomic>

#include "post/eventfd_loop.h"
#include "post/post.h"

namespace {

struct Node {
  bench::Task task;
  Node* next;
};

/// Places by the thousand, which stay until the program ends.
Node* new_node() {
  constexpr int many = 4096;
  thread_local Node* room = nullptr;
  thread_local int left = 0;
  if (left == 0) {
    room = new Node[many];
    left = many;
  }
  return &room[--left];
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
  bench::About about() const { return {"floor", bench::kernel_release(), "epoll"}; }

 private:
  bench::EventfdLoop loop_;
  std::atomic<Node*> posted_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_post<Floor>(argc, argv); }
