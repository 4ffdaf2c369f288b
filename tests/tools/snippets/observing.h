// Names that docs/observing.md does not declare.
extern EventLoop& loop;
extern EventLoop& other_loop;
