// Tasks posted to a loop by other threads: evpp's task-queue suites.
//
// A stream: some producers post as fast as they can to one loop, which runs on the program's own
// processor and the producers on the others. A ring: one loop in each thread, and one task that
// each posts to the next; nearly all of that is the kernel waking a thread.
//
// A task counts itself, and is what a program posts: a function object of two words.
#pragma once

#include <barrier>
#include <concepts>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "common/processor.h"
#include "common/program.h"

namespace bench {

/// Where tasks are run, and what ends that.
class Course {
 public:
  virtual ~Course() = default;
  virtual void ran(int at) = 0;
};

struct Task {
  Course* course;
  int at;
  void operator()() const { course->ran(at); }
};

/// What a subject brings. It is made in the thread that runs it.
template <class Subject>
concept Poster = std::default_initializable<Subject> && requires(Subject subject, Task task) {
  /// From any thread.
  subject.post(task);
  /// Run tasks until stop().
  subject.run();
  /// From inside a task.
  subject.stop();
  { subject.about() } -> std::same_as<About>;
};

struct PostOptions {
  int producers = 0;  ///< Or loops in the ring.
  int tasks = 0;      ///< In all; or hand-overs in the ring.
  bool ring = false;
  int iterations = 1;
};

/// Exits with 2 and a message when the arguments make no sense, with 0 after --help.
PostOptions parse_post_options(int argc, char** argv);

/// Time and processor time of all threads, for each task.
class Stopwatch {
 public:
  void start() {
    cpu_ = own_cpu_ns();
    begin_ = now_ns();
  }
  void stop() {
    took_ = now_ns() - begin_;
    cpu_ = own_cpu_ns() - cpu_;
  }
  void report_to(Report& report, int tasks) const {
    report.add({{{"post_ns", double(took_) / tasks}, {"cpu_ns", double(cpu_) / tasks}}});
  }

 private:
  std::int64_t begin_ = 0, took_ = 0, cpu_ = 0;
};

template <Poster Subject>
class Stream final : public Course {
 public:
  About play(const PostOptions& options, Report& report) {
    left_ = options.tasks;
    std::vector<std::jthread> producers;
    std::barrier ready(options.producers + 1);
    for (int i = 0; i < options.producers; ++i) {
      const int share = options.tasks / options.producers + (i < options.tasks % options.producers);
      producers.emplace_back([this, &ready, share] {
        move_to_another_processor();
        ready.arrive_and_wait();
        for (int task = 0; task < share; ++task) subject_.post(Task{this, 0});
      });
    }
    watch_.start();
    ready.arrive_and_wait();
    subject_.run();
    if (left_ != 0) fail("the loop stopped before its last task");
    watch_.report_to(report, options.tasks);
    return subject_.about();
  }

  void ran(int) override {
    if (--left_ > 0) return;
    watch_.stop();
    subject_.stop();
  }

 private:
  // What producers read of the subject does not lie in one cache line with what each task writes.
  alignas(64) Subject subject_;
  alignas(64) int left_ = 0;
  Stopwatch watch_;
};

template <Poster Subject>
class Ring final : public Course {
 public:
  About play(const PostOptions& options, Report& report) {
    left_ = options.tasks;
    loops_.resize(options.producers);
    About about;
    std::barrier ready(options.producers);
    {
      std::vector<std::jthread> threads;
      for (int i = 1; i < options.producers; ++i) {
        threads.emplace_back([this, &ready, i] {
          // Every hand-over from one processor to another, where there are two.
          if (i % 2 == 1) move_to_another_processor();
          Subject subject;
          loops_[i] = &subject;
          ready.arrive_and_wait();
          subject.run();
          ready.arrive_and_wait();
        });
      }
      Subject subject;
      loops_[0] = &subject;
      about = subject.about();
      ready.arrive_and_wait();
      watch_.start();
      subject.post(Task{this, 0});
      subject.run();
      ready.arrive_and_wait();
    }
    watch_.report_to(report, options.tasks);
    return about;
  }

  void ran(int at) override {
    if (left_ == 0) return loops_[at]->stop();
    if (--left_ > 0) {
      const int next = at + 1 == int(loops_.size()) ? 0 : at + 1;
      return loops_[next]->post(Task{this, next});
    }
    watch_.stop();
    for (int each = 0; each < int(loops_.size()); ++each) loops_[each]->post(Task{this, each});
  }

 private:
  std::vector<Subject*> loops_;
  Stopwatch watch_;
  int left_ = 0;  ///< Whoever runs the task hands it on with it.
};

/// The main function of a post program.
template <Poster Subject>
int play_post(int argc, char** argv) {
  const PostOptions options = parse_post_options(argc, argv);
  own_processor();
  Report report;
  About about;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    feed_watchdog();
    about = options.ring ? std::make_unique<Ring<Subject>>()->play(options, report)
                         : std::make_unique<Stream<Subject>>()->play(options, report);
  }
  report.print(about);
  return 0;
}

}  // namespace bench
