// Lookups of host names, IPv4 and IPv6 addresses together, as getaddrinfo(3) does: the processor
// time of the process that looks up, with its threads.
//
// The program has a network and /etc/resolv.conf of its own. A process on another processor answers
// every question at port 53, with bare system calls. Each subject reads the configuration of the
// system, as its users leave it, and keeps a number of lookups in flight.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <string>

#include "common/program.h"

namespace bench {

/// The lookups of one measurement.
class Lookups {
 public:
  /// `cached`: always the same name; otherwise different ones, from `first` on.
  Lookups(int count, int in_flight, bool cached, int first);

  int in_flight() const { return in_flight_; }
  /// The next name, or null if there is none left. Valid until the next call.
  const char* next();
  /// A lookup has ended with this number of addresses. Fails if these are not two.
  void found(std::size_t addresses);
  bool finished() const { return ended_ == count_; }

 private:
  int count_;
  int in_flight_;
  bool cached_;
  int number_;
  int started_ = 0;
  int ended_ = 0;
  std::string name_;
};

/// The interface of a subject.
template <class Subject>
concept DnsSubject =
    std::default_initializable<Subject> && requires(Subject subject, Lookups& all) {
      /// Starts `in_flight()` lookups, and another one whenever one has ended, until all have
      /// ended.
      subject.run(all);
      { subject.info() } -> std::same_as<SubjectInfo>;
    };

struct DnsRun {
  std::function<void(Lookups&)> run;
  std::function<SubjectInfo()> info;
};

/// `make` creates the subject, after the network was set up.
int run_dns(int argc, char** argv, const std::function<DnsRun()>& make);

/// The main function of a subject.
template <DnsSubject Subject>
int run_dns(int argc, char** argv) {
  return run_dns(argc, argv, [] {
    auto* const subject = new Subject;  // Until the process ends.
    return DnsRun{[subject](Lookups& lookups) { subject->run(lookups); },
                  [subject] { return subject->info(); }};
  });
}

}  // namespace bench
