// dns::Server, with a table of records.
#include <tambour/tambour.h>

#include <string>
#include <unordered_map>

#include "dns_server/dns_server.h"

namespace {

class Tambour {
 public:
  explicit Tambour(const bench::ServerOptions& options)
      : server_(tambour::or_throw(
            tambour::dns::Server::listen(
                loop_, tambour::Endpoint::loopback_v4(options.port),
                [this](const tambour::dns::Request& request, tambour::dns::Message& response) {
                  answer(request.question(), response);
                }),
            "listen")) {
    for (int i = 0; i < bench::names_in_zone(); ++i) {
      const auto name = tambour::or_throw(tambour::dns::Name::parse(bench::name_of_host(i)));
      const tambour::dns::A address{
          {10, 0, static_cast<std::uint8_t>(i / 256), static_cast<std::uint8_t>(i % 256)}};
      zone_.emplace(name,
                    tambour::dns::Record{
                        .name = name, .type = tambour::dns::Type::a, .ttl = 3600, .data = address});
    }
  }

  void run() { loop_.run(); }
  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  void answer(const tambour::dns::Question& question, tambour::dns::Message& response) const {
    response.authoritative = true;
    const auto found = zone_.find(question.name);
    if (found == zone_.end()) {
      response.rcode = tambour::dns::Rcode::no_such_name;
    } else if (found->second.type == question.type) {
      response.answers.push_back(found->second);
    }
  }

  tambour::EventLoop loop_;
  std::unordered_map<tambour::dns::Name, tambour::dns::Record> zone_;
  tambour::dns::Server server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_dns_server<Tambour>(argc, argv); }
