// Names that docs/processes.md does not declare.
extern Process& child;
