"""A bake-off in public: the report in three forms and the raw export. Nothing here computes a number."""
