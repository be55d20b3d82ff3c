"""The two stores: append-only records and content-addressed evidence."""
