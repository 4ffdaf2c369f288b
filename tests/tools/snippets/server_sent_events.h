// Names that docs/server-sent-events.md does not declare.
extern std::string url, question;
void report(const Error& error);
void show(std::string_view data);
void show(std::string_view type, std::string_view data);
extern TaskChannel<std::string>& commands;
extern http::EventSource& source;
