// DnsServer, with a table of records.
#include <tambour/tambour.h>

#include <string>
#include <unordered_map>

#include "dns_server/dns_server.h"

namespace {

class Tambour {
 public:
  explicit Tambour(const bench::ServerOptions& options)
      : server_(tambour::or_throw(
            tambour::DnsServer::listen(
                loop_, tambour::Endpoint::loopback_v4(options.port),
                [this](const tambour::DnsRequest& request, tambour::DnsMessage& response) {
                  answer(request.question(), response);
                }),
            "listen")) {
    for (int i = 0; i < bench::names_in_zone(); ++i) {
      const auto name = tambour::or_throw(tambour::DnsName::parse(bench::name_of_host(i)));
      const tambour::DnsA address{
          {10, 0, static_cast<std::uint8_t>(i / 256), static_cast<std::uint8_t>(i % 256)}};
      zone_.emplace(name,
                    tambour::DnsRecord{
                        .name = name, .type = tambour::DnsType::a, .ttl = 3600, .data = address});
    }
  }

  void run() { loop_.run(); }
  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  void answer(const tambour::DnsQuestion& question, tambour::DnsMessage& response) const {
    response.authoritative = true;
    const auto found = zone_.find(question.name);
    if (found == zone_.end()) {
      response.rcode = tambour::DnsRcode::no_such_name;
    } else if (found->second.type == question.type) {
      response.answers.push_back(found->second);
    }
  }

  tambour::EventLoop loop_;
  std::unordered_map<tambour::DnsName, tambour::DnsRecord> zone_;
  tambour::DnsServer server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_dns_server<Tambour>(argc, argv); }
