// Names that docs/server-sent-events.md does not declare.
extern std::string url, question;
void report(const Error& error);
void show(std::string_view data);
void show(std::string_view type, std::string_view data);
extern TaskChannel<std::string>& commands;
extern http::EventSource& source;
class Feed {
 public:
  Task<> send_to(http::EventStream& stream);

 private:
  std::vector<std::shared_ptr<const std::string>> events_after(std::uint64_t& last);
  Watch<std::uint64_t> newest_{0};
};
